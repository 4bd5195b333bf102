"""What a user may hand over: a PySCF object, a Reference, or an Outline."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tilewise.chem.reference import Outline, Reference
from tilewise.errors import InputError

if "pyscf" in sys.modules:  # one of its objects is likely to come: be ready for it
    import_module("tilewise.chem.pyscf_source")


def reference_of(
    source: Any, frozen: Any = None, symmetry: str = "auto", fitting: bool | str | float | None = None
) -> Reference:
    """A Reference from a PySCF mean field, or one that is given."""
    if isinstance(source, Reference):
        if fitting:
            raise InputError("fitting is chosen when a Reference is made, not afterwards")
        if frozen:
            raise InputError("frozen orbitals are chosen when a Reference is made, not afterwards")
        return source if symmetry == "auto" else source.restrict(symmetry)
    if not hasattr(source, "mo_coeff"):
        raise InputError(f"expected a PySCF mean field or a tilewise Reference, not {type(source).__name__}")
    from tilewise.chem.pyscf_source import from_mean_field

    return from_mean_field(source, frozen, symmetry, fitting=fitting)


def outline_of(source: Any, frozen: Any = None, symmetry: str = "auto") -> Outline:
    """Orbital counts from anything that has them."""
    if isinstance(source, Outline):
        return source if symmetry == "auto" else source.restrict(symmetry)
    if hasattr(source, "intor") and not hasattr(source, "mo_coeff"):
        from tilewise.chem.pyscf_source import outline

        return outline(source, frozen, symmetry)
    return reference_of(source, frozen, symmetry).outline
