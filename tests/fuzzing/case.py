"""Cases, what is found wrong with them, and the registry of their kinds."""

from __future__ import annotations

import random
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzzing.world import World

SOURCE = "tilewise"
"""The folder whose frames tell where an error comes from."""


@dataclass(frozen=True)
class Problem:
    """Something that must not happen; two with the same `what` and `place` are one finding."""

    what: str
    place: str
    detail: str = ""

    @property
    def signature(self) -> str:
        return f"{self.what}: {self.place}"

    @classmethod
    def of_error(cls, error: BaseException) -> Problem:
        """An exception that no user should see: its kind, and the innermost line of tilewise."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if SOURCE in Path(frame.filename).parts] or frames
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno} in {own[-1].name}" if own else "unknown"
        text = "".join(traceback.format_exception(error)).strip()
        return cls("traceback", f"{type(error).__name__} at {place}", "\n".join(text.splitlines()[-12:]))


@dataclass(frozen=True)
class Verdict:
    """How a case ended, in a word or two, and what is wrong with that."""

    outcome: str
    problem: Problem | None = None


class Case(ABC):
    """Something to try. `str(case)` shows all that is needed to try it by hand."""

    @abstractmethod
    def run(self, world: World) -> Verdict:
        """Tries it in the current folder, which is empty before, and judges."""

    def smaller(self) -> Iterator[Case]:
        """Simpler cases, in which the same problem may show."""
        return iter(())


Maker = Callable[[random.Random, World], Case]


@dataclass(frozen=True)
class Kind:
    """Makes cases; of all cases, a share in proportion to its weight is of this kind.

    Those that are `apart` have a process each, as they fork.
    """

    name: str
    make: Maker
    weight: float
    apart: bool = False


kinds: dict[str, Kind] = {}


def kind(name: str, weight: float, apart: bool = False) -> Callable[[Maker], Maker]:
    """Registers a function that makes a case from random numbers and the world."""

    def registered(make: Maker) -> Maker:
        kinds[name] = Kind(name, make, weight, apart)
        return make

    return registered


def kind_of(seed: int, number: int) -> Kind:
    """The kind of a case, without making it."""
    return _drawn(seed, number)[0]


def case_of(seed: int, number: int, world: World) -> Case:
    """The same case for the same seed and number, always."""
    chosen, rng = _drawn(seed, number)
    return chosen.make(rng, world)


def _drawn(seed: int, number: int) -> tuple[Kind, random.Random]:
    rng = random.Random(f"{seed}:{number}")
    names = sorted(kinds)
    return kinds[rng.choices(names, [kinds[name].weight for name in names])[0]], rng


def minimized(case: Case, problem: Problem, run: Callable[[Case], Verdict], seconds: float) -> Case:
    """A simpler case with the same problem: whatever can be left out is, as long as there is time."""
    until = time.monotonic() + seconds
    again = True
    while again:
        again = False
        for candidate in case.smaller():
            if time.monotonic() > until:
                return case
            found = run(candidate).problem
            if found and found.signature == problem.signature:
                case, again = candidate, True
                break
    return case
