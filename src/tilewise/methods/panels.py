"""Which panels suit a calculation: tall ones make the best products, many workers need many tasks."""

from __future__ import annotations

from tilewise.equations.program import Program
from tilewise.execute.machine_model import MachineModel
from tilewise.inspect import PanelRule, TaskGraph, inspect
from tilewise.methods.prediction import Predictor
from tilewise.schedule import policies

TALLER = (PanelRule(384), PanelRule(768))
LOWER = (
    PanelRule(96),
    PanelRule(48),
    PanelRule(24, 1024),
    PanelRule(12, 256),
    PanelRule(6, 64),
    PanelRule(1, 1),
)
"""Other panels than the default ones, one step after the other; the last are single tile tuples."""

BUSY, GAIN = 0.95, 0.01
"""The share of work in the workers' time below which lower panels are looked at, and else taller ones; what a
step must save."""

MOST_TASKS = 2_000_000
"""Steps that make more tasks are not taken."""


def suited_graph(program: Program, machine: MachineModel, workers: int) -> TaskGraph:
    """The tasks as a run with so many workers of this machine would cut them.

    Step by step, as long as an iteration by data flow gets shorter on equal cores that lose no time, at the
    machine's rates. Where it has rates, nothing of the machine at hand plays a part.
    """
    cores = MachineModel("cores", 1, workers, rates=machine.rates)
    best = inspect(program)
    now = Predictor(best, cores)(policies["dataflow"], workers).simulation
    for rule in LOWER if now.efficiency < BUSY else TALLER:
        graph = inspect(program, rule)
        if len(graph) > MOST_TASKS:
            break
        run = Predictor(graph, cores)(policies["dataflow"], workers).simulation
        if run.makespan >= (1 - GAIN) * now.makespan:
            break
        best, now = graph, run
    return best
