"""CI of an atom: subshells of an averaged field, with M_L and parity as labels."""
# ruff: noqa: E741 (l is the angular momentum)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewise import arguments
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
from tilewise.ci.levels import NaturalOrbitals, natural_orbitals
from tilewise.ci.operators import Operator, angular_momentum_squared, hamiltonian
from tilewise.ci.orbitals import Orbitals, PairNumbers
from tilewise.ci.problem import multiplicity
from tilewise.errors import InputError, one_of
from tilewise.lazy import cached_property
from tilewise.wording import counted


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
        texts = arguments.texts("reference", reference, "1s2 2s2")
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
        n = None if n is None else arguments.whole_number("n", n)
        l = None if l is None else arguments.whole_number("l", l, 0)
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
        projection = (term.l if term else 0) if m_l is None else arguments.whole_number("m_l", m_l, None)
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

    def natural_orbitals(self, density: np.ndarray) -> NaturalOrbitals:
        """By l, summed over m."""
        shells = self.active
        first = np.concatenate([[0], np.cumsum([2 * l + 1 for _, l in shells])])
        radial = np.zeros((len(shells), len(shells)))
        for one, (_, l) in enumerate(shells):
            for other, (_, its) in enumerate(shells):
                if l == its:
                    rows, columns = first[one] + np.arange(2 * l + 1), first[other] + np.arange(2 * l + 1)
                    radial[one, other] = density[rows, columns].sum()
        return natural_orbitals(radial, [subshell_name((0, l)).removeprefix("0") for _, l in shells])

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
        unpaired = arguments.whole_number("m_s doubled", 2 * arguments.number("m_s", m_s), None)
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
        if arguments.plain_text("parity", parity) not in ("even", "odd"):
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
