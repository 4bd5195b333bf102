"""Names of basis sets: checked before they are used, and as shown to people."""

from __future__ import annotations

import difflib
import re
import warnings
from pathlib import Path
from typing import Any

from tilewise.chem.xyz import GHOST, Atom, standard_symbol
from tilewise.errors import InputError


def check_basis(atoms: list[Atom], basis: Any, library: Any) -> dict[str, str]:
    """Refuse an unknown basis now, by name; return the core potentials that belong to it.

    `library` is `pyscf.gto.basis`.
    """
    potentials = {}
    for symbol in sorted({symbol for symbol, _ in atoms}):
        element = symbol.removeprefix(GHOST)
        name = (
            basis.get(symbol, basis.get(element, basis.get("default"))) if isinstance(basis, dict) else basis
        )
        if name is None:
            raise InputError(f"no basis given for {symbol}: name one for it, or one for all elements")
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


def parse_basis(text: str) -> str | dict[str, str]:
    """One basis for all, or such as "cc-pvdz,O=aug-cc-pvdz": one by default, and others for some elements."""
    names: dict[str, str] = {}
    for part in re.split(r",(?![^()]*\))", text):
        left, equals, right = part.strip().rpartition("=")
        element, name = left.strip(), right.strip()
        if not name or "\n" in name or (equals and not element):
            raise InputError(
                f"--basis '{text}': expected a name such as cc-pvdz, or one for all and others for some "
                "elements, as in cc-pvdz,O=aug-cc-pvdz"
            )
        key = standard_symbol(element, f"--basis '{text}'") if element else "default"
        if key in names:
            whose = "all elements" if key == "default" else key
            raise InputError(f"--basis '{text}': two are given for {whose}, one is expected")
        names[key] = name
    return names["default"] if list(names) == ["default"] else names


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
    """A basis in words: its name, or "cc-pvdz, O: cc-pvtz"."""
    if isinstance(basis, str):
        return basis
    if isinstance(basis, dict) and all(isinstance(name, str) for name in basis.values()):
        return ", ".join(
            name if symbol == "default" else f"{symbol}: {name}" for symbol, name in basis.items()
        )
    return "custom"
