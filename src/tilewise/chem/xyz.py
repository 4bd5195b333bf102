"""Geometries as text: XYZ files and lines of "symbol x y z", in angstrom.

PySCF reads them too, but a typo surfaces there as a stack trace; here every complaint names the
file and the line.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tilewise.errors import InputError

Atom = tuple[str, tuple[float, float, float]]

_SYMBOLS = """H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br
    Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm
    Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf
    Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"""
ELEMENTS = tuple(_SYMBOLS.split())

_GHOST = re.compile(r"(?:ghost[-_.:]?|x[-_.:])(.+)", re.IGNORECASE)
_CLOSEST = 1e-4  # angstrom; nearer atoms are one atom written twice


def read_xyz(path: str | Path) -> tuple[list[Atom], str]:
    """The atoms and the comment line of an XYZ file; ghost atoms come out as "ghost-O"."""
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"{path}: {'not a file' if path.exists() else 'no such file'}; an XYZ file is needed"
        )
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    count_line = lines[0].split() if lines else []
    if len(count_line) != 1 or not count_line[0].isdecimal() or int(count_line[0]) < 1:
        found = lines[0].strip() if lines else ""
        raise InputError(f"{path.name}, line 1: expected the number of atoms, found '{found}'")
    announced = int(count_line[0])
    while len(lines) > 2 and not lines[-1].strip():
        lines.pop()
    atoms, numbers = _parse_lines([(k, text) for k, text in enumerate(lines[2:], start=3)], path.name)
    if len(atoms) != announced:
        raise InputError(f"{path.name}, line 1: announces {announced} atoms, but {len(atoms)} follow")
    _check_distances(atoms, numbers, path.name)
    return atoms, lines[1].strip()


def parse_atoms(text: str, where: str = "geometry") -> list[Atom]:
    """Atoms from lines (or ';'-separated pieces) of "symbol x y z", without an XYZ header."""
    pieces = re.split(r"[;\n]", text.strip())
    numbered = [(k, piece) for k, piece in enumerate(pieces, start=1) if piece.strip()]
    if not numbered:
        raise InputError(f"{where}: no atom given; expected lines of 'symbol x y z'")
    atoms, numbers = _parse_lines(numbered, where)
    _check_distances(atoms, numbers, where)
    return atoms


def looks_like_atoms(text: str) -> bool:
    """Whether a string is a geometry itself rather than the name of a file."""
    return "\n" in text or ";" in text or len(text.replace(",", " ").split()) >= 4


def formula(symbols: Sequence[str], charge: int = 0) -> str:
    """Hill's order (C, H, then by alphabet) with the charge at the end: C2H5+, O4S^2-."""
    counts = Counter(symbols)
    first = [symbol for symbol in ("C", "H") if symbol in counts] if "C" in counts else []
    ordered = first + sorted(set(counts) - set(first))
    text = "".join(f"{symbol}{counts[symbol] if counts[symbol] > 1 else ''}" for symbol in ordered)
    if charge:
        text += (f"^{abs(charge)}" if abs(charge) > 1 else "") + ("+" if charge > 0 else "-")
    return text


def _parse_lines(numbered: list[tuple[int, str]], where: str) -> tuple[list[Atom], list[int]]:
    atoms = []
    for number, line in numbered:
        place = f"{where}, line {number}"
        words = line.replace(",", " ").split()
        try:
            symbol, position = words[0], tuple(float(re.sub("[dD]", "e", word)) for word in words[1:4])
        except (IndexError, ValueError):
            position = ()
        if len(position) != 3:
            raise InputError(f"{place}: expected 'symbol x y z', found '{line.strip()}'")
        if not all(math.isfinite(x) for x in position):
            raise InputError(f"{place}: coordinates must be finite numbers, found '{line.strip()}'")
        atoms.append((_standard_symbol(symbol, place), (position[0], position[1], position[2])))
    return atoms, [number for number, _ in numbered]


def _standard_symbol(text: str, place: str) -> str:
    """ "o", "8", "O1" -> "O"; "X-O", "ghost-o", "GHOST8" -> "ghost-O"."""
    ghost = _GHOST.fullmatch(text)
    core = ghost[1] if ghost else text
    if core.isdecimal() and 1 <= int(core) <= len(ELEMENTS):
        symbol = ELEMENTS[int(core) - 1]
    else:
        symbol = core.rstrip("0123456789").capitalize()
    if symbol not in ELEMENTS:
        close = difflib.get_close_matches(symbol, ELEMENTS, n=3, cutoff=0.3)
        hint = (
            f"; did you mean {' or '.join(close)}?"
            if close
            else "; expected an element's symbol or atomic number"
        )
        raise InputError(f"{place}: unknown element '{text}'{hint}")
    return f"ghost-{symbol}" if ghost else symbol


def _check_distances(atoms: list[Atom], numbers: list[int], where: str) -> None:
    positions = np.array([position for _, position in atoms])
    for k in range(1, len(atoms)):
        distances = np.linalg.norm(positions[:k] - positions[k], axis=1)
        if distances.min() < _CLOSEST:
            other = int(distances.argmin())
            raise InputError(
                f"{where}, line {numbers[k]}: atom {k + 1} ({atoms[k][0]}) is at the same place as "
                f"atom {other + 1} ({atoms[other][0]}) of line {numbers[other]}"
            )
