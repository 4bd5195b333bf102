"""Atoms in TOML files: what is to be calculated, in words of atomic physics."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewise.errors import InputError, one_of

_KINDS: dict[str, tuple[type, ...]] = {
    "atom": (str,),
    "basis": (str,),
    "reference": (str, list),
    "charge": (int,),
    "frozen": (str, list),
    "rank": (int, str),
    "max_n": (int,),
    "max_l": (int,),
    "terms": (str, list),
    "roots": (int,),
    "policy": (str,),
    "memory": (str, int, float),
    "threads": (int,),
    "levels": (str,),
}
"""Keys of a file, and what their values may be."""


@dataclass(frozen=True)
class AtomInput:
    """One atom: references, orbitals and terms; None or nothing where a default is meant."""

    atom: str
    basis: str
    reference: tuple[str, ...] = ()
    charge: int = 0
    frozen: tuple[str, ...] = ()
    rank: int | None = 2
    max_n: int | None = None
    max_l: int | None = None
    terms: tuple[str, ...] = ()
    roots: int = 1
    policy: str | None = None
    memory: str | int | float | None = None
    threads: int | None = None
    levels: Path | None = None


def read_atom(path: Path) -> AtomInput:
    """Reads a TOML file such as examples/neon.toml."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: it cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not a TOML file ({error})") from error
    except (ValueError, RecursionError):  # numbers of thousands of digits, lists in lists without end
        raise InputError(f"{path}: it is no atom: numbers are too long, or lists too deep") from None
    for key, value in content.items():
        if key not in _KINDS:
            raise one_of(f"key of {path.name}", key, _KINDS)
        kinds = _KINDS[key]
        if not isinstance(value, kinds) or isinstance(value, bool):
            names = " or ".join(
                {str: "text", list: "list", int: "whole number", float: "number"}[k] for k in kinds
            )
            raise InputError(f"{path}: {key} = {value!r}, where a {names} is expected")
    for key in ("atom", "basis"):
        if key not in content:
            raise InputError(
                f'{path}: {key} is missing, such as {key} = "{"Ne" if key == "atom" else "cc-pvtz"}"'
            )
    values: dict[str, Any] = dict(content)
    for key, separator in (("reference", None), ("frozen", " "), ("terms", " ")):
        values[key] = _texts(path, key, values.get(key, []), separator)
    values["rank"] = parse_rank(values.get("rank", 2))
    if "levels" in values:
        values["levels"] = path.parent / values["levels"]
    return AtomInput(**values)


def parse_rank(value: int | str) -> int | None:
    """A number, or "full" for None: all electrons."""
    text = str(value).strip().lower()
    if text in ("full", "fci", "all"):
        return None
    if not text.isdecimal() or len(text) > 3:
        raise InputError(f"rank {value}: expected a number of electrons such as 2, or full")
    return int(text)


def _texts(path: Path, key: str, value: Any, separator: str | None) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split(separator)) if separator else (value,)
    if not all(isinstance(word, str) for word in value):
        raise InputError(f"{path}: {key} must be a list of texts")
    return tuple(value)
