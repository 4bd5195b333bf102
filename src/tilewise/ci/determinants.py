"""Determinants: which pairs of an alpha and a beta string a calculation has, and how they are numbered.

The rank of a determinant counts the electrons that left the shells of a reference: subshells of an atom,
spatial orbitals of a molecule, never spin orbitals. So every configuration comes with all its determinants,
and the space is complete in the spin, and of an atom in the orbital angular momentum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewise.ci.orbitals import Orbitals
from tilewise.ci.strings import Family, Strings, families
from tilewise.errors import InputError
from tilewise.lazy import cached_property

ABSENT = np.iinfo(np.int64).min
"""In the place of a shift: these classes do not go together."""


@dataclass(frozen=True, eq=False)
class Determinants:
    """Determinants sorted by alpha string, then by beta string.

    Those of alpha string a are first[a] to first[a + 1]; `beta` has the beta string of each. If whole classes
    go together, `allowed` says which ones; None for a list of any determinants.
    """

    orbitals: Orbitals
    alpha: Strings
    beta_strings: Strings
    first: np.ndarray
    beta: np.ndarray
    allowed: np.ndarray | None

    def __len__(self) -> int:
        return len(self.beta)

    @cached_property
    def alpha_of(self) -> np.ndarray:
        """The alpha string of each determinant."""
        return np.repeat(np.arange(len(self.alpha), dtype=np.int32), np.diff(self.first))

    @property
    def electrons(self) -> tuple[int, int]:
        """Of alpha and of beta spin."""
        return self.alpha.n_electrons, self.beta_strings.n_electrons

    def occupied(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Alpha and beta orbitals (count, electrons) of the determinants with these numbers."""
        a = np.searchsorted(self.first, numbers, side="right") - 1
        return self.alpha.occupied[a], self.beta_strings.occupied[self.beta[numbers]]

    @cached_property
    def digest(self) -> str:
        """What a list of determinants is recognised by."""
        content = hashlib.sha256()
        for array in (self.alpha.occupied, self.beta_strings.occupied, self.first, self.beta):
            content.update(np.ascontiguousarray(array).tobytes())
        return content.hexdigest()

    def part(self, numbers: np.ndarray) -> tuple[Determinants, np.ndarray]:
        """Some of the determinants, as a list, and the numbers of these here."""
        made, order = listed(self.orbitals, *self.occupied(numbers))
        return made, numbers[order]

    def pairing(self) -> dict[str, np.ndarray]:
        """The tables by which the native core finds the number of a determinant."""
        empty32, empty64 = np.zeros(0, np.int32), np.zeros(0, np.int64)
        tables = {"first": self.first, "beta": self.beta, "class_first": self.beta_strings.class_first}
        if self.allowed is None:
            return tables | {
                "shift": empty64,
                "range_first": empty32,
                "range_begin": empty32,
                "range_end": empty32,
                "partner": self._partners(),
            }
        begin, end, owner, shift = [], [], [], np.full(self.allowed.shape, ABSENT, np.int64)
        class_first = self.beta_strings.class_first
        for a, row in enumerate(self.allowed):
            before = 0
            for low, high in _runs(row):
                begin.append(low)
                end.append(high)
                owner.append(a)
                shift[a, low:high] = before - class_first[low]
                before += int(class_first[high] - class_first[low])
        ranges = np.searchsorted(np.array(owner, np.int64), np.arange(len(self.allowed) + 1))
        return tables | {
            "shift": shift.ravel(),
            "range_first": ranges.astype(np.int32),
            "range_begin": np.array(begin, np.int32),
            "range_end": np.array(end, np.int32),
            "partner": empty32,
        }

    def _partners(self) -> np.ndarray:
        """Of each alpha class of a list, the beta class that its determinants have."""
        partner = np.full(self.alpha.n_classes, -1, np.int32)
        partner[self.alpha.class_of[self.alpha_of]] = self.beta_strings.class_of[self.beta]
        return partner


@dataclass(frozen=True, eq=False)
class Selection:
    """Which determinants are wanted: all with at most `rank` electrons outside of one of the references.

    `references` (references, shells) has the electrons in each shell; `label` is what the labels add up to.
    """

    references: np.ndarray
    rank: int
    electrons: tuple[int, int]
    label: tuple[int, ...]

    def of(self, orbitals: Orbitals) -> Determinants:
        filled = (self.references == 2 * orbitals.capacity).all(axis=0)
        open_shells = np.flatnonzero((self.references > 0).any(axis=0) & ~filled)
        full = np.flatnonzero(filled[orbitals.shell])
        members = [np.flatnonzero(orbitals.shell == shell) for shell in open_shells]
        by_count = {
            n: list(families(orbitals, full, members, n, self.rank)) for n in dict.fromkeys(self.electrons)
        }
        spins = [by_count[n] for n in self.electrons]
        wanted = self._wanted(orbitals, spins, self.references[:, open_shells])
        alpha = beta = _strings(orbitals, spins[0], wanted[0], self.electrons[0])
        if spins[0] is not spins[1] or wanted[0] != wanted[1]:
            beta = _strings(orbitals, spins[1], wanted[1], self.electrons[1])
        return self._paired(orbitals, alpha, beta, self.references[:, open_shells])

    def fits(self, one: np.ndarray, other: np.ndarray, references: np.ndarray) -> np.ndarray:
        """Whether patterns (m, p) and (n, p) go together: (m, n). `references` are those of open shells."""
        holes = one[:, None, 0] + other[None, :, 0]
        present = one[:, None, 1:] + other[None, :, 1:]
        left = np.stack([np.maximum(0, own - present).sum(axis=2) for own in references])
        fits: np.ndarray = holes + left.min(axis=0) <= self.rank
        return fits

    def _wanted(
        self, orbitals: Orbitals, spins: Sequence[list[Family]], references: np.ndarray
    ) -> list[list[set[int]]]:
        """Of each family of each spin, the labels of strings that have a partner."""
        labels = {id(mine): [family.labels(orbitals) for family in mine] for mine in spins}
        alpha, beta = (labels[id(mine)] for mine in spins)
        codes = [orbitals.codes(own).tolist() for own in alpha]
        partners = [orbitals.codes(orbitals.reduced(np.array(self.label) - own)).tolist() for own in alpha]
        present = [set(orbitals.codes(own).tolist()) for own in beta]
        wanted: list[list[set[int]]] = [[set() for _ in mine] for mine in spins]
        patterns = [_patterns([family.pattern for family in mine], references.shape[1]) for mine in spins]
        for a, b in np.argwhere(self.fits(patterns[0], patterns[1], references)).tolist():
            for code, partner in zip(codes[a], partners[a], strict=True):
                if partner in present[b]:
                    wanted[0][a].add(code)
                    wanted[1][b].add(partner)
        return wanted

    def _paired(
        self, orbitals: Orbitals, alpha: Strings, beta: Strings, references: np.ndarray
    ) -> Determinants:
        rest = orbitals.codes(orbitals.reduced(np.array(self.label) - alpha.class_label))
        width = references.shape[1]
        allowed = self.fits(_patterns(alpha.patterns, width), _patterns(beta.patterns, width), references)
        allowed &= rest[:, None] == beta.class_code[None]
        sizes = allowed @ np.diff(beta.class_first)
        first = np.concatenate([[0], np.cumsum(sizes[alpha.class_of])]).astype(np.int64)
        if first[-1] == 0:
            raise InputError(
                "no determinant has these quantum numbers: check irrep, spin, term, parity and reference"
            )
        if first[-1] >= np.iinfo(np.int32).max:
            raise InputError(
                f"{first[-1]} determinants are more than {np.iinfo(np.int32).max}: lower the rank, "
                "freeze orbitals or choose a smaller basis"
            )
        lists = [np.flatnonzero(row[beta.class_of]).astype(np.int32) for row in allowed]
        betas = [np.tile(lists[c], int(n)) for c, n in enumerate(np.diff(alpha.class_first))]
        return Determinants(orbitals, alpha, beta, first, np.concatenate(betas), allowed)


def listed(orbitals: Orbitals, alpha: np.ndarray, beta: np.ndarray) -> tuple[Determinants, np.ndarray]:
    """A list of determinants, given by their alpha and beta orbitals (count, electrons), in any order.

    Also the place that each of the sorted ones had.
    """
    for spin, occupied in (("alpha", alpha), ("beta", beta)):
        if occupied.size and not 0 <= occupied.min() <= occupied.max() < len(orbitals):
            raise InputError(
                f"determinants: {spin} orbitals are numbers from 0 to {len(orbitals) - 1}, "
                f"{occupied.min()} to {occupied.max()} are given"
            )
        if (np.diff(np.sort(occupied, axis=1), axis=1) == 0).any():
            raise InputError(f"determinants: an {spin} orbital stands twice in one of them")
    spins = [_unique_strings(orbitals, np.sort(occupied, axis=1)) for occupied in (alpha, beta)]
    (a, of_a), (b, of_b) = spins
    order = np.lexsort((of_b, of_a))
    of_a, of_b = of_a[order], of_b[order]
    if ((np.diff(of_a) == 0) & (np.diff(of_b) == 0)).any():
        raise InputError("determinants: one of them is listed twice")
    total = a.class_label[a.class_of[of_a]] + b.class_label[b.class_of[of_b]]
    if len(np.unique(orbitals.codes(orbitals.reduced(total)))) > 1:
        raise InputError(
            "determinants: they belong to different irreps, which the Hamiltonian does not mix: list those "
            "of one, or take symmetry='C1'"
        )
    first = np.searchsorted(of_a, np.arange(len(a) + 1)).astype(np.int64)
    return Determinants(orbitals, a, b, first, of_b.astype(np.int32), None), order


def _unique_strings(orbitals: Orbitals, occupied: np.ndarray) -> tuple[Strings, np.ndarray]:
    """Different strings, each label a class, and the string of each row."""
    rows, place = np.unique(occupied, axis=0, return_inverse=True)
    nothing = np.zeros(len(rows), np.int64)
    codes = orbitals.codes(orbitals.label_of(rows))
    number = np.empty(len(rows), np.int64)
    number[np.lexsort([*reversed(rows.T), codes])] = np.arange(len(rows))
    made = Strings.sorted(orbitals, rows, np.zeros((len(rows), 1), np.int64), nothing)
    return made, number[place.ravel()]


def _strings(orbitals: Orbitals, mine: list[Family], wanted: list[set[int]], n_electrons: int) -> Strings:
    parts = [family.strings(orbitals, labels) for family, labels in zip(mine, wanted, strict=True)]
    counts = [len(part) for part in parts]
    width = len(mine[0].pattern) if mine else 1
    patterns = np.repeat(_patterns([family.pattern for family in mine], width - 1), counts, axis=0)
    outside = np.repeat([family.outside.shape[1] for family in mine], counts).astype(np.int64)
    occupied = np.concatenate([np.zeros((0, n_electrons), np.int64), *parts])
    if not len(occupied):
        raise InputError(
            "no determinant has these quantum numbers: check irrep, spin, term, parity and reference"
        )
    return Strings.sorted(orbitals, occupied, patterns, outside)


def _patterns(patterns: Sequence[tuple[int, ...]], n_open: int) -> np.ndarray:
    return np.array(patterns, np.int64).reshape(len(patterns), n_open + 1)


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Ranges [low, high) in which the flags are set."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]
