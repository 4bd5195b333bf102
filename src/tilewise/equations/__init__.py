"""Equations as data: written once as text, evaluated densely as an oracle, planned into programs."""

from tilewise.equations.dense import evaluate_dense
from tilewise.equations.parse import parse
from tilewise.equations.planner import plan_program
from tilewise.equations.program import Contract, Dot, Operation, Program, RowContract, Sort, Update
from tilewise.equations.terms import Equation, Factor, Statement, Term

__all__ = [
    "Contract",
    "Dot",
    "Equation",
    "Factor",
    "Operation",
    "Program",
    "RowContract",
    "Sort",
    "Statement",
    "Term",
    "Update",
    "evaluate_dense",
    "parse",
    "plan_program",
]
