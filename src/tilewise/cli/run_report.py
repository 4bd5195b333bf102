"""`tilewise report`: from a trace file to a page, and the main numbers in a few lines."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tilewise.cli.console import Screen, format_seconds
from tilewise.config import format_bytes
from tilewise.errors import InputError
from tilewise.output_files import SideFiles, check_target
from tilewise.trace.page import report_page
from tilewise.trace.reader import read_trace
from tilewise.trace.report import IterationReport, report
from tilewise.wording import counted


def run_report(source: Path, out: Path | None, number: int | None, console: Console) -> int:
    """Writes the page beside the trace unless `out` says where; shows the last iteration unless told."""
    target = out or source.parent / f"{source.stem}.html"
    if target.resolve() == source.resolve():
        raise InputError(f"--out {target}: it is the trace itself, another file is needed")
    check_target("--out", str(target))
    trace = read_trace(source)
    shown = report(trace, trace.iteration(number))
    screen = Screen(console)
    screen.line("trace", f"{trace.title}; iterations: {len(trace.iterations)}, workers: {trace.workers}")
    screen.line("policy", trace.policy)
    screen.line(
        "iteration",
        f"{shown.number}: {counted(shown.tasks, 'task')}, makespan {format_seconds(shown.makespan)}",
    )
    screen.line("bounds", _bounds(shown, trace.workers))
    screen.line("imbalance", f"{100 * shown.imbalance:.1f} % of the workers' time was not work")
    page, files = report_page(trace, shown.number).encode(), SideFiles(screen.note)
    if files.write(target, lambda place: place.write_bytes(page)):
        screen.line("page", f"{target}, {format_bytes(len(page))}")
    files.check()
    return 0


def _bounds(shown: IterationReport, workers: int) -> str:
    """What no schedule can go below."""
    path, work = format_seconds(shown.critical_path), format_seconds(shown.work / workers)
    share = f" ({100 * shown.critical_path / shown.makespan:.1f} % of the makespan)" if shown.makespan else ""
    return f"critical path {path}{share}, work of each worker {work}"
