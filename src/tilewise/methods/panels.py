"""Which panels suit a calculation: tall ones make the best products, many workers need many tasks."""

from __future__ import annotations

from collections.abc import Callable

from tilewise.equations.program import Program
from tilewise.execute.simulated import Simulation
from tilewise.hardware.model import MachineModel
from tilewise.inspect import PanelRule, TaskGraph, inspect
from tilewise.methods.prediction import Predictor
from tilewise.schedule import policy_named
from tilewise.spaces.space import DEFAULT_TILE

LOWER, TALLER = (PanelRule(96), PanelRule(48)), (PanelRule(768), PanelRule(384))
"""Other heights of panels than the default one, for threads; the taller one, of better products, first."""

CUTS = (
    (DEFAULT_TILE, PanelRule()),
    (8, PanelRule(96)),
    (8, PanelRule(48)),
    (8, PanelRule(12, 256)),
    (4, PanelRule(12, 256)),
    (4, PanelRule(6, 64)),
    (4, PanelRule(1, 1)),
)
"""Tiles and panels, ever smaller ones: a panel is at least a tile tuple, so low panels need small tiles."""

BUSY, GAIN = 0.95, 0.01
"""The share of work in the workers' time with which no more tasks are looked for; what a choice must save."""

MOST_TASKS = 500_000
"""Cuts that make more tasks are not tried."""


def rule_of_ranks(rule: PanelRule, pairs: int, workers: int) -> PanelRule:
    """The panels of a calculation on one rank, if they are not too tall to be shared by workers of several.

    Taller panels than by default are taken if each worker has as many of the `pairs` of an occupied and a
    virtual orbital, over which the intermediates go. They are some default ones high: bands of tensors that
    are stored by half are not cut then.
    """
    band = PanelRule().height
    for height in range(min(rule.height, band * -(-pairs // (band * workers))), band, -band):
        panels = round(pairs / height)  # as `Compound.pieces` cuts them
        if panels >= workers and panels % workers == 0:
            return PanelRule(height, rule.width)
    return rule if rule.height <= band else PanelRule(band, rule.width)


def suited_graph(
    program_of: Callable[[int], Program], machine: MachineModel, workers: int, tile: int | None = None
) -> TaskGraph:
    """The tasks as a run with so many workers of this machine would cut them.

    `program_of` gives the program with tiles of a size; with `tile` no other size is tried. The cut is taken
    that makes an iteration by data flow shortest at the machine's rates, on equal cores that lose no time.
    Unless it is the machine at hand, nothing of that one plays a part.
    """
    cuts = CUTS if tile is None else tuple((tile, rule) for _, rule in CUTS)
    best: tuple[TaskGraph, Simulation] | None = None
    for size, rule in cuts:
        graph = inspect(program_of(size), rule)
        if best is not None and len(graph) > MOST_TASKS:
            break
        run = _by_dataflow(graph, machine, workers)
        if best is None or run.makespan < (1 - GAIN) * best[1].makespan:
            best = graph, run
        if best[1].efficiency > BUSY:
            break
    assert best is not None
    return best[0]


def _by_dataflow(graph: TaskGraph, machine: MachineModel, workers: int) -> Simulation:
    """An iteration without trees, which take long to make for many workers, on cores that lose no time."""
    cores = MachineModel("cores", 1, workers, rates=machine.rates)
    return Predictor(graph, cores)(policy_named("dataflow(trees=false)"), workers).simulation
