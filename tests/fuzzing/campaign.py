"""A campaign: many cases, and what was found in the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count

from fuzzing.case import Problem, kind_of
from fuzzing.runner import Runner, prepared_world

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
    """`Campaign(seed).run(cases=1000)`; `say` gets a line now and then, and every finding."""

    def __init__(
        self, seed: int, only: str | None = None, hangs: float = HANGS, say: Callable[[str], None] = print
    ) -> None:
        self.seed, self.only, self.hangs, self.say = seed, only, hangs, say

    def run(self, cases: int | None = None, seconds: float | None = None) -> Summary:
        """As many cases as are asked for, or for as long as that; without either, until it is stopped."""
        summary = Summary(self.seed)
        with self._runners() as runners:
            began = spoke = time.monotonic()
            for number in self._numbers():
                now = time.monotonic()
                if summary.cases == cases or (seconds is not None and now - began >= seconds):
                    break
                if now - spoke >= PROGRESS:
                    spoke = now
                    self._say_how_far(summary, now - began)
                self._try(runners, number, summary)
        return summary

    def replay(self, number: int) -> Summary:
        """One case again, shown whether or not something is wrong with it."""
        summary = Summary(self.seed)
        with self._runners() as runners:
            self._try(runners, number, summary)
            chosen = kind_of(self.seed, number)
            self.say(f"{chosen.name}: {runners[chosen.apart].text}")
        self.say("; ".join(outcome for _, outcome in summary.outcomes))
        return summary

    @contextmanager
    def _runners(self) -> Iterator[dict[bool, Runner]]:
        """One for most cases, and one that has a process for each of those that are apart."""
        with ExitStack() as stack:
            world = stack.enter_context(prepared_world())
            together = stack.enter_context(Runner(self.seed, world, self.hangs))
            apart = stack.enter_context(Runner(self.seed, world, self.hangs, fresh=1))
            yield {False: together, True: apart}

    def _numbers(self) -> Iterator[int]:
        """All numbers, or those whose case is of the one kind that is wanted."""
        return (n for n in count() if self.only is None or kind_of(self.seed, n).name == self.only)

    def _try(self, runners: dict[bool, Runner], number: int, summary: Summary) -> None:
        chosen = kind_of(self.seed, number)
        began = time.monotonic()
        outcome, problem, text = runners[chosen.apart](number, set(summary.findings))
        summary.outcomes[chosen.name, outcome] += 1
        summary.seconds[chosen.name] += time.monotonic() - began
        if problem is None:
            return
        key = chosen.name, problem.signature
        summary.repeated[key] += 1
        if key not in summary.findings:
            summary.findings[key] = Finding(chosen.name, f"{self.seed}:{number}", problem, text)
            self.say(str(summary.findings[key]))

    def _say_how_far(self, summary: Summary, seconds: float) -> None:
        rate = summary.cases / seconds
        self.say(f"... {summary.cases} cases, {rate:.1f} per second, {len(summary.findings)} findings")
