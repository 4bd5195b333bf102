"""`tilewise.parallel_for` on threads: every policy, costs, errors of the function, and wrong arguments."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilewise
from fuzzing.case import Case, Problem, kind
from fuzzing.options import POLICIES
from fuzzing.python_calls import WILD_ARGUMENTS, CallCase
from fuzzing.world import World
from tilewise.errors import ItemError
from tilewise.loop import LoopResult

FAILURES = (
    ValueError("x"),
    ZeroDivisionError(),
    KeyError("k"),
    StopIteration(),
    MemoryError(),
    OSError(2, "x"),
)
LIKELY: dict[str, tuple[Any, ...]] = {
    "items": ([], [0], range(5), "abc", {1, 2}, {"a": 1}, np.arange(3), (x for x in ())),
    "costs": (None, [1, 2, 3], [1.0] * 5, len, lambda item: 1, lambda item: None, lambda item: 1 / 0),
    "policy": (*POLICIES, "factoring(delta=0.5, taper=true)", "gss(most=0.01)", tilewise.policies["lpt"]),
    "workers": (None, 1, 2, 3, np.int64(2), 5000),
    "executor": ("threads", "thread", "mpi"),
    "progress": (True, False, lambda done, count: None),
    "ordered": (True, False),
    "learn": (None, "name", "a/b", "x" * 200, ".."),
    "start_method": (None, "fork", "spawn", "none"),
}


def _square(item: int) -> int:
    return item * item


def _seventh(item: int) -> int:
    return item % 7


@dataclass(frozen=True)
class FailsOn:
    """A function that gives back its item, but for one."""

    wrong: int
    error: Exception

    def __call__(self, item: int) -> int:
        if item == self.wrong:
            raise self.error
        return item


@kind("loop", 16)
def valid(rng: random.Random, world: World) -> Case:
    """Results in the order of the items, whatever the policy, the costs and the workers."""
    count = rng.choice((0, 1, 2, 3, 10, 57, 300))
    costs = rng.choice((None, [rng.choice((0, 1, 1e-9, 1e9)) for _ in range(count)], _seventh))
    given = {
        "costs": costs, "policy": rng.choice(LIKELY["policy"]), "workers": rng.choice((None, 1, 2, 3, 9)),
        "ordered": rng.random() < 0.8, "learn": rng.choice((None, None, "squares")), "progress": False,
    }  # fmt: skip
    expected = [item * item for item in range(count)]
    items = rng.choice((range(count), list(range(count)), np.arange(count)))
    return CallCase(
        "parallel_for", _run, (_square, items), given, lambda found: _compared(found, expected), valid=True
    )


def _compared(found: list[int], expected: list[int]) -> Problem | None:
    if [int(value) for value in found] == expected:
        return None
    return Problem("changed result", "of a valid loop", f"{found}"[:300])


@kind("loop with an error", 8)
def failing(rng: random.Random, world: World) -> Case:
    """The first error of the function names its item."""
    count, error = rng.choice((1, 2, 10, 57)), rng.choice(FAILURES)
    wrong = rng.randrange(count)
    given = {"policy": rng.choice(POLICIES), "workers": rng.choice((1, 2, 3)), "ordered": rng.random() < 0.7}
    return CallCase(
        "parallel_for", _failed, (FailsOn(wrong, error), range(count), wrong), given, lambda found: found
    )


def _failed(function: Any, items: Any, wrong: int, **given: Any) -> Problem | None:
    try:
        _run(function, items, **given)
    except ItemError as error:
        same = (error.index, error.item) == (wrong, wrong) and error.__cause__ is not None
        return None if same else Problem("another item", "of an error", str(error))
    return Problem("no error", "although the function failed", str(given))


@kind("parallel_for called wrong", 30)
def called_wrong(rng: random.Random, world: World) -> Case:
    given = {}
    for key in rng.sample(sorted(LIKELY), rng.randint(1, 3)):
        given[key] = rng.choice(WILD_ARGUMENTS if rng.random() < 0.6 else LIKELY[key])
    function = repr if rng.random() < 0.9 else rng.choice(WILD_ARGUMENTS)
    return CallCase("parallel_for", _run, (function, given.pop("items", range(3))), given)


def _run(function: Any, items: Any, **given: Any) -> list[Any]:
    found = tilewise.parallel_for(function, items, **given)
    if not isinstance(found, LoopResult):
        return sorted(found, key=repr) if function is not _square else sorted(found)
    str(found)
    return list(found)
