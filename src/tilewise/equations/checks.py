"""What a statement or an operation must not do."""

from __future__ import annotations

from collections.abc import Mapping

from tilewise.equations.program import Contract, Operation, Sort
from tilewise.equations.terms import Solve, Statement
from tilewise.errors import InputError
from tilewise.tensor import Layout


def refuse_own_target(statement: Statement | Solve) -> None:
    """Tasks write panels that other tasks of the same statement would still have to read."""
    if isinstance(statement, Statement):
        name = statement.target.name
        if any(f.name == name for term in statement.terms for f in term.factors):
            raise InputError(f"'{statement}' reads {name}, which it changes: give the result a new name")


def check_stored_forms(op: Operation, stored: Mapping[str, Layout]) -> None:
    """A tensor that is stored by half is made by a sort and multiplies from the left, nothing else; one that
    is formed is not stored at all, so that no operation can read it."""
    for name in (*op.reads, *op.outputs):
        if name not in stored:
            raise InputError(
                f"{op.text}: {name} is formed, so it stands in products C[pq|J] = A[pq|rs] B[rs|J] alone"
            )
        if stored[name].half:
            made = (
                isinstance(op, Sort) and name in op.targets and not op.elementwise and not any(op.accumulate)
            )
            if not made and not (isinstance(op, Contract) and op.a == name and op.b != name):
                raise InputError(
                    f"{op.text}: {name} is stored by half (||), so it can only be assigned from tensors "
                    "and be the left factor of a product over all of its columns; use one bar"
                )
