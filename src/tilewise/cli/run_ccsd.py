"""`tilewise ccsd`: the SCF, the iterations, and what is said and written on the way."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.open_shell import AnyReference
from tilewise.cli.console import Screen
from tilewise.cli.documents import result_document, write_document
from tilewise.cli.inputs import Calculation
from tilewise.cli.progress import Progress
from tilewise.errors import CheckpointError, ConvergenceError, InputError, Interrupted
from tilewise.execute.mpi.stores import tested
from tilewise.execute.mpi.world import Alone, World
from tilewise.methods import CCSD, Plan
from tilewise.methods.checkpoint import Checkpoint
from tilewise.methods.checkpoint_file import CheckpointFile
from tilewise.methods.preparation import check_memory
from tilewise.methods.solver import Iteration
from tilewise.output_files import SideFiles, check_target
from tilewise.wording import counted


@dataclass(frozen=True)
class Settings:
    """Of the iterations."""

    conv_tol: float
    conv_tol_residual: float
    max_cycle: int
    level_shift: float
    scf_max_cycle: int
    pin: bool = False
    ranks: World = field(default_factory=Alone)
    pattern: str = "cache"
    store: str = "auto"


@dataclass(frozen=True)
class Files:
    """Of one run; `json` may be "-"."""

    checkpoint: CheckpointFile | None
    restart: Path | None
    json: str | None
    trace: Path | None

    def check(self) -> None:
        """Refuses now what could not be written in the end."""
        check_target("--json", self.json)
        check_target("--trace", str(self.trace) if self.trace else None)
        if self.checkpoint:
            self._check_checkpoint(self.checkpoint)

    def _check_checkpoint(self, file: CheckpointFile) -> None:
        if file.path.exists() and not (file.path.is_file() or file.path.is_dir()):
            raise InputError(f"--checkpoint {file.path}: it is not a file; for none there is --no-checkpoint")
        try:
            check_target("--checkpoint", str(file.path))
        except InputError as error:
            if self.asks_for_checkpoint:
                raise
            raise InputError(f"{error}; choose another place, or none with --no-checkpoint") from None

    @property
    def asks_for_checkpoint(self) -> bool:
        """Whether the user has named it, rather than got it by default."""
        return self.checkpoint is not None and not self.checkpoint.owner


def run_ccsd(
    calculation: Calculation, plan: Plan, settings: Settings, files: Files, console: Console, verbose: bool
) -> int:
    """Raises ConvergenceError, after all results are out, if the iterations did not converge.

    The results come first, then the files besides; UnwrittenFileError says which of them are missing.
    """
    began = time.time()
    screen = Screen(console, verbose)
    known = calculation.known_orbitals(files.restart) if files.restart else ()
    integrals = calculation.integrals
    screen.opening(plan, integrals, is_run=True)
    if settings.ranks.size > 1:
        screen.ranks(settings.ranks, plan.threads, tested(settings.ranks))
    check_memory(plan, settings.ranks)
    try:
        with Progress(console) as progress:
            n_told = len(calculation.notes)
            reference, seconds = _mean_field(calculation, plan, settings, known, progress)
            screen.mean_field(reference, seconds.get("SCF"))
            for note in calculation.notes[n_told:]:
                screen.note(note)
            ccsd = _ccsd(reference, plan, settings, files, screen, progress)
            if ccsd.plan.outline.orbitals != plan.outline.orbitals:
                screen.note("the SCF fills other irreps than was guessed; the plan now is:")
                screen.opening(ccsd.plan, integrals, is_run=True)
            if not (plan.triples and ccsd.take()):
                ccsd.run()
            if plan.triples:
                screen.converged(ccsd)
                ccsd.ccsd_t()
    except KeyboardInterrupt:
        raise Interrupted(_how_to_go_on(files, began)) from None
    seconds |= ccsd.seconds
    screen.closing(ccsd, seconds)
    side_files = SideFiles(screen.note)
    if files.json and settings.ranks.rank == 0:
        write_document(result_document(ccsd, integrals, seconds, calculation.notes), files.json, side_files)
    if files.trace and ccsd.traced and settings.ranks.rank == 0:
        side_files.write(files.trace, ccsd.traced.write)
    if files.asks_for_checkpoint and ccsd.kept < len(ccsd.iterations):
        side_files.lost.append(str(ccsd.checkpoint))
    if not ccsd.converged:
        assert ccsd.iterations
        raise ConvergenceError(
            f"not converged in {counted(settings.max_cycle, 'iteration')}: the energy changed by "
            f"{ccsd.iterations[-1].change:.1e} hartree, the residual is {ccsd.iterations[-1].residual:.1e}; "
            "allow more with --max-cycle, or try --level-shift 0.2"
        )
    side_files.check()
    return 0


def _mean_field(
    calculation: Calculation,
    plan: Plan,
    settings: Settings,
    known: tuple[OrbitalIdentity, ...],
    progress: Progress,
) -> tuple[AnyReference, dict[str, float]]:
    def cycle(number: int, energy: float, change: float) -> None:
        progress(f"SCF, cycle {number}, {energy:.8f} hartree, change {change:.1e}")

    began = time.perf_counter()
    progress("SCF" if calculation.runs_scf else "orbitals")
    ranks = settings.ranks if settings.ranks.size > 1 else None
    reference = calculation.reference(settings.scf_max_cycle, plan.budget, cycle, known, ranks, plan.threads)
    return reference, {"SCF": time.perf_counter() - began} if calculation.runs_scf else {}


def _ccsd(
    reference: AnyReference, plan: Plan, settings: Settings, files: Files, screen: Screen, progress: Progress
) -> CCSD:
    def after(step: Iteration) -> None:
        screen.iteration(step)
        for note in ccsd.notes:
            screen.note(note)
        progress.heard()
        progress(f"iteration {step.number + 1}")

    def phase(name: str) -> None:
        if name == "set-up" and settings.ranks.size > 1:
            screen.distribution(ccsd.distribution)
        if name != "checkpoint":
            progress("iteration 1" if name == "iterations" else name)

    ccsd = CCSD(
        reference,
        plan=plan,
        conv_tol=settings.conv_tol,
        conv_tol_residual=settings.conv_tol_residual,
        max_cycle=settings.max_cycle,
        level_shift=settings.level_shift,
        pin=settings.pin,
        checkpoint=files.checkpoint,
        restart=files.restart,
        trace=files.trace is not None,
        callback=after,
        progress=phase,
        pattern=settings.pattern,
        store=settings.store,
    )
    return ccsd


def _how_to_go_on(files: Files, began: float) -> str:
    """What to say after an interruption: is there a checkpoint of this run?"""
    kept = files.checkpoint.path if files.checkpoint else None
    try:
        if kept and kept.stat().st_mtime >= began - 1:
            done = Checkpoint.read(kept).iteration
            return f"interrupted; {kept} holds iteration {done}, go on with --restart {kept}"
    except (OSError, CheckpointError):
        pass
    return "interrupted before an iteration was kept; " + (
        f"start again with --restart {files.restart}" if files.restart else "start again from the beginning"
    )
