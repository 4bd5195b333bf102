"""Searches the panel size and the quantum that suit a calculation, on its own contractions.

Tensors hold random numbers, which take as long as true ones, so that no integral is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewise.cost.wisdom import panel_key
from tilewise.execute import Runner
from tilewise.inspect import PanelRule, TaskGraph
from tilewise.methods.plan import Plan
from tilewise.schedule import policy_named
from tilewise.schedule.policies import DEFAULT_POLICY

HEIGHTS = (24, 48, 96, 192, 384, 768)
WIDTHS = (256, 1024, 4096)
QUANTA = (1, 2, 4, 8)
MOST_ROUNDS, DUELS, FEWEST_DUELS = 20, 21, 5
SECONDS = 20.0
"""Measuring time after which no further round begins."""

GAIN = 0.03
"""What other panels must save for the default ones to be given up: less is noise."""


@dataclass(frozen=True)
class Trial:
    """Seconds of an iteration with one size of panels, by policy."""

    rule: PanelRule
    tasks: int
    seconds: dict[str, float]

    def at(self, quantum: int) -> float:
        """Seconds with a shared counter from which workers draw `quantum` tasks at a time."""
        return self.seconds[_counter(quantum)]


@dataclass(frozen=True)
class Exploration:
    """All trials of a calculation; the first one has the default panels."""

    key: str
    quanta: tuple[int, ...]
    trials: tuple[Trial, ...]
    best: Trial

    @property
    def default(self) -> Trial:
        return self.trials[0]

    @property
    def best_quantum(self) -> tuple[Trial, int]:
        """The fastest trial with a shared counter, and its quantum."""
        pairs = [(trial, quantum) for trial in self.trials for quantum in self.quanta]
        return min(pairs, key=lambda pair: pair[0].at(pair[1]))


def explore(
    plan: Plan,
    heights: tuple[int, ...] = HEIGHTS,
    widths: tuple[int, ...] = WIDTHS,
    quanta: tuple[int, ...] = QUANTA,
    seconds: float = SECONDS,
    progress: Callable[[str], None] | None = None,
) -> Exploration:
    """Runs an iteration with every size of panels and every quantum, in turn, and keeps the best times.

    Sizes that cut the tensors of this molecule in the same way are tried once.
    """
    say = progress or (lambda text: None)
    policies = [*map(_counter, quanta), DEFAULT_POLICY]
    machines: dict[PanelRule, list[Runner]] = {}
    tensors: dict[str, np.ndarray] = {}
    known = set()
    for rule in _rules(heights, widths):
        say(f"inspecting panels of {rule.height} x {rule.width}")
        made = plan.with_panels(rule)
        graph = made.graph
        cut = (len(graph), *map(len, graph.records.values()))
        if cut in known:
            continue
        known.add(cut)
        tensors = tensors or random_tensors(graph)
        schedules = [policy_named(name)(graph, made.task_seconds, plan.team) for name in policies]
        machines[rule] = [Runner(graph, schedule, tensors) for schedule in schedules]
    best = {rule: np.full(len(policies), np.inf) for rule in machines}
    began = time.perf_counter()
    for number in range(MOST_ROUNDS):
        for rule, mine in machines.items():
            say(f"round {number + 1}, panels of {rule.height} x {rule.width}")
            best[rule] = np.minimum(best[rule], [_makespan(machine) for machine in mine])
        if time.perf_counter() - began > seconds:
            break
    default = PanelRule()
    winner = min(best, key=lambda rule: best[rule][-1])
    if winner != default:
        say("comparing the best panels with the default ones")
        if not _wins(machines[winner][-1], machines[default][-1]):
            winner = default
    trials = {
        rule: Trial(rule, len(mine[0].graph), dict(zip(policies, best[rule].tolist(), strict=True)))
        for rule, mine in machines.items()
    }
    outline = plan.outline
    key = panel_key(outline.group.order, outline.n_occ, outline.n_vir, plan.threads)
    return Exploration(key, quanta, tuple(trials.values()), trials[winner])


def _wins(machine: Runner, default: Runner) -> bool:
    """Whether one is faster beyond doubt: the two run in turn, so that a slow moment meets both."""
    ratios: list[float] = []
    began = time.perf_counter()
    while len(ratios) < FEWEST_DUELS or (len(ratios) < DUELS and time.perf_counter() - began < SECONDS / 4):
        ratios.append(_makespan(machine) / _makespan(default))
    return float(np.median(ratios)) < 1 - GAIN


def random_tensors(graph: TaskGraph) -> dict[str, np.ndarray]:
    """A buffer for each tensor that some task touches."""
    rng = np.random.default_rng(0)
    return {
        name: 1e-3 * rng.random(graph.length_of(name) if name in graph.touched else 0)
        + (1.0 if name in graph.vectors else 0.0)
        for name in graph.buffers
    }


def _rules(heights: tuple[int, ...], widths: tuple[int, ...]) -> list[PanelRule]:
    """The default one first."""
    rules = [PanelRule(height, width) for width in widths[::-1] for height in heights]
    return [PanelRule(), *(rule for rule in rules if rule != PanelRule())]


def _counter(quantum: int) -> str:
    return str(policy_named(f"ie-nxtval(quantum={quantum})"))


def _makespan(machine: Runner) -> float:
    trace = machine.run().trace
    return 1e-9 * float(trace["end"].max(initial=0))
