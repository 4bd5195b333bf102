"""Pure functions that a campaign calls again and again with the same arguments, remembered in its processes.

Each is computed anew for arguments that are new. A value that a run changed would show in the cases after it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cache
from importlib import import_module
from typing import Any

import typer.main

from tilewise.equations import Equation

MANY = 300
"""Values that are kept of each function."""


def remember() -> None:
    """The parser of the command line, programs of equations, and task graphs of programs."""
    typer.main.get_command = cache(typer.main.get_command)  # a third of the time of a refused command
    plans: Any = import_module("tilewise.methods.plan")
    plans.plan_program = remembered(plans.plan_program, _program_key)
    plans.inspect = remembered(plans.inspect, _graph_key)
    of_triples: Any = import_module("tilewise.methods.triples_plan")
    of_triples.inspect_triples = remembered(of_triples.inspect_triples, _triples_key)


def remembered(function: Callable[..., Any], key_of: Callable[..., Hashable]) -> Callable[..., Any]:
    """A function that keeps its last values, with the arguments that their keys were made of."""
    kept: OrderedDict[Hashable, tuple[Any, Any]] = OrderedDict()

    def looked_up(*arguments: Any, **named: Any) -> Any:
        key = key_of(*arguments, **named)
        if key not in kept:
            kept[key] = function(*arguments, **named), arguments
            if len(kept) > MANY:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key][0]

    return looked_up


def _program_key(equation: Equation, spaces: dict[str, Any]) -> Hashable:
    return repr(equation), tuple(spaces.items())


def _graph_key(program: Any, *how: Hashable) -> Hashable:
    return id(program), *how


def _triples_key(blocks: Any, *how: Hashable, **named: Hashable) -> Hashable:
    return repr(blocks), how, tuple(sorted(named.items()))
