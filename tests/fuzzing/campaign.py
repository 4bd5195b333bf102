"""A campaign: many cases, and what was found in the end."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice, takewhile

from fuzzing.case import Problem, kind_of
from fuzzing.lanes import Lane, Lanes, Tried
from fuzzing.runner import prepared_world
from fuzzing.world import World

HANGS = 60.0
"""Seconds after which a case is taken to hang."""
PROGRESS = 5.0
"""Seconds between two lines about progress."""


@dataclass(frozen=True)
class Finding:
    """A problem, the first case that showed it, and that case made smaller."""

    kind: str
    name: str
    problem: Problem
    text: str

    def __str__(self) -> str:
        detail = "\n    ".join(self.problem.detail.splitlines())
        case = "\n    ".join(self.text.splitlines())
        return (
            f"FOUND {self.problem.signature}\n    kind {self.kind}; again with --replay {self.name}\n"
            f"    {case}\n    {detail}"
        )


@dataclass
class Summary:
    """Outcomes by kind, and findings by kind and signature, with their number."""

    seed: int
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    findings: dict[tuple[str, str], Finding] = field(default_factory=dict)
    repeated: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def cases(self) -> int:
        return sum(self.outcomes.values())

    def table(self) -> str:
        """A line for each kind: cases, milliseconds of a case, outcomes, findings."""
        of_kind, of_outcome, found = Counter[str](), Counter[str](), Counter[str]()
        for (kind, outcome), number in self.outcomes.items():
            of_kind[kind] += number
            of_outcome[outcome] += number
        for (kind, _), number in self.repeated.items():
            found[kind] += number
        outcomes = [outcome for outcome, _ in of_outcome.most_common()]
        rows = [["kind", "cases", "ms", *outcomes, "findings"]]
        for kind in sorted(of_kind):
            numbers = [self.outcomes[kind, outcome] or "" for outcome in outcomes]
            each = f"{1000 * self.seconds[kind] / of_kind[kind]:.0f}"
            rows.append([kind, *map(str, (of_kind[kind], each, *numbers, found[kind] or ""))])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            row[0].ljust(widths[0])
            + "".join(f"  {cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))
            for row in rows
        )
        return "\n".join(lines)


class Campaign:
    """`Campaign(seed).run(cases=1000)`; `say` gets a line now and then, and every finding.

    `first` is the number of the first case: a campaign that was stopped goes on with it. `world` has energies
    and files that are there already; without it they are made.
    """

    def __init__(
        self,
        seed: int,
        only: str | None = None,
        hangs: float = HANGS,
        say: Callable[[str], None] = print,
        jobs: int = 1,
        first: int = 0,
        world: World | None = None,
    ) -> None:
        self.seed, self.only, self.hangs, self.say, self.jobs = seed, only, hangs, say, jobs
        self.first, self.world = first, world

    def run(self, cases: int | None = None, seconds: float | None = None) -> Summary:
        """As many cases as are asked for, or for as long as that; without either, until it is stopped."""
        summary = Summary(self.seed)
        with prepared_world(self.world) as world, Lanes(self.seed, world, self.hangs, self.jobs) as lanes:
            began = spoke = time.monotonic()
            until = math.inf if seconds is None else began + seconds
            due = takewhile(lambda _: time.monotonic() < until, islice(self._numbers(), cases))
            for tried in lanes.tried(due, summary.findings):
                self._note(tried, summary)
                if time.monotonic() - spoke >= PROGRESS:
                    spoke = time.monotonic()
                    self._say_how_far(summary, spoke - began)
        return summary

    def replay(self, number: int) -> Summary:
        """One case again, shown whether or not something is wrong with it."""
        summary = Summary(self.seed)
        with prepared_world(self.world) as world, Lane(self.seed, world, self.hangs) as lane:
            tried = lane(number, ())
        self._note(tried, summary)
        self.say(f"{kind_of(self.seed, number).name}: {tried.text}")
        self.say(tried.outcome)
        return summary

    def _numbers(self) -> Iterator[int]:
        """All numbers from the first one on, or those whose case is of the one kind that is wanted."""
        return (n for n in count(self.first) if self.only is None or kind_of(self.seed, n).name == self.only)

    def _note(self, tried: Tried, summary: Summary) -> None:
        kind = kind_of(self.seed, tried.number).name
        summary.outcomes[kind, tried.outcome] += 1
        summary.seconds[kind] += tried.seconds
        if tried.problem is None:
            return
        key = kind, tried.problem.signature
        summary.repeated[key] += 1
        if key not in summary.findings:
            name = f"{self.seed}:{tried.number}"
            summary.findings[key] = Finding(kind, name, tried.problem, tried.small)
            self.say(str(summary.findings[key]))

    def _say_how_far(self, summary: Summary, seconds: float) -> None:
        rate = summary.cases / seconds
        self.say(f"... {summary.cases} cases, {rate:.1f} per second, {len(summary.findings)} findings")
