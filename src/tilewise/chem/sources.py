"""What a user may hand over: a PySCF object, a Reference, or an Outline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from numbers import Real
from typing import Any

from tilewise.chem.open_shell import AnyReference, OpenReference
from tilewise.chem.reference import Outline, Reference
from tilewise.chem.selection import freezes
from tilewise.chem.symmetry import subgroup_wish
from tilewise.errors import InputError

if "pyscf" in sys.modules:  # one of its objects is likely to come: be ready for it
    import_module("tilewise.chem.pyscf_source")


Fitting = bool | str | float | None
"""True or the name of an auxiliary basis for density fitting, a Cholesky threshold, or neither."""


def fitting_wish(df: Any, cholesky: Any) -> Fitting:
    """One wish from the two arguments."""
    if not (df is None or isinstance(df, bool | str)) or df == "":
        raise InputError(f"df={df!r}: expected True, False or the name of an auxiliary basis")
    if cholesky is None:
        return df
    if df:
        raise InputError("df and cholesky exclude each other: choose one")
    if isinstance(cholesky, bool) or not isinstance(cholesky, Real) or not 0 < float(cholesky) < 1:
        raise InputError(
            f"cholesky={cholesky!r}: expected a threshold between 0 and 1, such as 1e-6, or None"
        )
    return float(cholesky)


def reference_of(
    source: Any, frozen: Any = None, symmetry: str | bool | None = "auto", fitting: Fitting = None
) -> AnyReference:
    """A Reference from a PySCF mean field, or one that is given."""
    if isinstance(source, Reference | OpenReference):
        _check_unchanged("a Reference", frozen, fitting)
        wanted = subgroup_wish(source.outline.group, symmetry)
        return source if wanted == source.outline.group.name else source.restrict(wanted)
    if not hasattr(source, "mo_coeff"):
        raise InputError(f"expected a PySCF mean field or a tilewise Reference, not {type(source).__name__}")
    from tilewise.chem.pyscf_source import from_mean_field

    return from_mean_field(source, frozen, symmetry, fitting=fitting)


def share_source(source: Any, bcast: Callable[[Any], Any], rank: int) -> None:
    """On several ranks: all take the orbitals of rank 0's mean field. Other sources are the same anyway."""
    if hasattr(source, "mo_coeff"):
        from tilewise.chem.pyscf_shared import share_orbitals

        share_orbitals(source, bcast, rank)


def is_open_shell(source: Any) -> bool:
    """Whether what a user hands over has orbitals or occupations of its own for each spin."""
    if isinstance(source, Reference | OpenReference):
        return isinstance(source, OpenReference)
    if not hasattr(source, "mo_coeff"):
        return False
    from tilewise.chem.pyscf_checks import kind_of

    return kind_of(source) != "rhf"


def outline_of(
    source: Any, frozen: Any = None, symmetry: str | bool | None = "auto", fitting: Fitting = None
) -> Outline:
    """Orbital counts from anything that has them."""
    if isinstance(source, Outline):
        _check_unchanged("an Outline", frozen, fitting)
        wanted = subgroup_wish(source.group, symmetry)
        return source if wanted == source.group.name else source.restrict(wanted)
    if hasattr(source, "intor") and not hasattr(source, "mo_coeff"):
        from tilewise.chem.pyscf_source import outline

        return outline(source, frozen, symmetry, fitting=fitting)
    return reference_of(source, frozen, symmetry, fitting).outline


def _check_unchanged(what: str, frozen: Any, fitting: Fitting) -> None:
    """Refuses what a Reference or an Outline has decided already."""
    if fitting:
        raise InputError(f"fitting is chosen when {what} is made, not afterwards")
    if freezes(frozen):
        raise InputError(f"frozen orbitals are chosen when {what} is made, not afterwards")
