"""`tilewise ci`: the plan, the columns, the cycles, and the levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from tilewise import __version__
from tilewise.ci import CI
from tilewise.ci.levels import KnownLevel, Level, beside, read_levels
from tilewise.cli.ci_inputs import Run
from tilewise.cli.console import format_seconds, plain_table
from tilewise.cli.documents import write_document
from tilewise.cli.progress import Progress
from tilewise.config import format_bytes
from tilewise.errors import ConvergenceError, Interrupted
from tilewise.execute.mpi.world import world
from tilewise.methods.davidson import Cycle
from tilewise.output_files import SideFiles, check_target
from tilewise.wording import counted

_CONFIGURATIONS = 5  # that are listed of each level
_OCCUPATIONS = 12  # natural orbitals that are listed


@dataclass(frozen=True)
class CIFiles:
    """Of one run; `json` may be "-"."""

    checkpoint: Path | None
    restart: Path | None
    json: str | None
    trace: Path | None
    levels: Path | None

    def check(self) -> None:
        """Refuses now what could not be written in the end, or read."""
        check_target("--json", self.json)
        check_target("--trace", str(self.trace) if self.trace else None)
        check_target("--checkpoint", str(self.checkpoint) if self.checkpoint else None)
        if self.levels:
            read_levels(self.levels)

    def checkpoint_of(self, term: str | None) -> Path | None:
        """With several terms, each has a file of its own."""
        return _with_term(self.checkpoint, term)

    def restart_of(self, term: str | None) -> Path | None:
        return _with_term(self.restart, term)


def _with_term(path: Path | None, term: str | None) -> Path | None:
    return path if path is None or term is None else path.with_name(f"{path.stem}-{term}{path.suffix}")


def run_ci(runs: Sequence[Run], files: CIFiles, console: Console, plan_only: bool) -> int:
    """Raises ConvergenceError, after all results are out, if one calculation did not converge."""
    screen = CIScreen(console)
    done: list[CI] = []
    known_file = files.levels or next((run.levels for run in runs if run.levels), None)
    known = read_levels(known_file) if known_file else []
    for number, run in enumerate(runs):
        if run.planned is not None:
            screen.opening(run.planned, number == 0, run.name)
    side_files = SideFiles(screen.note)
    is_first = world().rank == 0
    if plan_only:
        if files.json and is_first:
            plans = [run.planned.plan().to_dict() for run in runs if run.planned]
            write_document({"version": __version__, "plans": plans}, files.json, side_files)
        side_files.check()
        return 0
    try:
        with Progress(console) as progress:
            for run in runs:
                done.append(_solved(run, files, screen, progress))
    except KeyboardInterrupt:
        raise Interrupted(_how_to_go_on(files)) from None
    levels = [level for calculation in done for level in calculation.levels]
    known_beside = beside(levels, known)
    screen.levels(levels, known_beside)
    screen.closing(done)
    if files.json and is_first:
        write_document(_document(done, levels, known_beside), files.json, side_files)
    if files.trace and done[-1].traced and is_first:
        side_files.write(files.trace, done[-1].traced.write)
    late = [calculation for calculation in done if not calculation.converged]
    if late:
        last = late[0].cycles[-1]
        raise ConvergenceError(
            f"not converged in {counted(last.number, 'cycle')}: the energies changed by {last.change:.1e} "
            f"hartree, the largest residual is {last.residuals.max():.1e}; allow more with --max-cycle"
        )
    side_files.check()
    return 0


def _solved(run: Run, files: CIFiles, screen: CIScreen, progress: Progress) -> CI:
    progress("SCF")
    calculation = run.make()
    if run.planned is None:
        screen.opening(calculation, True, run.name)

    def after(cycle: Cycle) -> None:
        screen.cycle(cycle)
        progress.heard()
        progress(f"cycle {cycle.number + 1}")

    calculation.follow(after, progress, files.trace is not None)
    screen.heading(run.name)
    calculation.run()
    for note in calculation.notes:
        screen.note(note)
    return calculation


def _how_to_go_on(files: CIFiles) -> str:
    if files.checkpoint and files.checkpoint.exists():
        return f"interrupted; go on with --restart {files.checkpoint}"
    return "interrupted; nothing was kept"


class CIScreen:
    """Prints for people; everything goes to one rich console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._told: set[str] = set()

    def line(self, label: str, text: str) -> None:
        self.console.print(f"{label:<14}{text}", soft_wrap=True)

    def note(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.console.print(f"note: {text}", soft_wrap=True, style="yellow")

    def opening(self, calculation: CI, is_first: bool, name: str) -> None:
        """What is calculated, and what that takes."""
        plan, shown = calculation.plan(), calculation.problem.shown
        for label, text in shown.items():
            if is_first or label == "labels":
                self.line(label, text)
        alpha, beta = plan.n_strings
        of_term = f" for {name}" if name else ""
        self.line("determinants", f"{plan.n_determinants} of {alpha} alpha and {beta} beta strings{of_term}")
        self.line("elements", f"at most {plan.elements} below the diagonal; {plan.how}")
        stages = ", ".join(f"{stage} {format_bytes(size)}" for stage, size in plan.memory.items())
        self.line("memory", f"{stages}; budget {format_bytes(plan.budget)}")
        workers = counted(plan.threads, "thread")
        if plan.ranks > 1:
            workers = f"{plan.ranks} x {workers} of ranks, {calculation.world.library}"
        self.line("policy", f"{plan.policy} on {workers}")
        predicted = ", ".join(f"{stage} {format_seconds(s)}" for stage, s in plan.seconds.items())
        self.line("predicted", predicted)
        self.console.print()

    def heading(self, name: str) -> None:
        if name:
            self.console.print(f"term {name}", style="bold")
        heads = f"{'E/hartree':>18} {'change':>10} {'residual':>10} {'vectors':>8}"
        self.console.print(f"{'cycle':>9} {heads}", style="bold")

    def cycle(self, cycle: Cycle) -> None:
        change = f"{cycle.change:10.2e}" if np.isfinite(cycle.change) else " " * 10
        values = f"{cycle.energies[0]:18.10f} {change} {cycle.residuals.max():10.2e} {cycle.subspace:8d}"
        self.console.print(f"{cycle.number:9d} {values}")

    def levels(self, levels: list[Level], known: Sequence[KnownLevel | None]) -> None:
        """All of them by energy; known ones beside, both counted from the lowest level that is known."""
        self.console.print()
        heads = ["state", "E/hartree", "above", "eV", "cm^-1"]
        has_known = any(known)
        table = plain_table(*heads, *(["known", "difference"] if has_known else []))
        lowest = min(level.energy for level in levels)
        for k in np.argsort([level.energy for level in levels], kind="stable").tolist():
            level, other = levels[k], known[k]
            hartree, volts, wavenumber = level.above(lowest)
            row = [level.name, f"{level.energy:.10f}", f"{hartree:.8f}", f"{volts:.5f}", f"{wavenumber:.1f}"]
            if has_known and other:
                row += [f"{other.wavenumber:.1f}", f"{wavenumber - other.wavenumber:+.1f}"]
            table.add_row(*row)
        self.console.print(table)

    def closing(self, done: Sequence[CI]) -> None:
        for calculation in done:
            for root, level in enumerate(calculation.levels):
                self.console.print()
                listed = level.configurations[:_CONFIGURATIONS]
                squares = f"<S^2> = {abs(level.s_squared):.4f}"
                if level.l_squared is not None:
                    squares += f", <L^2> = {abs(level.l_squared):.4f}"
                self.line(level.name, f"{level.energy:.10f} hartree, {squares}")
                self.line("weights", "; ".join(f"{name} {weight:.4f}" for name, weight in listed))
                natural = calculation.natural_orbitals(root)
                order = np.argsort(-natural.occupations, kind="stable")[:_OCCUPATIONS]
                words = [f"{natural.names[k]} {natural.occupations[k]:.4f}" for k in order]
                self.line("natural", ", ".join(words))
        self.console.print()
        for calculation in done:
            phases = [f"{name} {format_seconds(s)}" for name, s in calculation.seconds.items()]
            self.line("time", ", ".join(phases))
            if calculation.summary is not None and calculation.columns.elements.sum():
                stored = int(calculation.columns.elements.sum())
                self.line("columns", f"{stored} elements stored in {format_bytes(calculation.columns.bytes)}")
                share = 100 * calculation.summary.imbalance
                self.line("imbalance", f"{share:.1f} % of the time of the columns was not work")
            if calculation.checkpoint:
                self.line("checkpoint", str(calculation.checkpoint))


def _document(done: Sequence[CI], levels: list[Level], known: Sequence[KnownLevel | None]) -> dict[str, Any]:
    """docs/ci.schema.json describes it."""
    lowest = min(level.energy for level in levels)
    found = []
    for level, other in zip(levels, known, strict=True):
        hartree, volts, wavenumber = level.above(lowest)
        entry = asdict(level) | {"above": {"hartree": hartree, "eV": volts, "cm-1": wavenumber}}
        entry["configurations"] = [
            {"configuration": name, "weight": weight} for name, weight in level.configurations
        ]
        entry["known_wavenumber"] = other.wavenumber if other else None
        found.append(entry)
    return {
        "version": __version__,
        "method": "ci",
        "converged": all(calculation.converged for calculation in done),
        "e_tot": lowest,
        "levels": found,
        "calculations": [_calculation(calculation) for calculation in done],
    }


def _calculation(calculation: CI) -> dict[str, Any]:
    summary = calculation.summary
    e_mean_field = calculation.problem.e_mean_field
    return {
        "problem": calculation.problem.shown,
        "rank": calculation.rank,
        "roots": calculation.roots,
        "converged": calculation.converged,
        "energies": calculation.energies.tolist(),
        "e_mean_field": e_mean_field,
        "cycles": [
            {
                "number": cycle.number,
                "energies": cycle.energies.tolist(),
                "change": cycle.change if np.isfinite(cycle.change) else None,
                "residuals": cycle.residuals.tolist(),
            }
            for cycle in calculation.cycles
        ],
        "seconds": calculation.seconds,
        "elements": calculation.columns.elements.tolist(),
        "stored_bytes": calculation.columns.bytes,
        "direct_columns": calculation.columns.n_direct,
        "imbalance": summary.imbalance if summary else None,
        "natural_occupations": [
            calculation.natural_orbitals(root).occupations.tolist() for root in range(len(calculation.levels))
        ],
        "checkpoint": str(calculation.checkpoint.resolve()) if calculation.checkpoint else None,
        "notes": calculation.notes,
        "plan": calculation.plan().to_dict(),
    }
