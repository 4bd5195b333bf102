"""The solver of all methods whose amplitudes are a fixed point: Jacobi steps with DIIS on block vectors.

It owns what every method needs around its equations: the plan, memory, checkpoints and restarts, the trace,
and schedules that are renewed from measured times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tilewise import cards
from tilewise.arguments import flag, from_zero, path_or_none, positive, whole_number
from tilewise.chem.sources import fitting_wish, reference_of
from tilewise.config import processor_of_each, thread_limits
from tilewise.errors import CheckpointError, ConvergenceError, InputError, one_of
from tilewise.execute import Result, Runner
from tilewise.execute.once import run_setup
from tilewise.execute.refinement import Refinement
from tilewise.execute.runner import EXECUTORS
from tilewise.inspect.operations.update import gap_vector
from tilewise.methods.amplitudes import Amplitudes
from tilewise.methods.checkpoint import Checkpoint, carried_over, matched
from tilewise.methods.checkpoint_file import CheckpointFile
from tilewise.methods.diis import DIIS
from tilewise.methods.integrals import Vectors, constants
from tilewise.methods.method import Method
from tilewise.methods.plan import DEFAULT_DIIS_SPACE, Plan, plan_outline
from tilewise.output_files import SideFiles
from tilewise.schedule import Policy
from tilewise.schedule.policies import DEFAULT_POLICY
from tilewise.tensor import Tensor
from tilewise.trace import Summary, TraceFile, summarize
from tilewise.wording import counted


@dataclass(frozen=True)
class Iteration:
    """One line of the table: the energy of the amplitudes that an iteration made.

    `change` is the difference to the energy of the amplitudes that came in, `residual` the norm of theirs.
    """

    number: int
    e_corr: float
    change: float
    residual: float
    seconds: float


class Solver:
    """A method on a mean field: `run()` solves it, and `e_tot` is its energy in hartree.

    mf           a PySCF mean field, or a tilewise Reference
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
    plan         a Plan of this method that was made beforehand: it decides on threads, policy, tile, memory,
                 on_the_fly, diis_space and deterministic

    After `run()`:

    e_tot        energy in hartree, of which e_hf is the mean field's and e_corr the correlation energy
    converged    whether the thresholds were met within max_cycle iterations
    iterations   an `Iteration` of each: its number, e_corr, change, residual and seconds
    notes        sentences about what went otherwise than asked
    seconds      wall-clock seconds of each phase, by its name
    plan         the Plan that was followed
    summary      what the workers did in the last iteration
    """

    method: ClassVar[Method]

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
        plan: Plan | None = None,
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
        self.method.suited_to(self.reference.outline)  # refuses open shells where there is no other method
        began = time.perf_counter()
        if plan is not None and not isinstance(plan, Plan):
            raise InputError(f"plan={plan!r}: plan must be a Plan, as tilewise.plan makes it")
        if plan is not None:
            self.plan = plan.of(self.reference.outline)
        else:
            self.plan = plan_outline(
                self.reference.outline,
                method=self.method,
                threads=threads,
                policy=policy,
                tile=tile,
                memory=memory,
                on_the_fly=on_the_fly,
                diis_space=diis_space,
                deterministic=deterministic,
            )
        if self.plan.method != self.method:
            raise InputError(f"the plan is one of {self.plan.method.name}, not of {self.method.name}")
        self._planning = time.perf_counter() - began
        self._asked_on_the_fly = bool(on_the_fly)
        if self.plan.on_the_fly and not self.reference.outline.is_fitted:
            self.reference = self.reference.decomposed()
        self.processors = processor_of_each(self.plan.threads) if pinned else ()

        self.e_hf = float(self.reference.e_hf)
        self.e_corr = self.e_tot = float("nan")
        self.converged = False
        self.kept = 0  # the iteration whose amplitudes this run has left in the checkpoint
        self.notes: list[str] = []
        self.iterations: list[Iteration] = []
        self.seconds: dict[str, float] = {}
        self.summary: Summary | None = None
        self.task_seconds = np.zeros(0)  # of each task of the plan's graph, in the last iteration
        self.by_worker: dict[str, list[float]] = {}  # counters, memory and allocations of the last iteration
        self.decided = ""  # by the policy, for the last iteration
        self.traced: TraceFile | None = None
        self._is_finished = False
        for name in self.method.results:
            setattr(self, name, None)

    # Solving

    def run(self) -> Self:
        """Solves the equations; returns self. Look at `converged` before using the energy."""
        self.iterations, self.kept, self._is_finished = [], 0, False
        self.notes = [*self.reference.notes]
        self.seconds = {"planning": self._planning}
        self._timed("planning", self._plan)
        start = self._timed("restart", self._read_restart) if self.restart else None
        with thread_limits(self.plan.threads):
            buffers = self._timed("integrals", self._constants)
            runner = self._timed("set-up", lambda: self._runner(buffers))
            amplitudes = self._start(runner, start)
        # One BLAS thread per worker from here on, and no other pool that spins.
        with thread_limits(1):
            self._timed("iterations", lambda: self._iterate(runner, amplitudes))
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

    def _runner(self, buffers: dict[str, np.ndarray]) -> Runner:
        """Makes what depends on constants alone, and memory for all the rest."""
        program, plan = self.plan.program, self.plan
        run_setup(program, buffers, plan.policy, plan.threads, self.executor)
        energies = self.method.orbital_energies(self.reference)
        for op in program.updates:
            buffers[op.gaps] = gap_vector(op, program.layouts[op.amplitude], energies)
        for name, layout in program.layouts.items():
            if name not in buffers:
                buffers[name] = np.zeros(layout.size)
        return Runner(plan.graph, plan.schedule, buffers, self.executor, self.processors)

    def _start(self, runner: Runner, start: dict[str, Tensor] | None) -> Amplitudes:
        """Amplitudes to begin with: those of a restart file, or those that the method says."""
        amplitudes = Amplitudes(self.plan.program)
        amplitudes.bind(runner)
        if start:
            amplitudes.start_from(start)
        else:
            amplitudes.start_first_order(runner, self.method.start)
        return amplitudes

    def _iterate(self, runner: Runner, amplitudes: Amplitudes) -> None:
        weights = amplitudes.weights(runner, self.method.spin_orbitals)
        diis = DIIS(self.plan.diis_space, len(weights), weights)
        if self.trace:
            title = f"{self.method.title} of {self.plan.outline.title}, {self.plan.outline.basis}"
            self.traced = TraceFile(title, str(self.plan.policy), str(runner.schedule), self.plan.threads)
        refinement = Refinement(runner, self.plan.policy, self.plan.team, self.plan.task_seconds)
        for_energy = self._energy_tasks(runner)
        began = time.perf_counter()
        for number in range(1, self.max_cycle + 1):
            clock = time.perf_counter()
            amplitudes.bind_step(runner, *diis.slot())
            result = runner.run(shift=self.level_shift)
            before, residual = result.scalars[self.method.energy], amplitudes.norm(result.scalars)
            if not np.isfinite(residual):
                raise ConvergenceError(
                    f"the amplitudes diverge in iteration {number}: try a level shift of 0.2"
                )
            diis.extrapolate(amplitudes.vector)
            energy = runner.run(for_energy).scalars[self.method.energy]
            seconds = time.perf_counter() - clock
            self._judge(Iteration(number, energy, energy - before, residual, seconds))
            self._observe(runner, result, refinement, clock - began)
            if self.callback:
                self.callback(self.iterations[-1])
            self._keep(number, amplitudes)
            if self.converged:
                break
        self._finish(amplitudes)

    def _judge(self, step: Iteration) -> None:
        """Takes the energy of an iteration, and decides whether it was the last one."""
        self.iterations.append(step)
        self.e_corr, self.e_tot = step.e_corr, self.e_hf + step.e_corr
        self.converged = abs(step.change) < self.conv_tol and step.residual < self.conv_tol_residual

    def _observe(self, runner: Runner, result: Result, refinement: Refinement, start: float) -> None:
        """Measured times replace the model after the first iteration."""
        self.by_worker, self.decided = result.by_worker, str(runner.schedule)
        self.summary = summarize(runner.graph, result.trace, self.plan.threads)
        self.task_seconds = result.seconds
        if self.traced:
            number, expected = len(self.iterations), refinement.seconds
            self.traced.add(runner.graph, result.trace, expected, result.by_worker, number, start)
        if self.executor == "threads":
            refinement.observe(result)

    def _finish(self, amplitudes: Amplitudes) -> None:
        for name, amplitude in self.method.results.items():
            tensor = amplitudes.tensors[amplitude]
            setattr(self, name, Tensor(tensor.layout, tensor.data, name))
        self._is_finished = True

    def _energy_tasks(self, runner: Runner) -> np.ndarray:
        """The few tasks that the energy needs."""
        needed = self.plan.program.needed_for(self.method.energy)
        chosen = np.array([op in needed for op in runner.graph.operations])
        return np.flatnonzero(chosen[runner.graph.tasks["operation"]])

    # Restart files

    @property
    def checkpoint(self) -> Path | None:
        """The file that is written after each iteration."""
        return self._checkpoint_file.path if self._checkpoint_file else None

    def _keep(self, number: int, amplitudes: Amplitudes) -> None:
        file = self._checkpoint_file
        if file is None:
            return
        orbitals = self.reference.identities
        saved = Checkpoint(self.method.name, number, self.e_corr, orbitals, amplitudes.tensors)
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
        saved, method = Checkpoint.read(self.restart), self.method
        if saved.method != method.name or set(method.amplitudes) - set(saved.tensors):
            raise CheckpointError(
                f"{self.restart}: it holds amplitudes of {saved.method}, not of {method.name}"
            )
        layouts, tensors = self.plan.program.layouts, saved.tensors
        try:
            orbitals = matched(self.reference.identities, saved.identities)
            return {name: carried_over(tensors[name], layouts[name], orbitals) for name in method.amplitudes}
        except CheckpointError as error:
            raise CheckpointError(f"{self.restart}: {error}") from None

    # Results

    def __repr__(self) -> str:
        return cards.line(self.method.title, self._shown)

    def _repr_html_(self) -> str:
        return cards.table(self.method.title, self._shown)

    @property
    def _shown(self) -> dict[str, str]:
        done = counted(len(self.iterations), "iteration")
        if self._is_finished:
            energies = f"E(corr) = {self.e_corr:.10f}, E({self.method.title}) = {self.e_tot:.10f} hartree"
            converged = f"{'' if self.converged else 'not '}converged after {done}"
            state = {"state": converged, "energy": energies}
        else:
            state = {"state": f"stopped after {done}" if self.iterations else "not run yet"}
        return self.reference.outline.shown | state

    @property
    def iteration_seconds(self) -> list[float]:
        """Wall-clock seconds of each iteration."""
        return [iteration.seconds for iteration in self.iterations]

    @property
    def diagnostics(self) -> dict[str, float]:
        """Numbers that tell how far the result can be trusted, by name; none unless a method has some."""
        return {}
