"""Arguments that users give in Python: what cannot be meant is refused in a sentence that names it."""

from __future__ import annotations

import math
import os
from numbers import Real
from pathlib import Path
from typing import Any

from tilewise.errors import InputError

MOST_THREADS = 4096
"""More than any machine has: a slip of the finger is not tried out."""
MOST_SEED = 2**62
"""Of noise: runs after the first one take the seeds that follow."""


def whole_number(name: str, value: Any, least: int | None = 1, most: int | None = None) -> int:
    """A whole number from `least` up (None: of either sign), or to `most`; also one that is written 4.0."""
    is_whole = _is_number(value) and value % 1 == 0  # of what is not finite that is not a number
    if not is_whole or (least is not None and value < least) or (most is not None and value > most):
        from_least = (
            "" if least is None else f" from {least} up" if most is None else f" from {least} to {most}"
        )
        raise InputError(f"{name}={value!r}: {name} must be a whole number{from_least}")
    return int(value)


def digits(text: str) -> int | None:
    """What up to nine decimal digits mean; None for any other text, such as a slip of hundreds of them."""
    return int(text) if text.isdecimal() and len(text) < 10 else None


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    if not _is_number(value) or not 0 < value < math.inf:
        raise InputError(f"{name}={value!r}: {name} must be a positive number")
    return float(value)


def from_zero(name: str, value: Any) -> float:
    """A finite number from 0 up."""
    if not _is_number(value) or not 0 <= value < math.inf:
        raise InputError(f"{name}={value!r}: {name} must be a number from 0 up")
    return float(value)


def number(name: str, value: Any) -> float:
    """Any finite number."""
    if not _is_number(value) or not math.isfinite(value):
        raise InputError(f"{name}={value!r}: {name} must be a finite number")
    return float(value)


def plain_text(name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise InputError(f"{name}={value!r}: {name} must be a text")
    return value


def texts(name: str, value: Any, example: str) -> list[str]:
    """A text, or a list of one at least, as a list."""
    found = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    if not found or not all(isinstance(text, str) for text in found):
        raise InputError(f"{name}={value!r}: {name} must be a text such as '{example}', or a list of them")
    return found


def flag(name: str, value: Any) -> bool:
    """True or False; nothing else, for most other things would count as true."""
    if type(value).__name__ not in ("bool", "bool_"):  # Python's and NumPy's
        raise InputError(f"{name}={value!r}: {name} must be True or False")
    return bool(value)


def path_or_none(name: str, value: Any) -> Path | None:
    """The path of a file, or None for none."""
    return None if value is None or (isinstance(value, str) and not value) else file_path(name, value)


def file_path(name: str, value: Any) -> Path:
    """The path of a file."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name}={value!r}: {name} must be the path of a file")
    return Path(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
