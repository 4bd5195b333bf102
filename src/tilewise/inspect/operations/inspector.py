"""What an operation is to the inspector: how its tasks are found, and what is known of it without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewise.inspect.panels import Panels
from tilewise.inspect.tasks import Found
from tilewise.tensor import Layout

Layouts = Mapping[str, Layout]


@dataclass(frozen=True)
class Setting:
    """What the inspection of an operation looks things up in, by the names of tensors."""

    layouts: dict[str, Layout]
    panels: dict[str, Panels]
    buffers: dict[str, int]
    """Numbers of the tensors and vectors that records refer to; `arena` is that of the worker's own."""
    arena: int


def _no_flops(op: Any, layouts: Layouts) -> float:
    return 0.0


def _no_vectors(op: Any, layouts: Layouts) -> dict[str, int]:
    return {}


@dataclass(frozen=True)
class Inspector:
    """Functions of an operation of one class."""

    inspect: Callable[[Any, Setting], Found]
    flops: Callable[[Any, Layouts], float] = _no_flops
    """Of its products in the sectors that symmetry leaves, counted from layouts alone."""
    dense_flops: Callable[[Any, Layouts], float] = _no_flops
    """Of the same products on dense tensors without packing."""
    vectors: Callable[[Any, Layouts], dict[str, int]] = _no_vectors
    """Buffers besides tensors that it needs, and their lengths."""
