"""What a calculation is about: orbitals with labels and shells, references, and where integrals come from."""
# ruff: noqa: E741 (l is the angular momentum)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tilewise.chem.configurations import (
    LETTERS,
    Subshell,
    Term,
    configuration_text,
    is_odd,
    parse_configuration,
    parse_subshell,
    subshell_name,
)
from tilewise.chem.open_shell import AnyReference, OpenReference
from tilewise.chem.reference import Outline, Reference
from tilewise.ci.operators import Operator, angular_momentum_squared, hamiltonian
from tilewise.ci.orbitals import Orbitals, PairNumbers
from tilewise.errors import InputError, one_of
from tilewise.lazy import cached_property
from tilewise.wording import counted

IRREP_BITS = 3
"""Of D2h and its subgroups: an irrep's number in these bits, and products are sums modulo 2."""


class Problem(Protocol):
    """Orbitals and electrons that determinants are made of."""

    @property
    def title(self) -> str: ...

    @property
    def basis(self) -> str: ...

    @property
    def orbitals(self) -> Orbitals: ...

    @property
    def references(self) -> np.ndarray:
        """Electrons in each shell (references, shells)."""

    @property
    def electrons(self) -> tuple[int, int]:
        """Of alpha and of beta spin."""

    @property
    def label(self) -> tuple[int, ...]:
        """What the labels of a determinant's orbitals add up to."""

    @property
    def e_mean_field(self) -> float | None:
        """Total energy of the mean field, once it is known."""

    def hamiltonian(self, numbers: PairNumbers) -> Operator:
        """Computes the integrals."""

    def angular(self, numbers: PairNumbers, like: Operator) -> Operator | None:
        """L^2, of an atom."""

    def symmetry_name(self, s_squared: float, l_squared: float | None) -> str:
        """The name of a state: 3B1, or 3Po."""

    def configuration(self, shells: np.ndarray) -> str:
        """Electrons in each shell, in words."""

    @property
    def shown(self) -> dict[str, str]:
        """What people ask first, by its label."""

    @property
    def integral_bytes(self) -> int:
        """What integrals take while those of the operator are made of them."""


def multiplicity(s_squared: float) -> int:
    """2S + 1 of the nearest spin."""
    return round(float(np.sqrt(max(0.0, 1 + 4 * s_squared))))


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
            texts = [occupations] if isinstance(occupations, str) else list(occupations)
            given = np.array([_parse_occupation(text, len(own), int(own.sum())) for text in texts])
            references = given[:, np.argsort(np.argsort(_source_numbers(outline, reference)))]
        electrons = _by_spin(int(own.sum()), int((own == 1).sum()) if spin is None else spin)
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

    @property
    def shown(self) -> dict[str, str]:
        irrep = self.outline.group.irreps[self.irrep]
        return self.outline.shown | {"irrep": f"{irrep} of {self.outline.group.name}"}

    @property
    def integral_bytes(self) -> int:
        n = len(self.orbitals)
        return 8 * (n * (n + 1) // 2) ** 2


@dataclass(frozen=True, eq=False)
class Atom:
    """An atom: subshells of an averaged field, M_L and parity as labels."""

    functions: Any  # chem.pyscf_atom.AtomicFunctions
    symbol: str
    basis: str
    configurations: tuple[dict[Subshell, int], ...]
    active: list[Subshell]
    frozen: list[Subshell]
    m_l: int
    is_odd: bool
    electrons: tuple[int, int]
    _solved: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        symbol: str,
        basis: str,
        reference: str | Sequence[str],
        *,
        charge: int = 0,
        n: int | None = None,
        l: int | None = None,
        frozen: Sequence[str] = (),
        term: Term | None = None,
        m_l: int | None = None,
        m_s: float | None = None,
        parity: str | None = None,
    ) -> Atom:
        from tilewise.chem.pyscf_atom import AtomicFunctions, build_atom

        functions = AtomicFunctions.of(build_atom(symbol, basis, charge))
        texts = [reference] if isinstance(reference, str) else list(reference)
        configurations = tuple(parse_configuration(text) for text in texts)
        total = int(functions.mol.nelectron)
        for text, configuration in zip(texts, configurations, strict=True):
            if sum(configuration.values()) != total:
                raise InputError(
                    f"reference '{text}': it has {counted(sum(configuration.values()), 'electron')}, "
                    f"and {symbol} of charge {charge:+d} has {total}"
                )
        left_out = [parse_subshell(name) for name in frozen]
        for shell in left_out:
            for text, configuration in zip(texts, configurations, strict=True):
                if configuration.get(shell, 0) != 2 * (2 * shell[1] + 1):
                    raise InputError(f"frozen {subshell_name(shell)}: it is not full in '{text}'")
        active = [shell for shell in functions.subshells(n, l) if shell not in left_out]
        for configuration in configurations:
            for shell in configuration:
                if shell not in active and shell not in left_out:
                    raise InputError(
                        f"{subshell_name(shell)} of the reference is not among the orbitals: "
                        f"there are {', '.join(map(subshell_name, active))}"
                    )
        count = total - sum(2 * (2 * shell[1] + 1) for shell in left_out)
        unpaired = _unpaired(m_s, term, configurations[0], count)
        odd = _is_odd(parity, term, configurations)
        projection = (term.l if term else 0) if m_l is None else m_l
        return cls(
            functions,
            symbol,
            basis,
            configurations,
            active,
            left_out,
            projection,
            odd,
            ((count + unpaired) // 2, (count - unpaired) // 2),
        )

    @property
    def title(self) -> str:
        return self.symbol

    @cached_property
    def orbitals(self) -> Orbitals:
        m = np.concatenate([np.arange(-l, l + 1) for _, l in self.active])
        sizes = [2 * l + 1 for _, l in self.active]
        odd = np.repeat([l % 2 for _, l in self.active], sizes)
        shell = np.repeat(np.arange(len(self.active)), sizes)
        names = tuple(map(subshell_name, self.active))
        return Orbitals(np.stack([m, odd], axis=1), (0, 2), shell, names)

    @property
    def references(self) -> np.ndarray:
        return np.array([[own.get(shell, 0) for shell in self.active] for own in self.configurations])

    @property
    def label(self) -> tuple[int, ...]:
        return self.m_l, int(self.is_odd)

    @property
    def e_mean_field(self) -> float | None:
        return self._solved["orbitals"].e_average if self._solved else None

    @property
    def integrals(self) -> Any:
        """Of the averaged SCF of the first reference; it is run at the first call."""
        from tilewise.chem.pyscf_atom import AtomicIntegrals, averaged_scf

        if not self._solved:
            self._solved["orbitals"] = averaged_scf(self.functions, self.configurations[0])
        return AtomicIntegrals(self._solved["orbitals"], self.active, self.frozen)

    def hamiltonian(self, numbers: PairNumbers) -> Operator:
        made = self.integrals
        return hamiltonian(self.orbitals, numbers, made.constant, made.one_electron(), made.block)

    def angular(self, numbers: PairNumbers, like: Operator) -> Operator:
        return angular_momentum_squared(self.orbitals, numbers, self.integrals.raising(), self.m_l, like)

    def symmetry_name(self, s_squared: float, l_squared: float | None) -> str:
        l = (multiplicity(l_squared or 0.0) - 1) // 2
        letter = LETTERS[l] if l < len(LETTERS) else f"[L={l}]"
        return f"{multiplicity(s_squared)}{letter}{'o' if self.is_odd else ''}"

    def configuration(self, shells: np.ndarray) -> str:
        return configuration_text(dict(zip(self.active, map(int, shells), strict=True)))

    @property
    def shown(self) -> dict[str, str]:
        parity = "odd" if self.is_odd else "even"
        m_s = (self.electrons[0] - self.electrons[1]) / 2
        return {
            "atom": f"{self.symbol}, {counted(int(self.functions.mol.nelectron), 'electron')}",
            "basis": self.basis,
            "reference": "; ".join(map(configuration_text, self.configurations)),
            "orbitals": f"{' '.join(map(subshell_name, self.active))}"
            + (f"; frozen {' '.join(map(subshell_name, self.frozen))}" if self.frozen else ""),
            "labels": f"M_L = {self.m_l}, M_S = {m_s:g}, {parity}",
        }

    @property
    def integral_bytes(self) -> int:
        n, basis = len(self.orbitals), int(self.functions.mol.nao)
        return 8 * (n * (n + 1) // 2) ** 2 + basis**4


def _unpaired(
    m_s: float | None, term: Term | None, configuration: dict[Subshell, int], n_electrons: int
) -> int:
    """Twice M_S: as given, that of the term, or the least that the number of electrons allows."""
    if m_s is not None:
        unpaired = round(2 * m_s)
    elif term is not None:
        unpaired = term.multiplicity - 1
    else:
        unpaired = n_electrons % 2
    if (n_electrons - unpaired) % 2 or not 0 <= unpaired <= n_electrons:
        what = f"m_s={m_s:g}" if m_s is not None else f"term {term}"
        raise InputError(f"{what}: {counted(n_electrons, 'active electron')} cannot have this spin")
    return unpaired


def _is_odd(parity: str | None, term: Term | None, configurations: Sequence[dict[Subshell, int]]) -> bool:
    if parity is not None:
        if parity not in ("even", "odd"):
            raise one_of("parity", parity, ("even", "odd"))
        return parity == "odd"
    if term is not None and term.is_odd is not None:
        return term.is_odd
    found = {is_odd(configuration) for configuration in configurations}
    if len(found) > 1:
        raise InputError(
            "the references have both parities: say which one with parity= or a term such as 3Po"
        )
    return found.pop()


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
