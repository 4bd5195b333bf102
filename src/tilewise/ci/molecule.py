"""CI of a molecule, from a mean field or a FCIDUMP file with one set of orbitals, and irreps as labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.arguments import texts, whole_number
from tilewise.chem.open_shell import AnyReference, OpenReference
from tilewise.chem.reference import Outline, Reference
from tilewise.ci.levels import NaturalOrbitals, natural_orbitals
from tilewise.ci.operators import Operator, hamiltonian
from tilewise.ci.orbitals import Orbitals, PairNumbers
from tilewise.ci.problem import multiplicity
from tilewise.errors import InputError, one_of
from tilewise.lazy import cached_property
from tilewise.wording import counted

MOST_ORBITALS = 10**6
"""More than any calculation has: a slip of the finger is not looked up."""
IRREP_BITS = 3
"""Of D2h and its subgroups: an irrep's number in these bits, and products are sums modulo 2."""


@dataclass(frozen=True, eq=False)
class Molecule:
    """A molecule with one set of orbitals; `reference` is None as long as only counts are known."""

    outline: Outline
    reference: AnyReference | None
    irrep: int
    electrons: tuple[int, int]
    references: np.ndarray

    @classmethod
    def of(
        cls,
        source: AnyReference | Outline,
        irrep: str | None = None,
        spin: int | None = None,
        occupations: str | Sequence[str] | None = None,
    ) -> Molecule:
        """`spin` are unpaired electrons, `occupations` references such as "2220".

        Both are by default those of the mean field.
        """
        outline = source if isinstance(source, Outline) else source.outline
        reference = None if isinstance(source, Outline) else source
        if reference is not None and not reference.is_restricted:
            raise InputError(
                "CI needs one set of orbitals for both spins: take an ROHF (mf.to_rohf, --reference rohf)"
            )
        own = _occupation(outline, reference)
        references = own[None]
        if occupations is not None:
            listed = texts("reference", occupations, "2220")
            given = np.array([_parse_occupation(text, len(own), int(own.sum())) for text in listed])
            references = given[:, np.argsort(np.argsort(_source_numbers(outline, reference)))]
        unpaired = int((own == 1).sum()) if spin is None else whole_number("spin", spin, 0)
        electrons = _by_spin(int(own.sum()), unpaired)
        number = _irrep_of(outline, references) if irrep is None else _irrep_number(irrep, outline)
        return cls(outline, reference, number, electrons, references)

    @property
    def title(self) -> str:
        return self.outline.title

    @property
    def basis(self) -> str:
        return self.outline.basis

    @cached_property
    def orbitals(self) -> Orbitals:
        irreps, names = _irreps(self.outline), []
        seen: dict[int, int] = {}
        for irrep in irreps.tolist():
            seen[irrep] = seen.get(irrep, 0) + 1
            names.append(f"{seen[irrep]}{self.outline.group.irreps[irrep].lower()}")
        n = len(irreps)
        bits = irreps[:, None] >> np.arange(IRREP_BITS) & 1
        return Orbitals(bits, (2,) * IRREP_BITS, np.arange(n), tuple(names))

    @property
    def label(self) -> tuple[int, ...]:
        return tuple(self.irrep >> k & 1 for k in range(IRREP_BITS))

    @property
    def e_mean_field(self) -> float | None:
        return None if self.reference is None else float(self.reference.e_hf)

    def hamiltonian(self, numbers: PairNumbers) -> Operator:
        assert self.reference is not None
        first: Reference = self.reference.by_spin[0]
        packed, n = first.eri(), first.n_orbitals
        high, low = np.tril_indices(n)
        place = np.empty((n, n), np.int64)
        place[high, low] = place[low, high] = np.arange(len(high))

        def block(p: np.ndarray, q: np.ndarray, r: np.ndarray, s: np.ndarray) -> np.ndarray:
            values: np.ndarray = packed[np.ix_(place[p, q], place[r, s])]
            return values

        occupation = _occupation(self.outline, self.reference)
        alpha, beta = np.flatnonzero(occupation > 0), np.flatnonzero(occupation == 2)
        core = first.integrals.fock(first.order) - _field(packed, place, alpha, beta)
        constant = self.reference.e_hf - _determinant_energy(core, packed, place, alpha, beta)
        return hamiltonian(self.orbitals, numbers, constant, core, block)

    def angular(self, numbers: PairNumbers, like: Operator) -> None:
        """A molecule has no L^2."""

    def symmetry_name(self, s_squared: float, l_squared: float | None) -> str:
        return f"{multiplicity(s_squared)}{self.outline.group.irreps[self.irrep]}"

    def configuration(self, shells: np.ndarray) -> str:
        """As a change of the first reference."""
        change, names = shells - self.references[0], self.orbitals.shell_names
        parts = []
        for sign in (-1, 1):
            words = [
                f"{names[k]}{'^2' if abs(change[k]) == 2 else ''}"
                for k in np.flatnonzero(np.sign(change) == sign)
            ]
            parts.append(" ".join(words))
        return f"{parts[0]} -> {parts[1]}" if any(parts) else "reference"

    def natural_orbitals(self, density: np.ndarray) -> NaturalOrbitals:
        """By irrep."""
        irreps = self.orbitals.labels @ (1 << np.arange(IRREP_BITS))
        return natural_orbitals(density, [self.outline.group.irreps[k] for k in irreps])

    def listed(
        self, determinants: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Alpha and beta orbitals (count, electrons) in our order, of a list in that of the source."""
        assert self.reference is not None
        order = self.reference.by_spin[0].order
        spins, pairs = [], _pairs(determinants)
        for spin, name in enumerate(("alpha", "beta")):
            lengths = {len(pair[spin]) for pair in pairs}
            if lengths != {self.electrons[spin]}:
                raise InputError(
                    f"determinants: each needs {counted(self.electrons[spin], f'{name} orbital')}, "
                    f"and there are some with {sorted(lengths)}"
                )
            given = np.array([pair[spin] for pair in pairs], np.int64).reshape(len(pairs), -1)
            place = np.full(int(max(order.max(), given.max(initial=0))) + 1, -1, np.int64)
            place[order] = np.arange(len(order))
            mapped = np.where(given >= 0, place[given], -1)
            if (mapped < 0).any():
                wrong = int(given[mapped < 0][0])
                raise InputError(
                    f"determinants: orbital {wrong} is not active; active are {sorted(order.tolist())}"
                )
            spins.append(mapped)
        return spins[0], spins[1]

    @property
    def shown(self) -> dict[str, str]:
        irrep = self.outline.group.irreps[self.irrep]
        return self.outline.shown | {"irrep": f"{irrep} of {self.outline.group.name}"}

    @property
    def integral_bytes(self) -> int:
        n = len(self.orbitals)
        return 8 * (n * (n + 1) // 2) ** 2


def _irreps(outline: Outline) -> np.ndarray:
    """Of the active orbitals: alpha's occupied ones by irrep, then virtual ones."""
    numbers = np.arange(outline.group.order)
    return np.concatenate([np.repeat(numbers, outline.occ), np.repeat(numbers, outline.vir)])


def _source_numbers(outline: Outline, reference: AnyReference | None) -> np.ndarray:
    return np.arange(outline.n_occ + outline.n_vir) if reference is None else reference.by_spin[0].order


def _occupation(outline: Outline, reference: AnyReference | None) -> np.ndarray:
    """Electrons in each active orbital: 2, 1 or 0."""
    n_alpha = outline.n_occ
    occupation = np.zeros(n_alpha + outline.n_vir, np.int64)
    occupation[:n_alpha] = 2
    if isinstance(reference, OpenReference):
        alpha, beta = reference.by_spin
        filled = beta.order[: sum(outline.by_spin[1][0])]
        occupation[:n_alpha] = 1 + np.isin(alpha.order[:n_alpha], filled)
    elif outline.beta is not None:
        occupation[:n_alpha] = 1
        starts = np.concatenate([[0], np.cumsum(outline.occ)])
        for irrep, count in enumerate(outline.beta[0]):
            occupation[starts[irrep] : starts[irrep] + count] = 2
    return occupation


def _parse_occupation(text: str, n_orbitals: int, n_electrons: int) -> np.ndarray:
    """ "2220": electrons in the active orbitals, in the order of the source; those not named are empty."""
    digits = text.replace(" ", "")
    if not digits or set(digits) - set("012") or len(digits) > n_orbitals:
        raise InputError(
            f"reference '{text}': expected up to {n_orbitals} digits, 2, 1 or 0 electrons in each orbital"
        )
    found = np.zeros(n_orbitals, np.int64)
    found[: len(digits)] = [int(digit) for digit in digits]
    if found.sum() != n_electrons:
        raise InputError(
            f"reference '{text}': it has {counted(int(found.sum()), 'electron')} instead of {n_electrons}"
        )
    return found


def _pairs(determinants: Any) -> list[tuple[list[int], list[int]]]:
    """Alpha and beta orbitals of each determinant of a list."""
    try:
        given = [(list(alpha), list(beta)) for alpha, beta in determinants]
        numbers = [whole_number("orbital", x, 0) for pair in given for spin in pair for x in spin]
    except (TypeError, ValueError):
        numbers, given = [], []
    if not given or max(numbers, default=0) > MOST_ORBITALS:
        raise InputError(
            f"determinants={determinants!r}: a list of pairs (alpha orbitals, beta orbitals) is expected, "
            "such as [((0, 1), (0, 1)), ((0, 2), (0, 2))]"
        )
    return given


def _by_spin(n_electrons: int, unpaired: int) -> tuple[int, int]:
    """Alpha and beta electrons."""
    if not 0 <= unpaired <= n_electrons or (n_electrons - unpaired) % 2:
        electrons, right = counted(n_electrons, "electron"), "even" if n_electrons % 2 == 0 else "odd"
        raise InputError(
            f"spin={unpaired}: {electrons} can have an {right} number of unpaired ones, up to {n_electrons}"
        )
    return (n_electrons + unpaired) // 2, (n_electrons - unpaired) // 2


def _irrep_of(outline: Outline, references: np.ndarray) -> int:
    """Of determinants with one electron in each open orbital."""
    irreps = _irreps(outline)
    products = {int(np.bitwise_xor.reduce(irreps[row == 1], initial=0)) for row in references}
    if len(products) > 1:
        names = ", ".join(outline.group.irreps)
        raise InputError(f"the references belong to different irreps: choose one of {names} with irrep=")
    return products.pop()


def _irrep_number(name: str, outline: Outline) -> int:
    for number, known in enumerate(outline.group.irreps):
        if known.lower() == str(name).strip().lower():
            return number
    raise one_of("irrep", name, outline.group.irreps)


def _field(packed: np.ndarray, place: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """What the active electrons do to an alpha electron (n, n)."""
    n = len(place)
    diagonal = place[np.arange(n), np.arange(n)]
    total = packed[:, diagonal[alpha]].sum(axis=1) + packed[:, diagonal[beta]].sum(axis=1)
    made: np.ndarray = total[place]
    for k in alpha:
        made -= packed[place[:, k][:, None], place[k]]
    return made


def _determinant_energy(
    core: np.ndarray, packed: np.ndarray, place: np.ndarray, alpha: np.ndarray, beta: np.ndarray
) -> float:
    """Of the active electrons."""
    diagonal = place[np.arange(len(core)), np.arange(len(core))]
    energy = float(np.diag(core)[alpha].sum() + np.diag(core)[beta].sum())
    for one, other in ((alpha, alpha), (beta, beta), (alpha, beta), (beta, alpha)):
        energy += 0.5 * float(packed[np.ix_(diagonal[one], diagonal[other])].sum())
    for own in (alpha, beta):
        pairs = place[np.ix_(own, own)]
        energy -= 0.5 * float(packed[pairs, pairs].sum())
    return energy
