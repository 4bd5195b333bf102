"""`tilewise simulate`: iterations on a machine that is not here, by policy and number of workers."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from tilewise import __version__
from tilewise.cli.console import Screen
from tilewise.cli.documents import write_document
from tilewise.cli.pictures import check_picture, draw_scaling, picture_format
from tilewise.cli.progress import Progress
from tilewise.errors import InputError
from tilewise.hardware.machines import MachineModel
from tilewise.methods.prediction import Prediction, PredictionRow, Predictor
from tilewise.methods.workload import Workload
from tilewise.output_files import SideFiles, check_target
from tilewise.schedule import Policy, policy_named
from tilewise.trace import TraceFile
from tilewise.wording import counted

_RANGE = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


@dataclass(frozen=True)
class SimulationFiles:
    """What is written; `json` may be "-"."""

    json: str | None = None
    picture: Path | None = None
    trace: Path | None = None

    def check(self, runs: int) -> None:
        """Refuses now what could not be written in the end."""
        if self.trace and runs != 1:
            raise InputError(
                f"--trace {self.trace}: it shows one run, but {runs} are asked for; "
                "give one policy and one number of workers"
            )
        check_target("--json", self.json)
        for option, path in (("--picture", self.picture), ("--trace", self.trace)):
            check_target(option, str(path) if path else None)
        check_picture(self.picture)


def parse_policies(text: str) -> list[Policy]:
    """Policies from a list such as "ie-nxtval, factoring(f=2, delta=0.5)"."""
    return [policy_named(part.strip()) for part in re.split(r",(?![^()]*\))", text)]


def parse_workers(text: str) -> list[int]:
    """From "8,16,64", or from "8:2400", which doubles from 8 up to 2400, the end included."""
    found: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last:
            raise InputError(
                f"--workers {text}: whole numbers from 1 up are expected, rising, such as 8,16,64 or 8:2400"
            )
        while first < last:
            found.append(first)
            first *= 2
        found.append(last)
    return sorted(set(found))


def run_simulate(
    work: Workload,
    machine: MachineModel,
    policies: list[Policy],
    workers: list[int],
    files: SimulationFiles,
    console: Console,
    seed: int = 0,
) -> int:
    """Simulates one iteration for each policy on each number of workers."""
    screen = Screen(console)
    outline = work.outline
    screen.line("molecule", f"{outline.title}; basis {outline.basis}; group {outline.group.name}")
    screen.line("orbitals", f"{outline.shown['orbitals']}; {outline.source}")
    screen.machine(machine)
    screen.line("equations", work.equations)
    screen.line("tasks", work.shown)
    rows: list[PredictionRow] = []
    with Progress(console) as progress:
        for policy in policies:
            for count in workers:
                progress(f"{policy} on {counted(count, 'worker')}")
                prediction = Predictor(work.graph_for(machine, count), machine, seed)(policy, count)
                rows.append(prediction.row)
            console.print()
            screen.predictions(str(policy), rows[-len(workers) :])
            progress.heard()
    side_files = SideFiles(screen.note)
    if files.json:
        document = {
            "version": __version__,
            "molecule": outline.title,
            "basis": outline.basis,
            "group": outline.group.name,
            "equations": work.equations,
            "machine": machine.to_dict(),
            "seed": seed,
            "simulations": [asdict(row) for row in rows],
        }
        write_document(document, files.json, side_files)
    if files.trace:
        recorded = _recorded(prediction, f"{outline.title} on {machine.name}, simulated")
        side_files.write(files.trace, recorded.write)
    if files.picture:
        title, form = f"{outline.title}, {outline.basis} on {machine.name}", picture_format(files.picture)
        side_files.write(files.picture, lambda place: draw_scaling(rows, title, place, form))
    side_files.check()
    return 0


def _recorded(prediction: Prediction, title: str) -> TraceFile:
    run = prediction.simulation
    file = TraceFile(title, str(prediction.policy), str(prediction.schedule), run.workers)
    file.add(prediction.graph, run.trace, prediction.seconds, run.by_worker, 1, 0.0)
    return file
