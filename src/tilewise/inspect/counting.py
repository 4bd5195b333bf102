"""Flops counted from layouts alone, without making tasks."""

from __future__ import annotations

from tilewise.equations.program import Operation, Program
from tilewise.inspect.operations import inspector_of
from tilewise.tensor import Layout


def operation_flops(op: Operation, layouts: dict[str, Layout]) -> float:
    """Flops of the products of an operation in the sectors that symmetry leaves."""
    return inspector_of(op).flops(op, layouts)


def dense_flops(op: Operation, layouts: dict[str, Layout]) -> float:
    """Flops of the same products on dense tensors without packing."""
    return inspector_of(op).dense_flops(op, layouts)


def program_flops(program: Program) -> float:
    return sum(operation_flops(op, program.layouts) for op in program.operations)


def program_bytes(program: Program) -> int:
    """Bytes of all tensors that stay in memory during the iterations."""
    return sum(program.bytes_of(name) for name in program.layouts)
