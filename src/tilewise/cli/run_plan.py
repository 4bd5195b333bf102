"""`tilewise plan`: what a calculation would take, here and on other machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from tilewise.cli.console import Screen
from tilewise.cli.documents import plan_document, write_document
from tilewise.cli.progress import Progress
from tilewise.cli.run_simulate import parse_workers
from tilewise.equations.program import Program
from tilewise.errors import InputError
from tilewise.hardware.machines import MachineModel, find_machine
from tilewise.methods.granularity import granularity
from tilewise.methods.panels import suited_graph
from tilewise.methods.plan import Plan
from tilewise.methods.prediction import Predictor
from tilewise.output_files import SideFiles
from tilewise.wording import counted


@dataclass(frozen=True)
class Elsewhere:
    """A machine to simulate the calculation on, and numbers of workers."""

    machine: MachineModel
    workers: list[int]


def parse_elsewhere(machine: str | None, workers: str | None, threads: int | None) -> Elsewhere | None:
    """None unless a machine is named; without numbers of workers, the threads asked for or a node's cores."""
    if machine is None:
        if workers is not None:
            raise InputError(f"--workers {workers}: a machine is needed too, as in --machine fusion")
        return None
    model = find_machine(machine)
    counts = parse_workers(workers) if workers is not None else [threads or model.working]
    model.check(counts[-1])
    return Elsewhere(model, counts)


def run_plan(
    plan: Plan,
    tiles: Sequence[int],
    elsewhere: Elsewhere | None,
    console: Console,
    json: str | None = None,
    verbose: bool = False,
) -> int:
    """Shows the plan, what tiles of several sizes would make, and how it would run elsewhere."""
    screen = Screen(console, verbose)
    screen.opening(plan)
    compared = [granularity(plan, size) for size in tiles] if len(tiles) > 1 else []
    if compared:
        screen.granularity(compared)
    predicted = []
    if elsewhere:
        machine, tile = elsewhere.machine, tiles[0] if tiles else None

        def program_of(size: int) -> Program:
            return replace(plan, tile=size).program

        with Progress(console) as progress:
            for count in elsewhere.workers:
                progress(f"{plan.policy} on {counted(count, 'worker')}")
                graph = suited_graph(program_of, machine, count, tile)
                predicted.append(Predictor(graph, machine)(plan.policy, count).row)
        screen.machine(machine)
        screen.predictions(str(plan.policy), predicted)
    if plan.peak_memory > plan.budget:
        screen.note("the calculation needs more memory than the budget allows")
    if json:
        machine_shown = elsewhere.machine.to_dict() if elsewhere else None
        side_files = SideFiles(screen.note)
        write_document(plan_document(plan, compared, machine_shown, predicted), json, side_files)
        side_files.check()
    return 0
