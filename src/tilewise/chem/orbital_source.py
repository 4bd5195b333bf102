"""Outlines of molecules that are known by their orbitals alone."""

from __future__ import annotations

from tilewise.chem.reference import Outline
from tilewise.chem.selection import Frozen
from tilewise.chem.symmetry import subgroup_wish
from tilewise.errors import InputError
from tilewise.spaces.orbitals import orbitals_named


def orbital_outline(name: str, frozen: Frozen = None, symmetry: str = "auto") -> Outline:
    """The outline of a molecule such as "water-10"; all of its core is frozen, or nothing."""
    counts = orbitals_named(name)
    core = sum(counts.core)
    if frozen not in (None, 0, "auto", core):
        raise InputError(f"--frozen {frozen}: {name} is known by its orbitals alone; give 0, {core} or auto")
    if frozen in ("auto", core):
        counts = counts.without_core()
    whole = Outline(
        title=name,
        formula=counts.formula,
        group=counts.group,
        basis=counts.basis,
        occ=counts.occupied,
        vir=counts.virtual,
        frozen_core=core if counts.frozen else 0,
        frozen_virtual=0,
        n_electrons=counts.n_electrons,
        source="orbital counts alone",
        n_basis=counts.n_basis,
    )
    return whole.restrict(subgroup_wish(whole.group, symmetry))
