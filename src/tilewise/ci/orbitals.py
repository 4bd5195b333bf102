"""Orbitals as configuration interaction sees them: labels that add up, and shells that electrons leave.

A label is a row of whole numbers, each with a modulus: the three bits of an irrep of D2h (modulo 2), or of an
atom the projection of the orbital angular momentum (modulus 0: a plain number) and the parity (modulo 2). The
label of a string is the sum of the labels of its orbitals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.errors import InputError
from tilewise.lazy import cached_property

MOST_ORBITALS = 256
"""That the native core has bits for."""

_BASE, _MIDDLE = 1024, 512  # a plain number from -512 to 511 has its place in a code


@dataclass(frozen=True, eq=False)
class Orbitals:
    """Active orbitals: the label (n, k) of each, and the shell that it belongs to.

    Shells are subshells of an atom, each with several orbitals, or the orbitals of a molecule one by one.
    """

    labels: np.ndarray
    moduli: tuple[int, ...]
    shell: np.ndarray
    shell_names: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.shell) > MOST_ORBITALS:
            raise InputError(
                f"{len(self.shell)} active orbitals: at most {MOST_ORBITALS} are possible, freeze some or "
                "choose a smaller basis"
            )

    def __len__(self) -> int:
        return len(self.shell)

    @cached_property
    def capacity(self) -> np.ndarray:
        """Electrons of one spin that each shell holds."""
        return np.bincount(self.shell, minlength=len(self.shell_names))

    def codes(self, labels: np.ndarray) -> np.ndarray:
        """Labels (..., k) as single numbers, the same for labels that are equal."""
        code = np.zeros(labels.shape[:-1], np.int64)
        for k, modulus in enumerate(self.moduli):
            part = labels[..., k] % modulus if modulus else labels[..., k] + _MIDDLE
            code = code * _BASE + part
        return code

    def label_of(self, occupied: np.ndarray) -> np.ndarray:
        """The label of each row of orbital numbers."""
        total = self.labels[occupied].sum(axis=-2)
        return self.reduced(total)

    def reduced(self, labels: np.ndarray) -> np.ndarray:
        moduli = np.array(self.moduli)
        return np.where(moduli > 0, labels % np.maximum(moduli, 1), labels)

    def distinct(self, labels: np.ndarray) -> np.ndarray:
        """The different ones of labels (count, k)."""
        _, first = np.unique(self.codes(labels), return_index=True)
        found: np.ndarray = labels[first]
        return found


@dataclass(frozen=True, eq=False)
class PairNumbers:
    """Numbers of pairs of orbitals, sorted by label, so that each label's integrals form a matrix.

    `hop[p, q]` numbers the pair of a new and an old orbital, whose label is that of p less that of q; pairs
    with the same label for both come first. `two[a, b]` with a < b numbers two orbitals, whose label is the
    sum.
    """

    hop: np.ndarray
    new: np.ndarray
    old: np.ndarray
    hop_label: np.ndarray
    two: np.ndarray
    low: np.ndarray
    high: np.ndarray
    two_label: np.ndarray
    n_even: int
    """Pairs of orbitals with the same label."""

    @classmethod
    def of(cls, orbitals: Orbitals) -> PairNumbers:
        n, labels = len(orbitals), orbitals.labels
        new, old = (index.ravel() for index in np.indices((n, n)))
        difference = orbitals.codes(orbitals.reduced(labels[new] - labels[old]))
        zero = int(orbitals.codes(np.zeros(len(orbitals.moduli), np.int64)))
        # Within a label by the old orbital, then by the new one: neighbours of a string differ in new ones.
        order = np.lexsort((new, old, difference, difference != zero))
        hop = np.empty(n * n, np.int32)
        hop[order] = np.arange(n * n)
        low, high = np.triu_indices(n, 1)
        total = orbitals.codes(orbitals.reduced(labels[low] + labels[high]))
        by_sum = np.lexsort((high, low, total))
        two = np.zeros((n, n), np.int32)
        two[low[by_sum], high[by_sum]] = np.arange(len(low))
        return cls(
            hop.reshape(n, n),
            new[order],
            old[order],
            difference[order],
            two,
            low[by_sum],
            high[by_sum],
            total[by_sum],
            int((difference == zero).sum()),
        )
