"""Closed-shell CCSD: the equations of `equations.ccsd`, and the loop that solves them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewise import cards
from tilewise.arguments import flag, from_zero, path_or_none, positive, whole_number
from tilewise.chem.sources import fitting_wish, reference_of
from tilewise.config import processor_of_each, thread_limits
from tilewise.equations.program import Update
from tilewise.errors import ConvergenceError, InputError, one_of
from tilewise.execute import Result, Runner
from tilewise.execute.once import run_setup
from tilewise.execute.refinement import Refinement
from tilewise.execute.runner import EXECUTORS
from tilewise.inspect.updates import gap_vector
from tilewise.methods.checkpoint import Checkpoint, carried_over
from tilewise.methods.checkpoint_file import CheckpointFile
from tilewise.methods.diis import DIIS
from tilewise.methods.integrals import Vectors, constants
from tilewise.methods.plan import DEFAULT_DIIS_SPACE, Plan, plan_outline
from tilewise.output_files import SideFiles
from tilewise.schedule import Policy
from tilewise.schedule.policies import DEFAULT_POLICY
from tilewise.tensor import Tensor
from tilewise.trace import Summary, TraceFile, summarize
from tilewise.wording import counted

AMPLITUDES = ("t", "T")


@dataclass(frozen=True)
class Iteration:
    """One line of the table: the energy of the amplitudes that came in, and how far off they are."""

    number: int
    e_corr: float
    change: float
    residual: float
    seconds: float


class CCSD:
    """Spin-adapted CCSD on a PySCF RHF object: `tilewise.CCSD(mf).run().e_tot`.

    frozen       occupied orbitals left out: a number, a list of MO indices, or "auto" for the core
    symmetry     "auto" (or None, True) for all of the molecule's abelian group, or the name of a subgroup;
                 False for "C1"
    df           density fitting: True for PySCF's default auxiliary basis, or the name of one
    cholesky     threshold of a Cholesky decomposition of the integrals, such as 1e-6
    threads      workers; by default all CPUs that this process may use
    policy       a name in `tilewise.policies`, with parameters as in "factoring(delta=0.5)", or an object
    pin          True: each worker is bound to a processor
    tile         orbitals per tile
    memory       budget, such as "8GB"; by default 80 % of what is free
    on_the_fly   True: integrals over four virtual orbitals are not stored; by default if memory is short
    conv_tol     change of the energy (hartree); conv_tol_residual: norm of the residual
    level_shift  added to the denominators of the steps (hartree)
    checkpoint   file written after each iteration; restart: file to start from
    deterministic  the same bits for every number of threads and every policy
    callback     called with an `Iteration` after each one; progress: with the name of each phase that begins
    trace        file for a trace that Perfetto opens; True: it is kept in `traced`, for its `write`
    """

    def __init__(
        self,
        mf: Any,
        *,
        frozen: int | Sequence[int] | str | None = None,
        symmetry: str | bool | None = "auto",
        df: bool | str = False,
        cholesky: float | None = None,
        threads: int | None = None,
        policy: str | Policy | None = DEFAULT_POLICY,
        pin: bool = False,
        tile: int | None = None,
        memory: str | int | float | None = None,
        on_the_fly: bool | None = None,
        conv_tol: float = 1e-8,
        conv_tol_residual: float = 1e-6,
        max_cycle: int = 50,
        level_shift: float = 0.0,
        diis_space: int = DEFAULT_DIIS_SPACE,
        executor: str = "threads",
        checkpoint: str | Path | CheckpointFile | None = None,
        restart: str | Path | None = None,
        deterministic: bool = False,
        callback: Callable[[Iteration], None] | None = None,
        progress: Callable[[str], None] | None = None,
        trace: str | Path | bool | None = None,
    ) -> None:
        self.conv_tol = positive("conv_tol", conv_tol)
        self.conv_tol_residual = positive("conv_tol_residual", conv_tol_residual)
        self.max_cycle = whole_number("max_cycle", max_cycle)
        self.level_shift = from_zero("level_shift", level_shift)
        if str(executor) not in EXECUTORS:
            raise one_of("executor", executor, EXECUTORS)
        self.executor = executor
        self._checkpoint_file = CheckpointFile.wished(checkpoint)
        self.restart = path_or_none("restart", restart)
        self.trace = trace if isinstance(trace, bool) else path_or_none("trace", trace)
        for name, called in (("callback", callback), ("progress", progress)):
            if called is not None and not callable(called):
                raise InputError(f"{name}={called!r}: {name} must be a function")
        self.callback, self.progress = callback, progress
        pinned = flag("pin", pin)
        self.reference = reference_of(mf, frozen, symmetry, fitting_wish(df, cholesky))
        self.notes: list[str] = []
        began = time.perf_counter()
        self.plan: Plan = plan_outline(
            self.reference.outline,
            threads=threads,
            policy=policy,
            tile=tile,
            memory=memory,
            on_the_fly=on_the_fly,
            diis_space=diis_space,
            deterministic=deterministic,
        )
        self._asked_on_the_fly = bool(on_the_fly)
        self._planning = time.perf_counter() - began
        if self.plan.on_the_fly and not self.reference.outline.is_fitted:
            self.reference = self.reference.decomposed()
        self.processors = processor_of_each(self.plan.threads) if pinned else ()
        self.kept = 0  # the iteration whose amplitudes this run has left in the checkpoint

        self.e_hf = float(self.reference.e_hf)
        self.e_corr = self.e_tot = float("nan")
        self.t1: Tensor | None = None
        self.t2: Tensor | None = None
        self.converged = False
        self.iterations: list[Iteration] = []
        self.seconds: dict[str, float] = {}
        self.summary: Summary | None = None
        self.task_seconds = np.zeros(0)  # of each task of the plan's graph, in the last iteration
        self.by_worker: dict[str, list[float]] = {}  # counters, memory and allocations of the last iteration
        self.decided = ""  # by the policy, for the last iteration
        self.traced: TraceFile | None = None

    # Solving

    def run(self) -> CCSD:
        """Solves the equations; returns self. Look at `converged` before using the energy."""
        self.iterations, self.notes, self.kept = [], [], 0
        self.seconds = {"planning": self._planning}
        self._timed("planning", self._plan)
        start = self._timed("restart", self._read_restart) if self.restart else None
        with thread_limits(self.plan.threads):
            buffers = self._timed("integrals", self._constants)
            machine = self._timed("set-up", lambda: self._machine(buffers))
            self._start(machine, start)
        # One BLAS thread per worker from here on, and no other pool that spins.
        with thread_limits(1):
            self._timed("iterations", lambda: self._iterate(machine))
        if self.traced and not isinstance(self.trace, bool):
            SideFiles(self.notes.append).write(str(self.trace), self.traced.write)
        return self

    def _timed(self, phase: str, work: Callable[[], Any]) -> Any:
        if self.progress:
            self.progress(phase)
        began = time.perf_counter()
        result = work()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began
        return result

    def _plan(self) -> None:
        self.plan.check_memory()
        if not self.plan.on_the_fly:
            _ = self.plan.schedule

    def _constants(self) -> dict[str, np.ndarray]:
        """Buffers of the constants. How many vectors there are is known only when they are made."""
        vectors = Vectors.of(self.reference, self.plan.threads)
        if self.plan.on_the_fly and vectors is not None:
            self.plan = self.plan.with_vectors(vectors.counts)
            if not self._asked_on_the_fly:
                self.notes.append(self.plan.note)
        plan = self.plan
        return constants(plan.equation, plan.program, self.reference, plan.threads, vectors)

    def _machine(self, buffers: dict[str, np.ndarray]) -> Runner:
        program, plan = self.plan.program, self.plan
        run_setup(program, buffers, plan.policy, plan.threads, self.executor)
        energies = {"o": self.reference.occ_energies, "v": self.reference.vir_energies}
        for op in program.operations:
            if isinstance(op, Update):
                layout = program.layouts[op.amplitude]
                buffers[op.gaps] = gap_vector(op, layout, energies)
        for name, layout in program.layouts.items():
            if name not in buffers:
                buffers[name] = np.zeros(layout.size)
        return Runner(plan.graph, plan.schedule, buffers, self.executor, self.processors)

    def _start(self, machine: Runner, start: dict[str, Tensor] | None) -> None:
        """Amplitudes to begin with: those of a restart file, or the first-order ones, t = K / gap."""
        layouts = self.plan.program.layouts
        lengths = [layouts[name].size for name in AMPLITUDES]
        self._vector = np.zeros(sum(lengths))
        self._cut = lengths[0]
        for name, part in zip(AMPLITUDES, self._parts(self._vector), strict=True):
            machine.bind(name, part)
            if start:
                part[:] = start[name].data
        if not start:
            doubles = Tensor(layouts["T"], machine.tensors["T"])
            exchange = Tensor(layouts["K"], machine.tensors["K"])
            op = next(o for o in self.plan.program.operations if isinstance(o, Update) and o.amplitude == "T")
            energies = {"o": self.reference.occ_energies, "v": self.reference.vir_energies}
            with np.errstate(
                divide="ignore", invalid="ignore"
            ):  # what is not finite ends the first iteration
                doubles.data[:] = exchange.data / _gaps(op, doubles, energies)

    def _parts(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return vector[: self._cut], vector[self._cut :]

    def _iterate(self, machine: Runner) -> None:
        diis = DIIS(self.plan.diis_space, len(self._vector))
        if self.trace:
            title = f"CCSD of {self.plan.outline.title}, {self.plan.outline.basis}"
            self.traced = TraceFile(title, str(self.plan.policy), str(machine.schedule), self.plan.threads)
        self._refinement = Refinement(machine, self.plan.policy, self.plan.team, self.plan.task_seconds)
        last_energy, began = 0.0, time.perf_counter()
        updates = self.plan.program.updates
        for number in range(1, self.max_cycle + 1):
            clock = time.perf_counter()
            slots = diis.slot()
            for op, new, step in zip(updates, *map(self._parts, slots), strict=True):
                machine.bind(op.new, new)
                machine.bind(op.step, step)
            result = machine.run(shift=self.level_shift)
            energy = result.scalars["e"]
            residual = float(np.sqrt(sum(result.scalars[op.norm2] for op in updates)))
            if not np.isfinite(residual):
                raise ConvergenceError(
                    f"the amplitudes diverge in iteration {number}: try a level shift of 0.2"
                )
            change, last_energy = energy - last_energy, energy
            self.converged = abs(change) < self.conv_tol and residual < self.conv_tol_residual
            self.e_corr, self.e_tot = energy, self.e_hf + energy
            diis.extrapolate(self._vector)
            seconds = time.perf_counter() - clock
            self._observe(machine, result, number, clock - began)
            self.iterations.append(Iteration(number, energy, change, residual, seconds))
            if self.callback:
                self.callback(self.iterations[-1])
            self._keep(number)
            if self.converged:
                break
        self._finish(machine)

    def _observe(self, machine: Runner, result: Result, number: int, start: float) -> None:
        """Measured times replace the model after the first iteration."""
        self.by_worker, self.decided = result.by_worker, str(machine.schedule)
        self.summary = summarize(machine.graph, result.trace, self.plan.threads)
        self.task_seconds = result.seconds
        if self.traced:
            self.traced.add(
                machine.graph, result.trace, self._refinement.seconds, result.by_worker, number, start
            )
        if self.executor == "threads":
            self._refinement.observe(result)

    def _finish(self, machine: Runner) -> None:
        """The last step is in the amplitudes already: the final energy is theirs, and the better for it."""
        if self.converged:
            self._evaluate_energy(machine)
        layouts = self.plan.program.layouts
        t1, t2 = self._parts(self._vector)
        self.t1, self.t2 = Tensor(layouts["t"], t1, "t1"), Tensor(layouts["T"], t2, "t2")

    def _evaluate_energy(self, machine: Runner) -> None:
        """Runs the few tasks that the energy needs."""
        program, graph = self.plan.program, machine.graph
        needed = program.needed_for("e")
        chosen = np.array([op in needed for op in graph.operations])
        result = machine.run(np.flatnonzero(chosen[graph.tasks["operation"]]))
        self.e_corr = result.scalars["e"]
        self.e_tot = self.e_hf + self.e_corr

    # Restart files

    @property
    def checkpoint(self) -> Path | None:
        """The file that is written after each iteration."""
        return self._checkpoint_file.path if self._checkpoint_file else None

    def _keep(self, number: int) -> None:
        file = self._checkpoint_file
        if file is None:
            return
        layouts = self.plan.program.layouts
        parts = zip(AMPLITUDES, self._parts(self._vector), strict=True)
        tensors = {name: Tensor(layouts[name], part, name) for name, part in parts}
        saved = Checkpoint("ccsd", number, self.e_corr, self.reference.identity, tensors)
        wanted, note = file.path, ""
        try:
            self._timed("checkpoint", lambda: file.write(saved))
            self.kept = number
            if file.path != wanted:
                note = f"checkpoint {wanted} is of another input; this run writes {file.path}"
        except OSError as error:
            note = (
                f"checkpoint {wanted} could not be written ({error.strerror or error}); going on without it"
            )
        if note and note not in self.notes:
            self.notes.append(note)

    def _read_restart(self) -> dict[str, Tensor]:
        assert self.restart
        saved = Checkpoint.read(self.restart)
        if saved.method != "ccsd" or set(AMPLITUDES) - set(saved.tensors):
            raise CheckpointError(f"{self.restart}: it holds amplitudes of {saved.method}, not of ccsd")
        layouts = self.plan.program.layouts
        try:
            orbitals = self.reference.identity.match(saved.identity)
            return {name: carried_over(saved.tensors[name], layouts[name], orbitals) for name in AMPLITUDES}
        except CheckpointError as error:
            raise CheckpointError(f"{self.restart}: {error}") from None

    # Results

    def __repr__(self) -> str:
        return cards.line("CCSD", self._shown)

    def _repr_html_(self) -> str:
        return cards.table("CCSD", self._shown)

    @property
    def _shown(self) -> dict[str, str]:
        done = counted(len(self.iterations), "iteration")
        if self.t1 is None:
            state = {"state": f"stopped after {done}" if self.iterations else "not run yet"}
        else:
            state = {
                "state": f"{'' if self.converged else 'not '}converged after {done}",
                "energy": f"E(corr) = {self.e_corr:.10f}, E(CCSD) = {self.e_tot:.10f} hartree",
            }
        return self.reference.outline.shown | state

    @property
    def iteration_seconds(self) -> list[float]:
        return [iteration.seconds for iteration in self.iterations]

    @property
    def t1_diagnostic(self) -> float:
        """Norm of the singles per square root of the number of correlated electrons (Lee and Taylor)."""
        if self.t1 is None:
            return float("nan")
        return float(self.t1.norm() / np.sqrt(2 * self.reference.outline.n_occ))

    def to_pyscf(self) -> tuple[np.ndarray, np.ndarray]:
        """(t1[i,a], t2[i,j,a,b]) as dense arrays in PySCF's order of the active orbitals."""
        if self.t1 is None or self.t2 is None:
            raise InputError("no amplitudes yet: call run() first")
        n_occ = self.reference.outline.n_occ
        occ, vir = np.argsort(self.reference.order[:n_occ]), np.argsort(self.reference.order[n_occ:])
        t1 = self.t1.to_dense()[np.ix_(occ, vir)]
        t2 = self.t2.to_dense().transpose(2, 3, 0, 1)[np.ix_(occ, occ, vir, vir)]
        return t1, t2


def _gaps(op: Update, tensor: Tensor, energies: dict[str, np.ndarray]) -> np.ndarray:
    """The denominator of every stored amplitude."""
    layout = tensor.layout
    gaps = np.zeros(layout.size)
    for s, (row_sector, col_sector) in enumerate(layout.sector_pairs):
        sides = []
        for compound, sector, signs in (
            (layout.rows, row_sector, op.row_signs),
            (layout.cols, col_sector, op.col_signs),
        ):
            orbitals, _ = compound.states(sector)
            sides.append(
                sum(s * energies[x.name][o] for x, s, o in zip(compound.spaces, signs, orbitals, strict=True))
            )
        gaps[layout.offsets[s] : layout.offsets[s + 1]] = np.add.outer(*sides).ravel()
    return gaps
