"""The solver of all methods whose amplitudes are a fixed point: Jacobi steps with DIIS on block vectors.

It owns what every method needs around its equations: the plan, memory, checkpoints and restarts, the trace,
and schedules that are renewed from measured times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tilewise import cards
from tilewise.arguments import flag, from_zero, path_or_none, positive, whole_number
from tilewise.chem.sources import fitting_wish, reference_of, share_source
from tilewise.config import processor_of_each, thread_limits
from tilewise.errors import ConvergenceError, InputError, TaskError, one_of
from tilewise.execute import Result, Runner
from tilewise.execute.mpi.executor import Moved
from tilewise.execute.mpi.failure import together
from tilewise.execute.mpi.runner import DistributedRunner, RankResult
from tilewise.execute.mpi.stores import STORES
from tilewise.execute.mpi.world import world
from tilewise.execute.refinement import Refinement
from tilewise.execute.runner import EXECUTORS
from tilewise.methods.amplitudes import Amplitudes
from tilewise.methods.checkpoint import Checkpoint
from tilewise.methods.checkpoint_file import CheckpointFile
from tilewise.methods.diis import DIIS
from tilewise.methods.integrals import Vectors
from tilewise.methods.keeping import keep, taken_over
from tilewise.methods.method import Method
from tilewise.methods.plan import DEFAULT_DIIS_SPACE, Plan, plan_outline
from tilewise.methods.preparation import (
    AnyAmplitudes,
    AnyRunner,
    check_memory,
    constant_buffers,
    energy_tasks,
    local_runner,
    started,
)
from tilewise.methods.ranks import (
    PATTERNS,
    RankFigures,
    agreed_reference,
    constants_of_rank,
    distribution_by,
    on_ranks,
    rank_runner,
)
from tilewise.new_memory import pages_kept
from tilewise.output_files import SideFiles
from tilewise.schedule import Policy
from tilewise.schedule.policies import DEFAULT_POLICY
from tilewise.tensor import Tensor
from tilewise.trace import Summary, TraceFile, summarize
from tilewise.wording import counted

TOO_LARGE = 1e50
"""Amplitudes whose products may be larger than any number."""
WORTH_SHARING = 2e-4
"""Seconds of tasks from which on it pays to start threads for them."""


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


def _divergence(number: int) -> ConvergenceError:
    return ConvergenceError(f"the amplitudes diverge in iteration {number}: try a level shift of 0.2")


@contextmanager
def _finite(amplitudes: AnyAmplitudes, number: int) -> Iterator[None]:
    """Where amplitudes have become too large to be multiplied, a task that overflows tells of divergence."""
    try:
        yield
    except TaskError as error:
        if TOO_LARGE < np.abs(amplitudes.vector).max(initial=0.0) < np.inf:
            raise _divergence(number) from error
        raise


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
    mpi          "auto": on all ranks that a launcher (mpiexec) has started; True: also on one; False: alone
    pattern      between ranks: "cache" gets each strip once for all tasks of a rank, "original" for each,
                 "inverted" for each block of a constant
    store        how strips go between ranks: through the memory of one node, "shared", "one-sided", or by
                 "messages"; "auto" takes what the self-test finds
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
        mpi: bool | str = "auto",
        pattern: str = "cache",
        store: str = "auto",
    ) -> None:
        self.world = world(mpi)
        for name, value, valid in (("pattern", pattern, PATTERNS), ("store", store, STORES)):
            if str(value) not in valid:
                raise one_of(name, value, valid)
        self.pattern, self.store = pattern, store
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
        if self.world.size > 1:
            share_source(mf, self.world.bcast, self.world.rank)
            threads = self.world.threads(threads)
        own = reference_of(mf, frozen, symmetry, fitting_wish(df, cholesky))
        if self.method.semicanonical:
            own = own.semicanonical()
        self.reference = agreed_reference(own, self.world)
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
                budget=self.world.default_budget() if memory is None else None,
                ranks=self.world.size,
            )
        if self.plan.method != self.method:
            raise InputError(f"the plan is one of {self.plan.method.name}, not of {self.method.name}")
        if self.world.size > 1:
            self.plan = on_ranks(self.plan, self.world, self.pattern, self.store)
        self._planning = time.perf_counter() - began
        self._asked_on_the_fly = bool(on_the_fly)
        if self.plan.on_the_fly and not self.reference.outline.is_fitted:
            self.reference = self.reference.decomposed()
        self.processors = processor_of_each(self.plan.threads) if pinned else ()

        self.e_hf = self.world.bcast(float(self.reference.e_hf))
        self.e_corr = self.e_tot = float("nan")
        self.converged = False
        self.kept = 0  # the iteration whose amplitudes this run has left in the checkpoint
        self.notes: list[str] = []
        self.iterations: list[Iteration] = []
        self.seconds: dict[str, float] = {}
        self.summary: Summary | None = None
        self.task_seconds = np.zeros(0)  # of each task of the plan's graph, in the last iteration
        self.by_worker: dict[str, list[float]] = {}  # counters, memory and allocations of the last iteration
        self.by_rank: list[RankFigures] = []  # memory, and messages of the last iteration, if there are ranks
        self._moved = Moved()
        self.decided = ""  # by the policy, for the last iteration
        self.traced: TraceFile | None = None
        self._is_finished = False
        for name in self.method.results:
            setattr(self, name, None)

    # Solving

    def run(self) -> Self:
        """Solves the equations; returns self. Look at `converged` before using the energy."""
        with together(self.world), pages_kept():
            self._run()
        return self

    def _run(self) -> None:
        self.iterations, self.kept, self._is_finished = [], 0, False
        self.notes = [*self.reference.notes]
        self.seconds = {"planning": self._planning}
        self._timed("planning", self._check_plan)
        start = self._timed("restart", self._read_restart) if self.restart else None
        with thread_limits(self.plan.threads):
            buffers = self._timed("integrals", self._constants)
            runner = self._timed("set-up", lambda: self._runner(buffers))
            amplitudes = started(self.plan, runner, self.world, start)
        # One BLAS thread per worker from here on, and no other pool that spins.
        with thread_limits(1):
            self._timed("iterations", lambda: self._iterate(runner, amplitudes))
        if isinstance(runner, DistributedRunner):
            own = RankFigures.of(runner.distribution, self.world.rank, self._moved)
            self.by_rank = self.world.allgather(own)
            runner.close()
        self._write_trace()

    def _trace_file(self, decided: str = "") -> TraceFile:
        """What is traced; it begins here if nothing is yet."""
        if self.traced is None:
            title = f"{self.method.title} of {self.plan.outline.title}, {self.plan.outline.basis}"
            workers, ranks = self.plan.threads * self.world.size, self.world.size
            self.traced = TraceFile(title, str(self.plan.policy), decided, workers, ranks)
        return self.traced

    def _write_trace(self) -> None:
        if self.traced and not isinstance(self.trace, bool):
            SideFiles(self.notes.append).write(str(self.trace), self.traced.write)

    def take(self) -> bool:
        """Takes the amplitudes of the restart file as they are, without an iteration.

        False, and nothing is taken, if there is no such file or if it is not converged by the thresholds of
        this run.
        """
        if not self.restart:
            return False
        saved = Checkpoint.read(self.restart)
        if not (abs(saved.change) < self.conv_tol and saved.residual < self.conv_tol_residual):
            return False
        tensors = self._timed("restart", lambda: self._carried_over(saved))
        self.notes = [*self.reference.notes]
        for name, amplitude in self.method.results.items():
            setattr(self, name, Tensor(tensors[amplitude].layout, tensors[amplitude].data, name))
        self.e_corr, self.e_tot = saved.e_corr, self.e_hf + saved.e_corr
        self.converged = self._is_finished = True
        return True

    def _timed(self, phase: str, work: Callable[[], Any]) -> Any:
        if self.progress:
            self.progress(phase)
        began = time.perf_counter()
        result = work()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began
        return result

    def _check_plan(self) -> None:
        check_memory(self.plan, self.world)
        if not self.plan.on_the_fly and self.world.size == 1:
            _ = self.plan.schedule

    def _constants(self) -> dict[str, np.ndarray]:
        """Buffers of the constants. How many vectors there are is known only when they are made."""
        vectors = Vectors.of(self.reference, self.plan.threads)
        if self.plan.on_the_fly and vectors is not None:
            self.plan = self.plan.with_vectors(vectors.counts)
            if not self._asked_on_the_fly:
                self.notes.append(self.plan.note)
        plan, reference = self.plan, self.reference
        if self.world.size > 1:
            self.distribution = distribution_by(plan, self.pattern)
            energies = self.method.orbital_energies(reference)
            return constants_of_rank(self.world, plan, self.distribution, reference, vectors, energies)
        return constant_buffers(plan, reference, vectors, self.world)

    def _runner(self, buffers: dict[str, np.ndarray]) -> AnyRunner:
        plan, processors = self.plan, self.processors
        if self.world.size > 1:
            return rank_runner(self.world, plan, self.distribution, buffers, processors, self.store)
        energies = self.method.orbital_energies(self.reference)
        return local_runner(plan, energies, buffers, self.executor, processors)

    def _iterate(self, runner: AnyRunner, amplitudes: AnyAmplitudes) -> None:
        weights = amplitudes.weights(runner, self.method.spin_orbitals)
        first = amplitudes.first_order(runner, self.method.start)
        space, length = self.plan.diis_space, len(weights)
        in_order = self.plan.deterministic
        diis = DIIS(
            space,
            length,
            weights,
            amplitudes.ordered_sum if in_order else self.world.allreduce,
            amplitudes.pieces if in_order else None,
            first,
            self.plan.threads,
            amplitudes.n_settled,
        )
        if self.trace:
            self.traced = None
            self._trace_file(str(runner.schedule))
        refinement = None
        if isinstance(runner, Runner):
            refinement = Refinement(runner, self.plan.policy, self.plan.team, self.plan.task_seconds)
        for_energy = energy_tasks(self.plan, runner)
        began = time.perf_counter()
        with _finite(amplitudes, 1):
            ahead = self._run_ahead(runner, for_energy)
        for number in range(1, self.max_cycle + 1):
            clock = time.perf_counter()
            amplitudes.bind_step(runner, *diis.slot())
            with _finite(amplitudes, number):
                if isinstance(runner, Runner):
                    result = runner.run(shift=self.level_shift, after=ahead)
                else:
                    result = runner.run(shift=self.level_shift)
                before, residual = result.scalars[self.method.energy], amplitudes.norm(result.scalars)
                if not np.isfinite(residual):
                    raise _divergence(number)
                amplitudes.take_step(runner, diis.slot()[0])
                diis.extrapolate(amplitudes.vector)
                amplitudes.publish(runner)
                ahead = self._run_ahead(runner, for_energy)  # what the next iteration begins with
            energy = ahead.scalars[self.method.energy]
            seconds = time.perf_counter() - clock
            self._judge(Iteration(number, energy, energy - before, residual, seconds))
            self._observe(runner, result, refinement, clock - began)
            if self.callback:
                self.callback(self.iterations[-1])
            self._keep(number, amplitudes)
            if self.converged:
                break
        self._finish(amplitudes)

    def _run_ahead(self, runner: AnyRunner, tasks: np.ndarray) -> Result:
        """The few tasks of the energy, by all workers if they are worth it."""
        if not isinstance(runner, Runner):
            return runner.run(tasks)
        return runner.run(tasks, shared=float(self.plan.task_seconds[tasks].sum()) > WORTH_SHARING)

    def _judge(self, step: Iteration) -> None:
        """Takes the energy of an iteration, and decides whether it was the last one."""
        self.iterations.append(step)
        self.e_corr, self.e_tot = step.e_corr, self.e_hf + step.e_corr
        self.converged = abs(step.change) < self.conv_tol and step.residual < self.conv_tol_residual

    def _observe(
        self, runner: AnyRunner, result: Result, refinement: Refinement | None, start: float
    ) -> None:
        """Measured times replace the model after the first iteration."""
        graph, expected = runner.graph, refinement.seconds if refinement else np.zeros(0)
        moved: list[dict[str, float]] = []
        if isinstance(runner, DistributedRunner):
            assert isinstance(result, RankResult)
            self._moved, result = result.moved, runner.of_all(result)
            moved = [asdict(one) for one in result.moved_by_rank]
            graph, expected = runner.distribution.graph, runner.distribution.seconds
        self.by_worker, self.decided = result.by_worker, str(runner.schedule)
        self.summary = summarize(graph, result.trace, self.plan.threads * self.world.size)
        self.task_seconds = result.seconds
        if self.traced:
            number = len(self.iterations)
            self.traced.add(graph, result.trace, expected, result.by_worker, number, start, moved)
        if refinement and self.executor == "threads":
            refinement.observe(result)

    def _finish(self, amplitudes: AnyAmplitudes) -> None:
        found = amplitudes.tensors
        for name, amplitude in self.method.results.items():
            tensor = found[amplitude]
            setattr(self, name, Tensor(tensor.layout, tensor.data, name))
        self._is_finished = True

    # Restart files

    @property
    def checkpoint(self) -> Path | None:
        """The file that is written after each iteration."""
        return self._checkpoint_file.path if self._checkpoint_file else None

    def _keep(self, number: int, amplitudes: AnyAmplitudes) -> None:
        file = self._checkpoint_file
        if file is None:
            return
        last = self.iterations[-1]
        orbitals, thresholds = self.reference.identities, (last.change, last.residual)
        saved = Checkpoint(self.method.name, number, self.e_corr, orbitals, {}, *thresholds)
        if isinstance(amplitudes, Amplitudes):
            saved.tensors = amplitudes.tensors
        elif self.world.rank:
            self._timed("checkpoint", amplitudes.give)
            return
        else:
            saved.streamed = amplitudes.streamed()
        is_kept, note = self._timed("checkpoint", lambda: keep(file, saved))
        if is_kept:
            self.kept = number
        if note and note not in self.notes:
            self.notes.append(note)

    def _read_restart(self) -> dict[str, Tensor]:
        """On rank 0: the amplitudes to begin with."""
        assert self.restart
        if self.world.rank:
            return {}
        return self._carried_over(Checkpoint.read(self.restart))

    def _carried_over(self, saved: Checkpoint) -> dict[str, Tensor]:
        assert self.restart
        layouts = self.plan.program.layouts
        return taken_over(self.restart, saved, self.method, self.reference.identities, layouts)

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
