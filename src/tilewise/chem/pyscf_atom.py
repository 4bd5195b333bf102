"""Atoms with PySCF: a spherically averaged SCF, and integrals over complex spherical harmonics.

Electrons of a subshell are spread evenly over its orbitals and spins, so that all orbitals of a subshell
share one radial function. Over complex harmonics all integrals are real, and the projection of the angular
momentum adds up.
"""
# ruff: noqa: E741 (l is the angular momentum)

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from pyscf import ao2mo, gto, lib, scf

from tilewise.arguments import plain_text, whole_number
from tilewise.chem.configurations import Subshell, configuration_text, subshell_name
from tilewise.errors import InputError
from tilewise.lazy import cached_property
from tilewise.wording import counted

_P_ORDER = (1, -1, 0)  # PySCF has x, y, z for p and -l to l for the others


def build_atom(symbol: str, basis: Any, charge: int) -> gto.Mole:
    """The atom in the origin; its spin plays no part in an averaged field."""
    mol = gto.Mole(verbose=0)
    symbol, basis = plain_text("atom", symbol), plain_text("basis", basis)
    charge = whole_number("charge", charge, least=None)
    try:
        number = gto.charge(symbol)
    except (LookupError, ValueError, RuntimeError):
        number = 0
    if not number:
        raise InputError(f"atom '{symbol}': a symbol such as Ne is expected")
    if charge >= number:
        raise InputError(
            f"charge={charge}: {symbol} has {counted(number, 'electron')}, and needs one at least"
        )
    if not basis.strip():
        raise InputError(f"basis '{basis}': a name such as cc-pvdz is expected")
    mol.atom, mol.basis, mol.charge, mol.cart = [[symbol, (0.0, 0.0, 0.0)]], basis, charge, False
    mol.spin = (number - charge) % 2
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mol.build(dump_input=False, parse_arg=False)
    except Exception as error:  # PySCF raises a dozen kinds here
        raise InputError(f"basis '{basis}': PySCF has none of that name for {symbol}") from error
    if not mol.nbas:
        raise InputError(f"basis '{basis}': it has no functions for {symbol}")
    return mol


@dataclass(frozen=True, eq=False)
class AtomicFunctions:
    """Basis functions of an atom: for each l the numbers (radial functions, 2l + 1) of the functions.

    The second index runs over m from -l to l, of real harmonics.
    """

    mol: gto.Mole
    places: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, mol: gto.Mole) -> AtomicFunctions:
        found: dict[int, list[np.ndarray]] = {}
        for shell, first in enumerate(mol.ao_loc_nr()[:-1]):
            l = int(mol.bas_angular(shell))
            for contraction in range(mol.bas_nctr(shell)):
                numbers = first + contraction * (2 * l + 1) + np.arange(2 * l + 1)
                order = np.argsort(_P_ORDER) if l == 1 else slice(None)
                found.setdefault(l, []).append(numbers[order])
        most = max(found)
        return cls(mol, tuple(np.array(found.get(l, []), np.int64) for l in range(most + 1)))

    def subshells(self, max_n: int | None = None, max_l: int | None = None) -> list[Subshell]:
        """All that the basis has, by n, then by l."""
        shells = [(r + l + 1, l) for l, places in enumerate(self.places) for r in range(len(places))]
        return sorted(
            (n, l) for n, l in shells if (max_n is None or n <= max_n) and (max_l is None or l <= max_l)
        )


@dataclass(frozen=True, eq=False)
class AtomicOrbitals:
    """Orbitals of an averaged field: radial coefficients and energies for each l, in hartree."""

    functions: AtomicFunctions
    radial: tuple[np.ndarray, ...]
    """(radial functions, orbitals) for each l."""
    energies: tuple[np.ndarray, ...]
    e_average: float
    """Total energy of the averaged field."""

    def coefficients(self, shells: list[Subshell]) -> np.ndarray:
        """Real orbitals (basis functions, orbitals), m from -l to l in each subshell."""
        columns = []
        for n, l in shells:
            places = self.functions.places[l]
            block = np.zeros((self.functions.mol.nao, 2 * l + 1))
            for m in range(2 * l + 1):
                block[places[:, m], m] = self.radial[l][:, n - l - 1]
            columns.append(block)
        return np.hstack([np.zeros((self.functions.mol.nao, 0)), *columns])


def averaged_scf(
    functions: AtomicFunctions, occupation: dict[Subshell, int], max_cycle: int = 100
) -> AtomicOrbitals:
    """Solves for the radial functions with so many electrons in each subshell, spread evenly."""
    mol, places = functions.mol, functions.places
    known = set(functions.subshells())
    for shell in occupation:
        if shell not in known:
            raise InputError(
                f"the basis has no {subshell_name(shell)}: it has "
                f"{', '.join(map(subshell_name, functions.subshells()))}"
            )
    overlap, core = mol.intor_symmetric("int1e_ovlp"), scf.hf.get_hcore(mol)
    repulsion = mol.intor("int2e", aosym="s8")

    def averaged(matrix: np.ndarray) -> list[np.ndarray]:
        """The radial matrix of each l."""
        return [
            np.mean([matrix[np.ix_(p[:, m], p[:, m])] for m in range(p.shape[1])], axis=0) if len(p) else p
            for p in places
        ]

    def density(radial: list[np.ndarray]) -> np.ndarray:
        total = np.zeros_like(core)
        for (n, l), count in occupation.items():
            orbital = radial[l][:, n - l - 1]
            for m in range(2 * l + 1):
                p = places[l][:, m]
                total[np.ix_(p, p)] += count / (2 * l + 1) * np.outer(orbital, orbital)
        return total

    overlaps, fock = averaged(overlap), averaged(core)
    diis, energy, change = lib.diis.DIIS(), np.inf, np.inf
    diis.space = 8
    for _ in range(max_cycle):
        solved = [scipy.linalg.eigh(f, s) if len(f) else (f, s) for f, s in zip(fock, overlaps, strict=True)]
        radial = [vectors for _, vectors in solved]
        dm = density(radial)
        coulomb, exchange = scf.hf.dot_eri_dm(repulsion, dm, hermi=1)
        field = core + coulomb - 0.5 * exchange
        before, energy = energy, 0.5 * float(np.einsum("mn,nm->", core + field, dm))
        fock, own = averaged(field), averaged(dm)
        errors = [f @ d @ s - s @ d @ f for f, d, s in zip(fock, own, overlaps, strict=True) if len(f)]
        error = np.concatenate([e.ravel() for e in errors])
        change = abs(energy - before)
        if change < 1e-11 and float(np.abs(error).max()) < 1e-8:
            break
        flat = np.concatenate([f.ravel() for f in fock])
        mixed = diis.update(flat, xerr=error)
        cuts = np.cumsum([f.size for f in fock])[:-1]
        fock = [m.reshape(f.shape) for m, f in zip(np.split(mixed, cuts), fock, strict=True)]
    else:
        raise InputError(
            f"the averaged SCF of {configuration_text(occupation)} is not converged in {max_cycle} cycles "
            f"(last energy change {change:.1e} hartree): choose another reference or basis"
        )
    return AtomicOrbitals(
        functions,
        tuple(_same_signs(r) for r in radial),
        tuple(levels if len(levels) else np.zeros(0) for levels, _ in solved),
        energy,
    )


def _same_signs(radial: np.ndarray) -> np.ndarray:
    """Orbitals whose largest coefficient is positive, so that two runs give the same ones."""
    if not radial.size:
        return radial
    largest = radial[np.abs(radial).argmax(axis=0), np.arange(radial.shape[1])]
    return radial * np.sign(largest)


@dataclass(frozen=True, eq=False)
class AtomicIntegrals:
    """Integrals over complex orbitals of the active subshells, with the field of the frozen ones.

    Orbitals are ordered by subshell, then by m from -l to l.
    """

    orbitals: AtomicOrbitals
    active: list[Subshell]
    frozen: list[Subshell]

    @property
    def m(self) -> np.ndarray:
        """Of each orbital."""
        parts = [np.arange(-l, l + 1) for _, l in self.active]
        return np.concatenate(parts)

    @property
    def shell(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.active)), [2 * l + 1 for _, l in self.active])

    @cached_property
    def _core(self) -> tuple[float, np.ndarray]:
        """Energy of the frozen electrons, and what acts on the others over basis functions."""
        mol = self.orbitals.functions.mol
        hamiltonian = scf.hf.get_hcore(mol)
        filled = self.orbitals.coefficients(self.frozen)
        if not filled.shape[1]:
            return 0.0, hamiltonian
        dm = 2.0 * filled @ filled.T
        coulomb, exchange = scf.hf.get_jk(mol, dm, hermi=1)
        field = coulomb - 0.5 * exchange
        return float(np.einsum("mn,nm->", hamiltonian + 0.5 * field, dm)), hamiltonian + field

    @property
    def constant(self) -> float:
        return self._core[0]

    def one_electron(self) -> np.ndarray:
        """(n, n), diagonal in l and m."""
        c = self.orbitals.coefficients(self.active)
        real = c.T @ self._core[1] @ c
        angular = np.concatenate([np.full(2 * l + 1, l) for _, l in self.active])
        same = (angular[:, None] == angular) & (self.m[:, None] == self.m)
        made: np.ndarray = np.where(same, real, 0.0)
        return made

    @cached_property
    def _repulsion(self) -> np.ndarray:
        """(pq|rs) over real orbitals, packed in p >= q and in r >= s."""
        mol, c = self.orbitals.functions.mol, self.orbitals.coefficients(self.active)
        made: np.ndarray = ao2mo.restore(4, ao2mo.full(mol, c, aosym="s4"), c.shape[1])
        return made

    def block(self, p: np.ndarray, q: np.ndarray, r: np.ndarray, s: np.ndarray) -> np.ndarray:
        """(pq|rs) over complex orbitals, pairs p, q by pairs r, s: real numbers."""
        left, right = self._pairs(p, q), self._pairs(r, s)
        packed = self._repulsion
        real: np.ndarray = right[0] @ (left[0] @ packed).T - right[1] @ (left[1] @ packed).T
        return real.T

    def _pairs(self, p: np.ndarray, q: np.ndarray) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
        """The product p* q of complex orbitals by packed products of real ones; real and imaginary part."""
        places, factors = self._complex
        n = len(places)
        row = np.repeat(np.arange(len(p)), 4)
        one, other = places[p][:, [0, 0, 1, 1]], places[q][:, [0, 1, 0, 1]]
        values = np.conj(factors[p][:, [0, 0, 1, 1]]) * factors[q][:, [0, 1, 0, 1]]
        high, low = np.maximum(one, other), np.minimum(one, other)
        column = (high * (high + 1) // 2 + low).ravel()
        shape = (len(p), n * (n + 1) // 2)
        flat = values.ravel()
        return (
            scipy.sparse.csr_array((flat.real, (row, column)), shape=shape),
            scipy.sparse.csr_array((flat.imag, (row, column)), shape=shape),
        )

    @cached_property
    def _complex(self) -> tuple[np.ndarray, np.ndarray]:
        """Each complex orbital as two real ones: places (n, 2) and factors (n, 2), with the usual phases."""
        places, factors, first = [], [], 0
        for _, l in self.active:
            for m in range(-l, l + 1):
                places.append((first + l + abs(m), first + l - abs(m)))
                if m == 0:
                    factors.append((1.0, 0.0))
                elif m > 0:
                    factors.append(((-1) ** m / np.sqrt(2), 1j * (-1) ** m / np.sqrt(2)))
                else:
                    factors.append((1 / np.sqrt(2), -1j / np.sqrt(2)))
            first += 2 * l + 1
        return np.array(places), np.array(factors, np.complex128)

    def raising(self) -> np.ndarray:
        """L_+ over the orbitals (n, n)."""
        shell, m = self.shell, self.m
        angular = np.array([l for _, l in self.active])[shell]
        made = np.zeros((len(m), len(m)))
        for q in range(len(m)):
            if m[q] < angular[q]:
                made[q + 1, q] = np.sqrt(angular[q] * (angular[q] + 1) - m[q] * (m[q] + 1))
        return made
