"""The routines of the Tensor Contraction Engine as data: contractions over tiles of spin orbitals.

The files `ccsd.toml` and `ccsdt.toml` hold them in a notation that the first one explains. What loops
a routine has, which pairs of indices are ordered and who waits for whom follows from the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from itertools import groupby, product

from tilewise.arguments import plain_text
from tilewise.equations.permutations import Group, shuffles
from tilewise.errors import InputError, one_of
from tilewise.lazy import cached_property

METHODS = ("ccsd", "ccsdt")

_INDEXED = re.compile(r"([a-z]\w*)\(([^|()]*)\|([^|()]*)\)")
_EXCHANGE = re.compile(r"P\(([^()]*)\)")
_NUMBER = re.compile(r"(-?)\s*(\d+(?:/\d+)?)?\s*")
_INDEX = re.compile(r"[ph]\d+")


@dataclass(frozen=True)
class Indexed:
    """A tensor with its upper and lower indices."""

    name: str
    upper: Group
    lower: Group

    @property
    def indices(self) -> Group:
        return self.upper + self.lower

    @property
    def groups(self) -> tuple[Group, ...]:
        """Runs of indices of one kind on one side: the tensor is antisymmetric in each."""
        sides = (self.upper, self.lower)
        return tuple(tuple(run) for side in sides for _, run in groupby(side, key=lambda i: i[0]))

    @property
    def kinds(self) -> str:
        """Such as "pphh"."""
        return "".join(index[0] for index in self.indices)

    def __str__(self) -> str:
        return f"{self.name}({' '.join(self.upper)}|{' '.join(self.lower)})"


@dataclass(frozen=True)
class Routine:
    """One contraction, or one copy: what it adds to its target."""

    name: str
    level: int
    """As the file has it, counted from 1."""
    target: Indexed
    factor: Fraction
    exchanges: tuple[tuple[Group, ...], ...]
    """Of each antisymmetrizer, the groups of indices that are exchanged among each other."""
    inputs: tuple[Indexed, ...]

    @property
    def text(self) -> str:
        shown = "".join(f"P({'/'.join(' '.join(group) for group in groups)}) " for groups in self.exchanges)
        sign = "-" if self.factor < 0 else "+"
        size = "" if abs(self.factor) == 1 else f"{abs(self.factor)} "
        return f"{self.name}: {self.target} {sign}= {size}{shown}{' '.join(map(str, self.inputs))}"

    @property
    def is_copy(self) -> bool:
        return len(self.inputs) == 1

    @cached_property
    def loops(self) -> tuple[Group, ...]:
        """Loops over the blocks of the target; indices that are exchanged run on their own."""
        apart = [group for groups in self.exchanges for group in groups]
        found: list[Group] = []
        for run in self.target.groups:
            own = [group for group in apart if set(group) <= set(run)]
            found += own or [run]
        return tuple(found)

    @cached_property
    def sums(self) -> tuple[Group, ...]:
        """Loops over what is summed; indices that are neighbours in both inputs are ordered."""
        if self.is_copy:
            return ()
        outside = set(self.target.indices)
        found: list[Group] = []
        for run in self.inputs[0].groups:
            for other in self.inputs[1].groups:
                shared = tuple(i for i in run if i in other and i not in outside)
                found += [shared] if shared else []
        return tuple(found)

    @cached_property
    def permutations(self) -> tuple[tuple[int, Group], ...]:
        """(sign, order): the result is summed over these orders of the target's indices."""
        choices = [shuffles(groups) for groups in self.exchanges]
        found = []
        for chosen in product(*choices):
            renamed: dict[str, str] = {}
            sign = 1
            for part, mapping in chosen:
                sign *= part
                renamed |= mapping
            found.append((sign, tuple(renamed.get(i, i) for i in self.target.indices)))
        return tuple(found)


def parse_routine(name: str, text: str, level: int = 1) -> Routine:
    """A routine from its text; raises InputError for a text that is not one."""
    target, _, rest = text.partition("+=")
    number = _NUMBER.match(rest.strip())
    tail = rest.strip()[number.end() if number else 0 :]
    inputs = tuple(map(_indexed, _INDEXED.findall(_EXCHANGE.sub("", tail))))
    left = [_indexed(found) for found in _INDEXED.findall(target)]
    known = _INDEXED.sub("", _EXCHANGE.sub("", tail)).strip() == "" and len(left) == 1
    if number is None or not known or not 1 <= len(inputs) <= 2:
        raise InputError(
            f"routine {name}: '{text}' is no contraction; expected is a text such as "
            "'r2(p3 p4|h1 h2) += 1/2 P(h1/h2) t1(p5|h1) v(p3 p4|h2 p5)'"
        )
    exchanges = tuple(
        tuple(tuple(part.split()) for part in found.split("/")) for found in _EXCHANGE.findall(tail)
    )
    factor = Fraction(number[2] or 1) * (-1 if number[1] else 1)
    made = Routine(name, level, left[0], factor, exchanges, inputs)
    _check(made)
    return made


def _indexed(found: tuple[str, str, str]) -> Indexed:
    name, upper, lower = found
    return Indexed(name, tuple(upper.split()), tuple(lower.split()))


def _check(routine: Routine) -> None:
    """Every index is in the target and one input, or in both inputs."""
    every = [i for part in (routine.target, *routine.inputs) for i in part.indices]
    strange = next((i for i in every if not _INDEX.fullmatch(i) or every.count(i) != 2), None)
    moved = {i for groups in routine.exchanges for group in groups for i in group}
    strange = strange or next((i for i in sorted(moved) if i not in routine.target.indices), None)
    if strange is not None:
        raise InputError(
            f"routine {routine.name}: index '{strange}' must be p or h with a number and stand twice, in the "
            "target and an input or in both inputs"
        )


def tce_routines(method: str = "ccsd") -> tuple[Routine, ...]:
    """The routines of "ccsd" or "ccsdt", in an order in which they can run one after the other."""
    if plain_text("method", method) not in METHODS:
        raise one_of("method of the TCE", method, METHODS)
    return _routines(method)


@lru_cache
def _routines(method: str) -> tuple[Routine, ...]:
    found: list[Routine] = []
    for part in METHODS[: METHODS.index(method) + 1]:
        text = files("tilewise.tce").joinpath(f"{part}.toml").read_text()
        for levels in tomllib.loads(text).values():
            for level, routines in levels.items():
                number = int(level.removeprefix("level_"))
                found += [parse_routine(name, line, number) for name, line in routines.items()]
    return tuple(sorted(found, key=lambda routine: routine.level))


def routine_named(name: str, method: str = "ccsd") -> Routine:
    """One of the routines of a method."""
    routines = {routine.name: routine for routine in tce_routines(method)}
    if name not in routines:
        raise one_of("routine of the TCE", name, routines)
    return routines[name]


def family(routines: Iterable[Routine], residual: str) -> tuple[Routine, ...]:
    """The routines that a residual, such as "r2", is made by."""
    every = tuple(routines)
    wanted = {residual}
    while True:
        more = {part.name for r in every if r.target.name in wanted for part in r.inputs} | {residual}
        if more <= wanted:
            return tuple(r for r in every if r.target.name in wanted)
        wanted |= more


def levels_of(routines: Iterable[Routine]) -> dict[str, int]:
    """Level of each routine, from 1: one more than the highest of those that write what it reads."""
    level: dict[str, int] = {}
    every = tuple(routines)
    for routine in every:
        reads = {part.name for part in routine.inputs}
        level[routine.name] = 1 + max(
            (level.get(other.name, 0) for other in every if other.target.name in reads), default=0
        )
    return level


def waits_for(routine: Routine, routines: Iterable[Routine]) -> tuple[Routine, ...]:
    """Routines of lower levels that write to a tensor which this one reads or adds to.

    With a barrier after each level all of them are waited for; sums commute, so that those which write what
    is read would do.
    """
    every = tuple(routines)
    level = levels_of(every)
    touched = {routine.target.name, *(part.name for part in routine.inputs)}
    return tuple(r for r in every if r.target.name in touched and level[r.name] < level[routine.name])
