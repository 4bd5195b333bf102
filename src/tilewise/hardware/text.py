"""A TOML file with the line of each value, so that a complaint can name it."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewise.errors import InputError
from tilewise.hardware.checks import LEAST, MOST, MOST_OF_ANYTHING

Where = tuple[str | int, ...]
"""The way to a value: keys of tables, and positions in lists."""

_HEADER = re.compile(r"\s*\[(\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"' ]+?)\s*=")


@dataclass(frozen=True)
class MachineText:
    """The content of a file; every method raises InputError with one sentence, the file and the line."""

    path: Path
    content: dict[str, Any]
    lines: dict[Where, int]

    @classmethod
    def read(cls, path: Path) -> MachineText:
        try:
            text = path.read_text(encoding="utf-8")
            return cls(path, tomllib.loads(text), _lines(text))
        except UnicodeDecodeError:
            raise InputError(f"{path}: it is not a text file; a machine is described in TOML") from None
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"(.*) \(at line (\d+), column \d+\)", str(error))
            line = int(found[2]) if found else len(text.splitlines())
            reason = found[1] if found else str(error)
            raise InputError(f"{path}, line {max(line, 1)}: it is not TOML: {reason}") from None
        except (ValueError, RecursionError):  # numbers of thousands of digits, lists in lists without end
            raise InputError(f"{path}: it is no machine: numbers are too long, or lists too deep") from None

    def wrong(self, where: Where, what: str) -> InputError:
        return InputError(f"{self.path}, line {self.line(where)}: {what}")

    def line(self, where: Where) -> int:
        """Of a value, or of the closest table around it."""
        known = (self.lines[where[:n]] for n in range(len(where), 0, -1) if where[:n] in self.lines)
        return next(known, 1)

    def value(self, where: Where) -> Any:
        found: Any = self.content
        for key in where:
            found = found[key]
        return found

    def only(self, where: Where, needed: Sequence[str], allowed: Sequence[str] = ()) -> None:
        """A table with all of these keys, perhaps those that are allowed, and no others."""
        table, name = self.value(where), shown(where)
        if not isinstance(table, dict):
            raise self.wrong(where, f"{name} must be a table with {', '.join(needed)}")
        place = f"table {name}" if where else "the file"
        for key in table:
            if key not in needed and key not in allowed:
                valid = ", ".join((*needed, *allowed))
                raise self.wrong((*where, key), f"unknown value '{key}'; {place} has {valid}")
        for key in needed:
            if key not in table:
                raise self.wrong(where, f"{place} lacks the value '{key}'")

    def tables(self, key: str) -> int:
        """The number of tables in a list that may be missing."""
        entries = self.content.get(key, [])
        if not isinstance(entries, list):
            raise self.wrong((key,), f"'{key}' must be a list of tables, written as [[{key}]]")
        return len(entries)

    def flag(self, where: Where) -> bool:
        """False if it is left out."""
        value = self.value(where[:-1]).get(where[-1], False)
        if not isinstance(value, bool):
            raise self.wrong(where, f"{shown(where)} = {value!r}: true or false is expected")
        return value

    def whole(self, where: Where, least: int = 0, default: int | None = None) -> int:
        if default is not None and where[-1] not in self.value(where[:-1]):
            return default
        value = self.value(where)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.wrong(where, f"{shown(where)} = {value!r}: a whole number from {least} up is expected")
        if value > MOST_OF_ANYTHING:
            raise self.wrong(where, f"{shown(where)} = {value!r}: there are {MOST_OF_ANYTHING} at most")
        return value

    def number(
        self, where: Where, positive: bool = False, infinite: bool = False, default: float | None = None
    ) -> float:
        if default is not None and where[-1] not in self.value(where[:-1]):
            return default
        value = self.value(where)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
        in_range = is_number and (value > 0 if positive else value >= 0)
        if not in_range or (math.isinf(value) and not infinite):
            expected = "a number above 0" if positive else "a number from 0 up"
            raise self.wrong(where, f"{shown(where)} = {value!r}: {expected} is expected")
        if value and not LEAST <= value <= MOST and not math.isinf(value):
            raise self.wrong(where, f"{shown(where)} = {value!r}: numbers go from {LEAST:g} to {MOST:g}")
        return float(value)


def shown(where: Where) -> str:
    """The name of a value, such as network.latency or load[2].core."""
    text = ""
    for key in where:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def _lines(text: str) -> dict[Where, int]:
    """Where each key stands; entries of lists that are written in braces are found by these."""
    lines: dict[Where, int] = {}
    table: Where = ()
    counts: dict[Where, int] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0]
        if header := _HEADER.match(line):
            table = _keys(header[2])
            if header[1]:
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            where = (*table, *_keys(key[1]))
            lines.setdefault(where, number)
            counts[where] = -1
        if (last := next(reversed(counts), None)) and not header:
            for _ in range(line.count("{")):
                counts[last] += 1
                lines.setdefault((*last, counts[last]), number)
    return lines


def _keys(text: str) -> Where:
    return tuple(word.strip().strip("\"'") for word in text.split("."))
