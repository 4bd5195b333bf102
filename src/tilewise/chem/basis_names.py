"""Names of basis sets: checked before they are used, and as shown to people."""

from __future__ import annotations

import difflib
import re
import warnings
from pathlib import Path
from typing import Any

from tilewise.chem.xyz import Atom
from tilewise.errors import InputError


def check_basis(atoms: list[Atom], basis: Any, library: Any) -> dict[str, str]:
    """Refuse an unknown basis now, by name; return the core potentials that belong to it.

    `library` is `pyscf.gto.basis`.
    """
    potentials = {}
    for symbol in sorted({symbol for symbol, _ in atoms}):
        element = symbol.removeprefix("ghost-")
        name = (
            basis.get(symbol, basis.get(element, basis.get("default"))) if isinstance(basis, dict) else basis
        )
        if name is None:
            raise InputError(f"no basis given for {symbol}: add it to the basis dictionary, or a 'default'")
        if not isinstance(name, str) or "\n" in name:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                library.load(name, element)
            except Exception as error:  # PySCF raises a dozen kinds here
                raise _basis_error(name, element, library) from error
            try:
                if symbol == element and library.load_ecp(name, element):
                    potentials[element] = name
            except Exception:
                continue  # an all-electron basis
    return potentials


def _basis_error(name: str, element: str, library: Any) -> InputError:
    """An unknown basis, with close names as people write them, or a known one without this element."""
    written = {}
    for key, files in library.ALIAS.items():
        stem = Path(files).stem.lower() if isinstance(files, str) else key
        written[key] = stem if _squeezed(stem) == key else key
    if _squeezed(name) in written or library._is_pople_basis(_squeezed(name)):
        return InputError(f"basis '{name}' has no functions for {element}: choose a basis that covers it")
    close = difflib.get_close_matches(_squeezed(name), written, n=3)
    hint = (
        f"did you mean {', '.join(written[key] for key in close)}?"
        if close
        else "try cc-pvdz, def2-svp or 6-31g"
    )
    return InputError(f"unknown basis '{name}': {hint}")


def _squeezed(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


def auxiliary_name(basis: Any) -> str:
    """An auxiliary basis in words: one name if it is the same for all elements."""
    if not isinstance(basis, dict):
        return basis_name(basis)
    names = {
        symbol: name if isinstance(name, str) else "even-tempered" for symbol, name in sorted(basis.items())
    }
    different = set(names.values())
    return different.pop() if len(different) == 1 else basis_name(names)


def basis_name(basis: Any) -> str:
    """A basis in words: its name, or "O: cc-pvtz, H: cc-pvdz"."""
    if isinstance(basis, str):
        return basis
    if isinstance(basis, dict) and all(isinstance(name, str) for name in basis.values()):
        return ", ".join(f"{symbol}: {name}" for symbol, name in basis.items())
    return "custom"
