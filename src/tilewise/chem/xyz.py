"""Geometries as text: XYZ files and lines of "symbol x y z".

PySCF reads them too, but a typo surfaces there as a stack trace; here every complaint names the
file and the line.
"""

from __future__ import annotations

import codecs
import difflib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewise.errors import InputError
from tilewise.wording import counted

Atom = tuple[str, tuple[float, float, float]]

_SYMBOLS = """H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br
    Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm
    Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf
    Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"""
ELEMENTS = tuple(_SYMBOLS.split())

GHOST = "ghost-"
_ISOTOPES = {"D": "H", "T": "H"}
_GHOSTS = (  # as PySCF, Psi4, Q-Chem, NWChem, Gaussian and ORCA write them
    re.compile(r"(?:ghost[-_.:]?|x[-_.:]|bq[-_.:]?|@)([a-z0-9]+)", re.IGNORECASE),
    re.compile(r"gh(?:ost)?\(([a-z0-9]+)\)", re.IGNORECASE),
    re.compile(r"([a-z0-9]+)(?:@|:|[-_](?:bq|gh|ghost))", re.IGNORECASE),
)
_FARTHEST = 1e6  # beyond that the digits of a float64 do not tell bond lengths apart
_CLOSEST = 1e-4  # nearer atoms are one atom written twice

ANGSTROM, BOHR = UNITS = ("angstrom", "bohr")
_UNIT_WORDS = {  # an energy in a.u. says nothing about lengths
    ANGSTROM: re.compile(r"\b[aå]ngstr[oö]e?ms?\b|\u00c5|\u212b", re.IGNORECASE),
    BOHR: re.compile(
        r"\bbohrs?\b|(?<![\d.]\s)(?<![\d.=])(?:\ba\.u\.|\b(?-i:au|AU)\b|\batomic units?\b)", re.IGNORECASE
    ),
}


@dataclass(frozen=True)
class _Frame:
    """One geometry of a file: the number of its first line, and what stands there."""

    first: int
    announced: int
    comment: str
    lines: list[str]


def read_xyz(path: str | Path, frame: int | None = None) -> tuple[list[Atom], str]:
    """The atoms and the comment line of an XYZ file; ghost atoms come out as "ghost-O".

    Of a file with several geometries, the one with the number `frame` is read: from 1 up, or -1 for the
    last one, -2 for the one before it.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"{path}: {'not a file' if path.exists() else 'no such file'}; an XYZ file is needed"
        )
    chosen = _chosen(_frames(_decoded(path.read_bytes()).splitlines(), path.name), frame, path.name)
    numbered = list(enumerate(chosen.lines, start=chosen.first + 2))
    atoms, numbers = _parse_lines(numbered, path.name)
    if len(atoms) != chosen.announced:
        raise InputError(
            f"{path.name}, line {chosen.first}: announces {counted(chosen.announced, 'atom')}, "
            f"but {len(atoms)} follow"
        )
    _check_distances(atoms, numbers, path.name)
    return atoms, chosen.comment


def contradicted_unit(comment: str, unit: str) -> str | None:
    """The unit that a comment speaks of, if that is another one than `unit`, and the only one."""
    named = {name for name, words in _UNIT_WORDS.items() if words.search(comment)}
    return None if len(named) != 1 or unit in named else named.pop()


def _decoded(content: bytes) -> str:
    """Text with or without a byte order mark."""
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_wide else "utf-8-sig", errors="replace")


def _frames(lines: list[str], name: str) -> list[_Frame]:
    """All geometries of a file; blank lines between them do not count."""
    frames: list[_Frame] = []
    at = _after_blank(lines, 0)
    while at < len(lines) or not frames:
        count = lines[at].split() if at < len(lines) else []
        if not _is_count(count):
            found, line = (lines[at].strip(), at + 1) if at < len(lines) else ("", 1)
            raise InputError(f"{name}, line {line}: expected the number of atoms, found '{found}'")
        end = _after_blank(lines, min(at + 2 + int(count[0]), len(lines)))
        while end < len(lines) and not _is_count(lines[end].split()):  # more atoms than were announced
            end += 1
        body = lines[at + 2 : end]
        while body and not body[-1].strip():
            body.pop()
        comment = lines[at + 1].strip() if at + 1 < len(lines) else ""
        frames.append(_Frame(at + 1, int(count[0]), comment, body))
        at = end
    return frames


def _chosen(frames: list[_Frame], number: int | None, name: str) -> _Frame:
    if number is None and len(frames) > 1:
        raise InputError(
            f"{name} holds {len(frames)} geometries: choose one with --frame, from 1 to {len(frames)}, "
            "or -1 for the last"
        )
    number = 1 if number is None else number
    if not 1 <= abs(number) <= len(frames):
        there = "1 geometry" if len(frames) == 1 else f"{len(frames)} geometries, numbered from 1"
        raise InputError(f"{name}: there is no frame {number}; the file holds {there}")
    return frames[number - 1 if number > 0 else number]


def _after_blank(lines: list[str], at: int) -> int:
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _is_count(words: list[str]) -> bool:
    return len(words) == 1 and words[0].isdecimal() and len(words[0]) < 10 and int(words[0]) > 0


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
        if len(words) > 4 and words[1] == ":":  # ORCA's ghost atoms
            words[:2] = [f"{words[0]}:"]
        try:
            symbol, position = words[0], tuple(float(re.sub("[dD]", "e", word)) for word in words[1:4])
        except (IndexError, ValueError):
            position = ()
        if len(position) != 3:
            raise InputError(f"{place}: expected 'symbol x y z', found '{line.strip()}'")
        if not all(math.isfinite(x) for x in position):
            raise InputError(f"{place}: coordinates must be finite numbers, found '{line.strip()}'")
        if max(map(abs, position)) > _FARTHEST:
            raise InputError(f"{place}: coordinates go up to {_FARTHEST:g}, found '{line.strip()}'")
        atoms.append((standard_symbol(symbol, place), (position[0], position[1], position[2])))
    return atoms, [number for number, _ in numbered]


def standard_symbol(text: str, place: str) -> str:
    """ "o", "8", "O1" -> "O"; "D" -> "H"; "X-O", "@o", "Gh(O)", "O-Bq" -> "ghost-O"."""
    found = [match[1] for pattern in _GHOSTS if (match := pattern.fullmatch(text))]
    core = found[0] if found else text
    if core.isdecimal() and len(core) < 4 and 1 <= int(core) <= len(ELEMENTS):
        symbol = ELEMENTS[int(core) - 1]
    else:
        symbol = core.rstrip("0123456789").capitalize()
    symbol = _ISOTOPES.get(symbol, symbol)
    if symbol not in ELEMENTS:
        close = difflib.get_close_matches(symbol, ELEMENTS, n=3, cutoff=0.3)
        hint = (
            f"; did you mean {' or '.join(close)}?"
            if close
            else "; expected an element's symbol or atomic number"
        )
        raise InputError(f"{place}: unknown element '{text}'{hint}")
    return f"{GHOST}{symbol}" if found else symbol


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
