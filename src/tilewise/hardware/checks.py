"""What the values of a machine must be, wherever they come from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewise.arguments import flag, from_zero, plain_text, positive, whole_number
from tilewise.errors import InputError

MOST_OF_ANYTHING = 10**9
"""Nodes, cores, tasks or buffers."""
LEAST, MOST = 1e-30, 1e30
"""Of numbers other than 0: sums and ratios of them are still numbers."""


def count(name: str, value: Any) -> int:
    """A whole number from 0 up."""
    return whole_number(name, value, least=0, most=MOST_OF_ANYTHING)


def some(name: str, value: Any) -> int:
    """A whole number from 1 up."""
    return whole_number(name, value, most=MOST_OF_ANYTHING)


def amount(name: str, value: Any) -> float:
    """A number from 0 up, neither tiny nor huge."""
    checked = from_zero(name, value)
    if checked and not LEAST <= checked <= MOST:
        raise InputError(f"{name}={value!r}: numbers of a machine go from {LEAST:g} to {MOST:g}")
    return checked


def moment(name: str, value: Any) -> float:
    """Seconds from 0 up: however near to 0, they are a moment like others."""
    checked = from_zero(name, value)
    if checked > MOST:
        raise InputError(f"{name}={value!r}: numbers of a machine go up to {MOST:g}")
    return checked


def above_zero(name: str, value: Any) -> float:
    """A positive number, neither tiny nor huge."""
    return amount(name, positive(name, value))


def endless(name: str, value: Any) -> float:
    """A positive number, or infinity."""
    return math.inf if isinstance(value, float) and value == math.inf else above_zero(name, value)


def speeds(value: Any, size: int) -> float | tuple[float, ...]:
    """One speed of all cores, or as many as there are cores."""
    if not isinstance(value, tuple | list):
        return above_zero("speed", value)
    if len(value) != size:
        raise InputError(f"{len(value)} speeds for {size} cores: give one for each, or one number")
    return tuple(above_zero("speed", one) for one in value)


Check = Callable[[str, Any], Any]
OF_TYPE: dict[Any, Check] = {"str": plain_text, "bool": flag, "float": amount, "int": count}
"""What must hold of a value by the type that the model declares."""
OF_NAME: dict[str, Check] = {"nodes": some, "cores": some, "crowding": above_zero, "stretch": above_zero}
OF_NAME |= {"bandwidth": endless}
"""Where more must hold, or less."""
