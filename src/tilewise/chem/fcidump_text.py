"""Reading the text of a FCIDUMP: a Fortran namelist, then lines of "value i j k l".

A million lines take a second or two, so the body is parsed by NumPy in one go; only when
that fails is the file walked line by line, to name the line that is wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from tilewise.config import format_bytes, memory_limit
from tilewise.errors import InputError, MemoryBudgetError

_KEY = re.compile(r"([A-Z_][A-Z0-9_]*)\s*(?:\([^)]*\)\s*)?=")
_END = re.compile(r"&END|\$END|/", re.IGNORECASE)
_TRUE = re.compile(r"\.?T(RUE)?\.?|1", re.IGNORECASE)

SECTIONS = ("(aa|aa)", "(bb|bb)", "(aa|bb)", "h of alpha", "h of beta", "the core energy")
"""Of files with integrals for each spin (IUHF=1), as Molpro writes them; a line of zeros ends each but the
last."""


@dataclass(frozen=True, eq=False)
class Dump:
    """A FCIDUMP's content: integral `values` with their `indices` (n, 4), from 1, as in the file."""

    n_orbitals: int
    n_electrons: int
    spin: int
    orbsym: np.ndarray
    core_energy: float | None
    values: np.ndarray
    indices: np.ndarray
    path: Path
    body_start: int
    sections: np.ndarray | None = None
    """Of a file with integrals for each spin: the number in SECTIONS that each line belongs to."""

    def checked_core_energy(self) -> float:
        """The core energy; without it, or without any one-electron integral, the end of the file is lost."""
        one_electron = (self.indices[:, 1] > 0) & (self.indices[:, 2] == 0)
        if not one_electron.any():
            missing = "one-electron integrals; expected 'value i j 0 0'"
        elif self.core_energy is None:
            missing = "core energy; expected 'value 0 0 0 0', also if it is 0"
        else:
            return self.core_energy
        raise InputError(f"{self.path.name} is truncated: it has no {missing}")

    def line_number(self, row: int) -> int:
        """The line of the file that holds an integral."""
        with open(self.path, encoding="utf-8", errors="replace") as file:
            filled = (k for k, line in enumerate(file, start=1) if k >= self.body_start and _stripped(line))
            return next(islice(filled, row, None), 0)


def parse(path: Path) -> Dump:
    """Header and integrals of a FCIDUMP over real orbitals, one set for both spins or one for each."""
    if not path.is_file():
        raise InputError(f"{path}: {'not a file' if path.exists() else 'no such file'}; a FCIDUMP is needed")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    header, body_start = _header(lines, path.name)
    by_spin = _has_spins(header)
    n_orbitals, n_electrons, spin, orbsym = _checked(header, path.name)
    if by_spin:
        _check_size(n_orbitals, path.name, 4)
    table = _table(lines[body_start - 1 :], body_start, path.name)
    values, numbers = table[:, 0], table[:, 1:]
    possible = (numbers >= 0) & (numbers <= n_orbitals)
    indices = np.where(possible, numbers, 0).astype(np.int64)

    pattern = (indices > 0) @ np.array([8, 4, 2, 1])
    bad = (numbers != indices).any(axis=1)
    bad |= ~np.isin(pattern, (0b0000, 0b1000, 0b1100, 0b1111)) | ~np.isfinite(values)
    core = np.flatnonzero(pattern == 0)
    dump = Dump(
        n_orbitals=n_orbitals,
        n_electrons=n_electrons,
        spin=spin,
        orbsym=orbsym,
        core_energy=float(values[core[-1]]) if len(core) else None,
        values=values,
        indices=indices,
        path=path,
        body_start=body_start,
    )
    if bad.any():
        number = dump.line_number(int(np.flatnonzero(bad)[0]))
        raise InputError(
            f"{path.name}, line {number}: expected 'value i j k l' with a finite value "
            f"and orbitals from 1 to {n_orbitals} (0 for none), found '{lines[number - 1].strip()}'"
        )
    return replace(dump, sections=_sections(pattern, values, path.name)) if by_spin else dump


def _sections(pattern: np.ndarray, values: np.ndarray, name: str) -> np.ndarray:
    """The section of each line; `pattern` has a bit for each of the four indices that is not zero."""
    ends = np.flatnonzero(pattern == 0)
    section = np.searchsorted(ends, np.arange(len(pattern)))
    allowed = [(0b1111, 0)] * 3 + [(0b1100, 0b1000, 0)] * 2 + [(0,)]
    is_right = len(ends) == len(SECTIONS) and ends[-1] == len(pattern) - 1 and not values[ends[:-1]].any()
    if not is_right or not all(np.isin(pattern[section == k], own).all() for k, own in enumerate(allowed)):
        raise InputError(
            f"{name}: integrals for each spin (IUHF, UHF) are read in the sections {', '.join(SECTIONS)}, "
            "all but the last with '0.0 0 0 0 0' at the end, and this file has others (lines without "
            f"orbitals: {len(ends)}); of a UHF the mean field can be passed in Python"
        )
    return section


def _has_spins(header: dict[str, list[str]]) -> bool:
    """Whether alpha and beta electrons have orbitals of their own."""
    return any(header.get(key) and _TRUE.fullmatch(header[key][0]) for key in ("UHF", "IUHF"))


def _header(lines: list[str], name: str) -> tuple[dict[str, list[str]], int]:
    """The namelist as {KEY: words}, and the number of the line where the integrals start."""
    text: list[str] = []
    for line in map(_stripped, lines):
        end = _END.search(line)
        text.append(line[: end.start()] if end else line)
        if end:
            break
    else:
        raise InputError(
            f"{name}: the header has no end; expected '&FCI NORB=..., NELEC=..., ... &END' (or '/')"
        )
    joined = " ".join(text).upper()
    start = re.search(r"[&$]FCI", joined)
    if not start or joined[: start.start()].strip():
        raise InputError(
            f"{name}, line 1: expected the header '&FCI NORB=..., NELEC=..., ...', found '{lines[0].strip()}'"
        )
    joined = joined[start.end() :]
    keys = list(_KEY.finditer(joined))
    ends = [*(key.start() for key in keys), len(joined)][1:]
    words = {
        key[1]: joined[key.end() : end].replace(",", " ").split() for key, end in zip(keys, ends, strict=True)
    }
    return words, len(text) + 1


def _checked(header: dict[str, list[str]], name: str) -> tuple[int, int, int, np.ndarray]:
    """NORB, NELEC, MS2 and ORBSYM, once all that the header declares is known to be supported."""
    for key in ("NORB", "NELEC"):
        if not header.get(key):
            raise InputError(f"{name}: the header lacks {key}; expected '&FCI NORB=..., NELEC=..., ... &END'")
    n_orbitals, n_electrons = _integer(header, "NORB", name), _integer(header, "NELEC", name)
    spin, state = _integer(header, "MS2", name, 0), _integer(header, "ISYM", name, 1)
    if n_orbitals < 1 or not 0 < n_electrons <= 2 * n_orbitals:
        raise InputError(f"{name}: NELEC={n_electrons} electrons do not fit into NORB={n_orbitals} orbitals")
    if not 0 <= spin <= min(n_electrons, 2 * n_orbitals - n_electrons) or (n_electrons - spin) % 2:
        right = "an odd" if n_electrons % 2 else "an even"
        raise InputError(
            f"{name}: MS2={spin} does not fit NELEC={n_electrons} electrons in NORB={n_orbitals} orbitals: "
            f"{right} number of unpaired ones, from 0 up, is expected"
        )
    if not spin and state != 1 and not _has_spins(header):
        raise InputError(f"{name}: ISYM={state}, but a closed shell is totally symmetric (ISYM=1)")
    _check_size(n_orbitals, name)
    labels = _orbsym(header.get("ORBSYM", []), name)
    if labels and len(labels) != n_orbitals:
        raise InputError(f"{name}: ORBSYM lists {len(labels)} orbitals, but NORB={n_orbitals}")
    return n_orbitals, n_electrons, spin, np.array(labels or [1] * n_orbitals, dtype=np.int64)


def _check_size(n_orbitals: int, name: str, copies: int = 1) -> None:
    """Refuse what no memory of this machine can hold; `copies` of the integrals of one set of orbitals."""
    pairs = n_orbitals * (n_orbitals + 1) // 2
    needed = 4 * pairs * (pairs + 1) * copies
    if needed > memory_limit():
        raise MemoryBudgetError(
            f"{name}: the integrals of NORB={n_orbitals} orbitals would take {format_bytes(needed)}, "
            f"and this machine has {format_bytes(memory_limit())} of memory"
        )


def _orbsym(words: list[str], name: str) -> list[int]:
    """The irrep of each orbital."""
    labels: list[int] = []
    for word in words:
        match = re.fullmatch(r"(?:(\d{1,6})\*)?(\d{1,6})", word)  # Fortran writes repeats as 8*1
        if not match:
            shown = word if len(word) <= 30 else word[:27] + "..."
            raise InputError(f"{name}: ORBSYM contains '{shown}'; expected irrep numbers, 1 to 8")
        labels += [int(match[2])] * int(match[1] or 1)
    return labels


def _integer(header: dict[str, list[str]], key: str, name: str, default: int = 0) -> int:
    words = header.get(key)
    if not words:
        return default
    if len(words) != 1 or not re.fullmatch(r"[+-]?\d{1,18}", words[0]):
        shown = " ".join(words)
        shown = shown if len(shown) <= 30 else shown[:27] + "..."
        raise InputError(f"{name}: {key}={shown} in the header; expected one whole number")
    return int(words[0])


def _table(lines: list[str], first: int, name: str) -> np.ndarray:
    """The (n, 5) numbers of the body."""
    text = "\n".join(lines)
    if "!" in text or "#" in text:
        text = "\n".join(map(_stripped, lines))
    text = text.translate(str.maketrans("dD", "ee"))
    if not text.strip():
        raise InputError(f"{name}: there are no integrals after the header")
    try:
        table = np.loadtxt(text.split("\n"), dtype=np.float64, comments=None, ndmin=2)
        if table.shape[1] == 5:
            return table
    except ValueError:
        pass
    for number, line in enumerate(lines, start=first):
        words = _stripped(line).translate(str.maketrans("dD", "ee")).split()
        if "(" in line:
            raise InputError(
                f"{name}, line {number}: complex integrals ('{line.strip()}'), only real ones are read"
            )
        try:
            fine = not words or (len(words) == 5 and all(np.isfinite([float(word) for word in words])))
        except ValueError:
            fine = False
        if not fine:
            if len(words) < 5 and not any(map(_stripped, lines[number - first + 1 :])):
                raise InputError(f"{name} is truncated: its last line, {number}, ends after '{line.strip()}'")
            raise InputError(f"{name}, line {number}: expected 'value i j k l', found '{line.strip()}'")
    raise InputError(f"{name}: the integrals cannot be read; expected lines of 'value i j k l'")


def _stripped(line: str) -> str:
    """A line without its comment (from ! on, or all of it after a leading #)."""
    line = line.partition("!")[0].strip()
    return "" if line.startswith("#") else line
