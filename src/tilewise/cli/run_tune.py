"""`tilewise tune`: measures kernels, or the panels and quanta of a molecule, and keeps what it finds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from tilewise import __version__
from tilewise.cli.console import Screen, plain_table
from tilewise.cli.documents import write_document
from tilewise.cli.pictures import draw_exploration, picture_format
from tilewise.cli.progress import Progress
from tilewise.cost.score import calibrate_and_score
from tilewise.cost.wisdom import keep_model, keep_panels, machine_key, wisdom_file
from tilewise.methods import Plan
from tilewise.methods.exploration import Exploration, explore
from tilewise.output_files import SideFiles
from tilewise.schedule.policies import DEFAULT_POLICY
from tilewise.wording import counted


def tune_kernels(console: Console, json: str | None) -> None:
    """Fits the cost model, shows how good it is on shapes that it does not know, and keeps it."""
    screen = Screen(console)
    screen.line("machine", machine_key())
    with Progress(console) as progress:
        progress("making tensors to measure with")
        model, found = calibrate_and_score(progress=progress)
    table = plain_table("kernel", "samples", "median error", "90 % below")
    for score in found:
        errors = (f"{100 * error:.1f} %" for error in (score.median, score.ninetieth))
        table.add_row(score.kind, str(score.samples), *errors)
    console.print(table)
    _say_where(screen, keep_model(model))
    if json:
        side_files = SideFiles(screen.note)
        write_document(_document() | {"kernels": [asdict(score) for score in found]}, json, side_files)
        side_files.check()


def tune_molecule(plan: Plan, console: Console, picture: Path | None, json: str | None) -> None:
    """Shows the time of an iteration against panels and quantum, and keeps the best panels."""
    screen = Screen(console)
    screen.line("machine", machine_key())
    outline, workers = plan.outline, counted(plan.threads, "thread")
    screen.line("molecule", f"{outline.title}; basis {outline.basis}; {workers}")
    plan.check_memory()
    with Progress(console) as progress:
        found = explore(plan, progress=progress)
    _show(screen, found)
    _say_where(screen, keep_panels(found.key, found.best.rule))
    side_files = SideFiles(screen.note)
    if json:
        write_document(_document() | {"exploration": exploration_document(found, plan)}, json, side_files)
    if picture:
        title, form = f"{outline.title}, {outline.basis}, {workers}", picture_format(picture)
        if side_files.write(picture, lambda place: draw_exploration(found, title, place, form)):
            screen.line("picture", str(picture))
    side_files.check()


def exploration_document(found: Exploration, plan: Plan) -> dict[str, Any]:
    """What `--json` shows of an exploration."""
    trials = [
        {"height": t.rule.height, "width": t.rule.width, "tasks": t.tasks, "seconds": t.seconds}
        for t in found.trials
    ]
    return {
        "molecule": plan.outline.title,
        "basis": plan.outline.basis,
        "threads": plan.threads,
        "class": found.key,
        "trials": trials,
        "best": trials[found.trials.index(found.best)],
    }


def _document() -> dict[str, Any]:
    return {"version": __version__, "machine": machine_key(), "wisdom": str(wisdom_file())}


def _say_where(screen: Screen, note: str) -> None:
    if note:
        screen.note(note)
    else:
        screen.line("kept in", str(wisdom_file()))


def _show(screen: Screen, found: Exploration) -> None:
    heads = [f"quantum {quantum}" for quantum in found.quanta]
    table = plain_table("panels", "tasks", *heads, DEFAULT_POLICY)
    for trial in sorted(found.trials, key=lambda t: (t.rule.width, t.rule.height)):
        times = map(_milliseconds, trial.seconds.values())
        name = f"{trial.rule.height} x {trial.rule.width}"
        style = "bold" if trial == found.best else None
        table.add_row(name, str(trial.tasks), *times, style=style)
    screen.console.print(table)
    by_counter, quantum = found.best_quantum
    screen.line(
        "counter",
        f"best with {quantum} at a time, panels of {by_counter.rule.height} x {by_counter.rule.width}: "
        f"{_milliseconds(by_counter.at(quantum))}",
    )
    best, default = (t.seconds[DEFAULT_POLICY] for t in (found.best, found.default))
    screen.line(
        "panels",
        f"{found.best.rule.height} x {found.best.rule.width} from now on, for {found.key}: "
        f"{_milliseconds(best)} by {DEFAULT_POLICY}, {_milliseconds(default)} with the default panels",
    )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
