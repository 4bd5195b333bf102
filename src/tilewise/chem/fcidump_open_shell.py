"""Open shells from FCIDUMP files: the ROHF, or the UHF, whose integrals they hold."""

from __future__ import annotations

import math

import numpy as np

from tilewise.chem.fcidump_integrals import BySpin, SpinIntegrals
from tilewise.chem.fcidump_text import Dump
from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.open_shell import OpenReference
from tilewise.chem.reference import Outline, Reference
from tilewise.chem.selection import (
    BRILLOUIN_TOLERANCE,
    Frozen,
    Selection,
    check_canonical,
    select_by_spin,
    spins_of,
)
from tilewise.errors import InputError
from tilewise.symmetry.groups import PointGroup


def open_shell(
    dump: Dump,
    integrals: SpinIntegrals,
    core_energy: float,
    labelled: tuple[PointGroup, np.ndarray],
    frozen: Frozen,
) -> OpenReference:
    """The ROHF of a file with unpaired electrons, or the UHF of one with integrals for each spin.

    `labelled` is the point group, and the irrep of each orbital of the file.
    """
    (group, irreps), name = labelled, dump.path.name
    kind, find = ("rohf", _shells) if integrals.mixed is None else ("uhf", _lowest_levels)
    occupied = find(integrals, *spins_of(dump.n_electrons, dump.spin), name)
    focks, every = integrals.focks(occupied), np.arange(dump.n_orbitals)
    levels = [np.diag(fock).copy() for fock in focks]
    h_diagonals = [np.diag(h) for h in integrals.hamiltonians]
    ranked = levels if kind == "uhf" else [levels[0] + levels[1]] * 2
    virtual = [np.setdiff1d(every, own) for own in occupied]
    chosen = select_by_spin(frozen, occupied, virtual, ranked, None)
    energy = core_energy + 0.5 * sum(
        float((h + e)[own].sum()) for own, h, e in zip(occupied, h_diagonals, levels, strict=True)
    )
    core, remedy = (chosen[0].core, chosen[1].core), f"write {name} over canonical UHF orbitals"
    references = []
    for spin, (energies, selected) in enumerate(zip(levels, chosen, strict=True)):
        active = selected.sorted_by(irreps, energies)
        if kind == "uhf":
            check_canonical(focks[spin][np.ix_(active.order, active.order)], len(active.occ), remedy)
        references.append(
            Reference(
                outline=outline_of_file(dump, group, irreps, active),
                occ_energies=energies[active.occ],
                vir_energies=energies[active.vir],
                e_hf=energy,
                identity=OrbitalIdentity.of_file(energies, h_diagonals[spin], active),
                order=active.order,
                integrals=integrals.of_spin(spin, core, occupied),
                remedy=remedy,
                is_canonical=kind == "uhf",
            )
        )
    overlap = None if kind == "uhf" else np.eye(dump.n_orbitals)  # such a file does not tell
    return OpenReference(kind, references[0], references[1], overlap, occupied)


def outline_of_file(dump: Dump, group: PointGroup, irreps: np.ndarray, active: Selection) -> Outline:
    """The active orbitals of a closed shell, or of one spin, counted."""
    occ, vir = active.counts(irreps, group.order)
    return Outline(
        title=dump.path.name,
        formula="",
        group=group,
        basis="FCIDUMP",
        occ=occ,
        vir=vir,
        frozen_core=len(active.core),
        frozen_virtual=active.frozen_virtual,
        n_electrons=dump.n_electrons,
        source="orbitals of a FCIDUMP file",
    )


def _shells(integrals: SpinIntegrals, n_alpha: int, n_beta: int, name: str) -> BySpin:
    """The occupied orbitals of alpha and of beta spin: those nearest to solving the equations of ROHF.

    Files list orbitals by energy or by irrep, so two orders are tried at first; from each, doubly and then
    singly occupied orbitals are filled by the mean of the two Fock matrices until they stay.
    """
    hamiltonian = integrals.hamiltonians[0]
    n = len(hamiltonian)
    orders = [np.arange(n), np.argsort(np.diag(hamiltonian), kind="stable")]
    best: tuple[float, float, BySpin] | None = None
    seen: set[tuple[int, ...]] = set()
    for order in orders:
        while len(seen) < 40:
            alpha, beta = np.sort(order[:n_alpha]), np.sort(order[:n_beta])
            if (key := (*alpha.tolist(), -1, *beta.tolist())) in seen:
                break
            seen.add(key)
            focks = integrals.focks((alpha, beta))
            mean = 0.5 * (focks[0] + focks[1])
            single, empty = np.setdiff1d(alpha, beta), np.setdiff1d(np.arange(n), alpha)
            # Doubly with singly occupied, singly occupied with empty, doubly occupied with empty ones.
            couplings = (
                focks[1][np.ix_(beta, single)],
                focks[0][np.ix_(single, empty)],
                mean[np.ix_(beta, empty)],
            )
            broken = max(float(np.abs(x).max(initial=0.0)) for x in couplings)
            diagonals = [np.diag(fock) + np.diag(hamiltonian) for fock in focks]
            energy = float(diagonals[0][alpha].sum() + diagonals[1][beta].sum()) / 2
            rank = (round(math.log10(max(broken, 1e-5))), energy)
            if best is None or rank < best[:2]:
                best = (*rank, (alpha, beta))
            order = np.argsort(np.diag(mean), kind="stable")
    assert best is not None
    if best[0] > math.log10(BRILLOUIN_TOLERANCE):
        raise InputError(
            f"{name}: no determinant of its orbitals solves the ROHF equations (the Fock matrices have "
            f"1e{best[0]} between occupied and virtual orbitals); write it over converged ROHF orbitals"
        )
    return best[2]


def _lowest_levels(integrals: SpinIntegrals, n_alpha: int, n_beta: int, name: str) -> BySpin:
    """The occupied orbitals of a UHF: of each spin the lowest levels of its Fock matrix, from two starts."""
    counts, diagonals = (n_alpha, n_beta), [np.diag(h) for h in integrals.hamiltonians]
    starts = [
        [np.arange(len(diagonal)) for diagonal in diagonals],
        [np.argsort(diagonal, kind="stable") for diagonal in diagonals],
    ]
    best: tuple[float, float, BySpin] | None = None
    seen: set[tuple[int, ...]] = set()
    for orders in starts:
        while len(seen) < 40:
            alpha, beta = (np.sort(order[:n]) for order, n in zip(orders, counts, strict=True))
            if (key := (*alpha.tolist(), -1, *beta.tolist())) in seen:
                break
            seen.add(key)
            focks, broken, energy = integrals.focks((alpha, beta)), 0.0, 0.0
            for fock, diagonal, own in zip(focks, diagonals, (alpha, beta), strict=True):
                others = np.setdiff1d(np.arange(len(fock)), own)
                broken = max(broken, float(np.abs(fock[np.ix_(own, others)]).max(initial=0.0)))
                energy += 0.5 * float((np.diag(fock) + diagonal)[own].sum())
            rank = (round(math.log10(max(broken, 1e-5))), energy)
            if best is None or rank < best[:2]:
                best = (*rank, (alpha, beta))
            orders = [np.argsort(np.diag(fock), kind="stable") for fock in focks]
    assert best is not None
    if best[0] > math.log10(BRILLOUIN_TOLERANCE):
        raise InputError(
            f"{name}: no determinant of its orbitals solves the UHF equations (the Fock matrices have "
            f"1e{best[0]} between occupied and virtual orbitals); its sections must be (aa|aa), (bb|bb), "
            "(aa|bb), h of alpha, h of beta, over converged UHF orbitals"
        )
    return best[2]
