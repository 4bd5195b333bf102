"""Configuration interaction by self-scheduled columns: the calculation from a mean field to its levels."""
# ruff: noqa: E741 (l is the angular momentum)

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from tilewise import cards
from tilewise.arguments import flag, path_or_none, plain_text, positive, texts, whole_number
from tilewise.chem.configurations import Term
from tilewise.chem.reference import Outline
from tilewise.chem.sources import reference_of, share_source
from tilewise.ci.atom import Atom
from tilewise.ci.checkpoint import Roots
from tilewise.ci.columns import Built, Columns
from tilewise.ci.cost import ColumnCosts, keep_costs, known_costs
from tilewise.ci.determinants import Determinants, Selection, listed
from tilewise.ci.levels import Level, NaturalOrbitals
from tilewise.ci.molecule import Molecule
from tilewise.ci.operators import Operator
from tilewise.ci.orbitals import PairNumbers
from tilewise.ci.plan import CIPlan, make_plan
from tilewise.ci.problem import Problem, multiplicity
from tilewise.ci.rank_columns import RankColumns
from tilewise.ci.states import States, StateSearch, Thresholds, subspace
from tilewise.config import parse_memory, processor_of_each, thread_limits
from tilewise.errors import InputError, TilewiseError
from tilewise.execute.mpi.failure import together
from tilewise.execute.mpi.world import World, world
from tilewise.inspect.loop import LoopGraph
from tilewise.lazy import cached_property
from tilewise.methods.davidson import Cycle
from tilewise.methods.ranks import agreed_reference
from tilewise.output_files import SideFiles
from tilewise.schedule import Policy, policy_named
from tilewise.trace import Summary, TraceFile, summarize
from tilewise.wording import counted

DEFAULT_POLICY = "factoring(f=2, delta=0.02)"
"""Chunks of columns that shrink, the last ones of about 20 ms."""

_KEEP_EVERY = 5.0
"""Seconds between two checkpoints."""

_FEW_ORBITALS = 40
"""Integrals over no more are made by one thread: those of BLAS would wait for work at our workers' cost."""


@dataclass(frozen=True)
class Settings:
    """How a calculation is done, whatever it is about; the names are those of the arguments of `CI`."""

    threads: int | None = None
    policy: str | Policy = DEFAULT_POLICY
    pin: bool = False
    memory: str | int | float | None = None
    direct: bool | None = None
    conv_tol: float = 1e-9
    conv_tol_residual: float = 1e-5
    max_cycle: int = 60
    checkpoint: str | Path | None = None
    restart: str | Path | None = None
    callback: Callable[[Cycle], None] | None = None
    progress: Callable[[str], None] | None = None
    trace: str | Path | bool | None = None
    mpi: bool | str = "auto"


class CI:
    """Configuration interaction: `run()` solves it, `levels` are its states, `e_tot` the lowest energy.

    mf           a PySCF mean field with one set of orbitals (RHF or ROHF), or a tilewise Reference, as
                 `tilewise.read_fcidump` makes it; for atoms with subshells and terms see `CI.atom`
    rank         electrons that may leave the orbitals that a reference fills: 2 for singles and doubles;
                 None for all (full CI)
    irrep        of the states, such as "B1"; by default that of the reference
    spin         unpaired electrons of the determinants, 2 M_S; by default those of the mean field
    roots        how many states
    reference    occupations such as "2220", or several of them; by default that of the mean field
    determinants a list of pairs (alpha orbitals, beta orbitals) instead of a rank, numbered as in the source
    frozen, symmetry   as for `tilewise.CCSD`
    threads, policy, pin, memory   as for `tilewise.CCSD`; the policy shares out columns
    direct       True: no column is stored; False: all are, or the memory is too small; None: what fits
    conv_tol     change of the energies (hartree); conv_tol_residual: norms of the residuals
    checkpoint   file for the roots, written now and then; restart: file to start from
    callback     called with a `Cycle` after each one; progress: with the name of each phase that begins
    trace        file for a trace of the columns that Perfetto opens; True: it is kept in `traced`
    mpi          "auto": on all ranks that a launcher (mpiexec) has started; False: alone

    After `run()`:

    e_tot        the lowest energy of the states asked for, energies all of them, in hartree
    levels       a `Level` of each: energy, name, <S^2>, <L^2>, configurations with weights
    converged    whether the thresholds were met within max_cycle cycles
    notes, seconds, summary   as for `tilewise.CCSD`
    """

    _listed: tuple[np.ndarray, np.ndarray] | None

    def __init__(
        self,
        mf: Any,
        *,
        rank: int | None = 2,
        irrep: str | None = None,
        spin: int | None = None,
        roots: int = 1,
        reference: str | Sequence[str] | None = None,
        determinants: Sequence[tuple[Sequence[int], Sequence[int]]] | None = None,
        frozen: int | Sequence[int] | str | None = None,
        symmetry: str | bool | None = "auto",
        **settings: Any,
    ) -> None:
        ranks, source = world(settings.get("mpi", "auto")), mf
        if not isinstance(mf, Outline):
            if ranks.size > 1:
                share_source(mf, ranks.bcast, ranks.rank)
            source = agreed_reference(reference_of(mf, frozen, symmetry), ranks)
        problem = Molecule.of(source, irrep, spin, reference)
        self._begin(problem, rank, roots, None, settings)
        self._listed = None if determinants is None else problem.listed(determinants)

    @classmethod
    def atom(
        cls,
        symbol: str,
        *,
        basis: str,
        reference: str | Sequence[str],
        rank: int | None = 2,
        n: int | None = None,
        l: int | None = None,
        term: str | None = None,
        roots: int = 1,
        charge: int = 0,
        frozen: str | Sequence[str] = (),
        m_l: int | None = None,
        m_s: float | None = None,
        parity: str | None = None,
        **settings: Any,
    ) -> Self:
        """An atom, with orbitals of an SCF that is averaged over each subshell of the first reference.

        reference    a configuration such as "1s2 2s2 2p6", or several
        rank         electrons that may leave the subshells of a reference; None for all (full CI)
        n, l         the largest quantum numbers of orbitals; by default all that the basis has
        term         such as "3P" or "3Po": determinants with M_S = S and M_L = L, roots of this term alone
        frozen       subshells that stay full, such as "1s" or ["1s", "2s"]
        m_l, m_s, parity   of the determinants, if they are not to follow from the term and the reference
        """
        wanted = None if term is None else Term.parse(plain_text("term", term))
        made = cls.__new__(cls)
        problem = Atom.of(
            symbol,
            basis,
            reference,
            charge=charge,
            n=n,
            l=l,
            frozen=_subshells(frozen),
            term=wanted,
            m_l=m_l,
            m_s=m_s,
            parity=parity,
        )
        if wanted is not None:
            wanted = replace(wanted, is_odd=problem.is_odd)
        made._begin(problem, rank, roots, wanted, settings)
        made._listed = None
        return made

    def _begin(
        self, problem: Problem, rank: int | None, roots: int, term: Term | None, settings: dict[str, Any]
    ) -> None:
        unknown = set(settings) - set(Settings.__dataclass_fields__)
        if unknown:
            raise TypeError(f"CI has no argument '{sorted(unknown)[0]}'")
        self.problem, self.term = problem, term
        most = sum(problem.electrons)
        self.rank = most if rank is None else min(whole_number("rank", rank, 0), most)
        self.roots = whole_number("roots", roots)
        chosen = self.settings = Settings(**settings)
        for name in ("conv_tol", "conv_tol_residual"):
            positive(name, getattr(chosen, name))
        whole_number("max_cycle", chosen.max_cycle)
        for name in ("callback", "progress"):
            called = getattr(chosen, name)
            if called is not None and not callable(called):
                raise InputError(f"{name}={called!r}: {name} must be a function")
        if chosen.direct is not None:
            flag("direct", chosen.direct)
        if not isinstance(chosen.trace, bool):
            path_or_none("trace", chosen.trace)
        self.world: World = world(chosen.mpi)
        memory = chosen.memory
        self.budget = self.world.default_budget() if memory is None else parse_memory(memory)
        self.policy = policy_named(chosen.policy)
        self.threads = self.world.threads(chosen.threads)
        self.checkpoint = path_or_none("checkpoint", chosen.checkpoint)
        self.restart = path_or_none("restart", chosen.restart)
        self.processors = processor_of_each(self.threads) if flag("pin", chosen.pin) else ()
        self._plan: CIPlan | None = None
        self._costs: ColumnCosts = self.world.bcast(known_costs())
        self._e_mean_field: float | None = None
        self._start: np.ndarray | None = None
        self.converged, self.levels = False, list[Level]()
        self.energies, self.vectors = np.zeros(0), np.zeros((0, 0))
        self.notes, self.cycles, self.seconds = list[str](), list[Cycle](), dict[str, float]()
        self.built: Built | None = None
        self.summary: Summary | None = None
        self.traced: TraceFile | None = None

    # Before any integral

    @cached_property
    def determinants(self) -> Determinants:
        """All determinants, sorted by alpha string, then by beta string."""
        problem = self.problem
        if self._listed is not None:
            return listed(problem.orbitals, *self._listed)[0]
        chosen = Selection(problem.references, self.rank, problem.electrons, problem.label)
        return chosen.of(problem.orbitals)

    @cached_property
    def numbers(self) -> PairNumbers:
        """Numbers of pairs of orbitals, by which integrals are looked up."""
        return PairNumbers.of(self.problem.orbitals)

    @cached_property
    def columns(self) -> Columns:
        """The columns of the Hamiltonian, on the workers of this calculation."""
        of = (self.determinants, self.numbers, self.threads, self.policy, self.processors)
        return Columns(*of) if self.world.size == 1 else RankColumns(*of, world=self.world)

    def plan(self) -> CIPlan:
        """What the calculation would take; made once, and followed by `run`."""
        if self._plan is None:
            self._plan = make_plan(
                self.columns,
                self._costs,
                budget=self.budget,
                roots=self.roots,
                max_space=subspace(self.roots),
                integral_bytes=self.problem.integral_bytes,
                direct=self.settings.direct,
                ranks=self.world.size,
            )
        return self._plan

    # Solving

    def run(self) -> Self:
        """Makes the columns and solves for the roots; returns self. Look at `converged`.

        Under mpiexec all ranks call it together, and all have the same results.
        """
        with together(self.world):
            self._run()
        return self

    def _run(self) -> None:
        self.notes, self.cycles, self.seconds = [], [], {}
        plan = self._timed("planning", self.plan)
        if plan.stored_share < 1.0 and self.settings.direct is None:
            self.notes.append(f"memory is short: {plan.how}")
        if self.restart:
            self._timed("restart", lambda: self._by_first(self._read_restart))
        with thread_limits(self.threads if len(self.problem.orbitals.shell) > _FEW_ORBITALS else 1):
            integrals = partial(self.problem.hamiltonian, self.numbers)
            operator = self._timed("integrals", lambda: self._by_first(integrals))
        with thread_limits(1):
            self.columns.use(operator)
            self.built = self._timed("columns", lambda: self._build(plan))
            self._take(self._timed("iterations", lambda: self._states(operator)))
        if self.traced and self.world.rank == 0 and not isinstance(self.settings.trace, bool):
            SideFiles(self.notes.append).write(str(self.settings.trace), self.traced.write)

    def _by_first(self, work: Callable[[], Any]) -> Any:
        """What rank 0 finds, on every rank; an error of it is raised by all."""
        if self.world.size == 1:
            return work()
        found = None
        if self.world.rank == 0:
            try:
                found = work()
            except TilewiseError as error:
                found = error
        found = self.world.bcast(found)
        if isinstance(found, TilewiseError):
            raise found
        return found

    def follow(self, callback: Callable[[Cycle], None], progress: Callable[[str], None], trace: bool) -> None:
        """Says whom to tell about the next run, and whether its trace is to be kept in `traced`."""
        self.settings = replace(self.settings, callback=callback, progress=progress, trace=trace or None)

    def _timed(self, phase: str, work: Callable[[], Any]) -> Any:
        if self.settings.progress and self.world.rank == 0:
            self.settings.progress(phase)
        began = time.perf_counter()
        result = work()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began
        return result

    def _build(self, plan: CIPlan) -> Built:
        built = self.columns.build(plan.counts[:, 0], plan.column_seconds, plan.stored_bytes)
        graph = LoopGraph(len(self.determinants), "column")
        self.summary = summarize(graph, built.trace, len(built.counts))
        took = 1e-9 * (built.trace["end"] - built.trace["start"])
        kept = built.stored
        if self.world.rank == 0:
            keep_costs(plan.costs.fitted(plan.counts[kept], took[kept]))
        if self.columns.n_direct and plan.stored_bytes:
            self.notes.append(
                f"{counted(int(kept.sum()), 'column')} are stored, {self.columns.n_direct} are made again "
                "in each product"
            )
        if self.settings.trace:
            title = f"CI of {self.problem.title}, {self.problem.basis}: columns"
            self.traced = TraceFile(title, str(self.policy), str(built.schedule), len(built.counts))
            self.traced.add(graph, built.trace, built.predicted, built.by_worker(), 1, 0.0)
        return built

    def _states(self, operator: Operator) -> States:
        """Rank 0 looks for the states, the others multiply for it."""
        columns = self.columns
        if isinstance(columns, RankColumns) and self.world.rank:
            columns.serve()
        found: States = self._by_first(lambda: self._search(operator))
        return found

    def _search(self, operator: Operator) -> States:
        chosen, kept = self.settings, time.monotonic()

        def follow(cycle: Cycle, vectors: np.ndarray) -> None:
            nonlocal kept
            self.cycles.append(cycle)
            self.energies, self.vectors = cycle.energies, vectors
            if chosen.callback:
                chosen.callback(cycle)
            if time.monotonic() - kept > _KEEP_EVERY:
                self._keep(cycle.number)
                kept = time.monotonic()

        thresholds = Thresholds(chosen.conv_tol, chosen.conv_tol_residual, chosen.max_cycle)
        of = (self.problem, self.columns, operator, self.roots, self.term)
        try:
            return StateSearch(*of, thresholds, follow).run(self._start)
        finally:
            if isinstance(self.columns, RankColumns):
                self.columns.dismiss()

    def _take(self, found: States) -> None:
        """Keeps what was found, here and in the checkpoint."""
        self.converged, self.energies, self.vectors = found.converged, found.energies, found.vectors
        self.levels, self._e_mean_field = found.levels, found.e_mean_field
        self.notes += found.notes
        if self.world.size > 1:
            self.cycles, self.notes = self.world.bcast((self.cycles, self.notes))
        if self.world.rank == 0:
            self._keep(len(self.cycles))

    # Restart files

    def _keep(self, cycle: int) -> None:
        if self.checkpoint is None:
            return
        try:
            Roots(self.determinants.digest, cycle, self.energies, self.vectors).write(self.checkpoint)
        except OSError as error:
            reason = error.strerror or error
            note = f"checkpoint {self.checkpoint} could not be written ({reason}); going on without it"
            if note not in self.notes:
                self.notes.append(note)

    def _read_restart(self) -> None:
        assert self.restart
        self._start = Roots.read(self.restart, self.determinants.digest, len(self.determinants)).vectors

    # Results

    @property
    def e_tot(self) -> float:
        """The lowest energy of the states asked for, in hartree."""
        return float(self.energies[0]) if len(self.energies) else float("nan")

    @property
    def e_hf(self) -> float:
        """Of the mean field; of an atom that of the averaged field."""
        known = self.problem.e_mean_field if self._e_mean_field is None else self._e_mean_field
        return float("nan") if known is None else known

    @property
    def weights(self) -> list[dict[str, float]]:
        """Of each level, configurations and their weights."""
        return [dict(level.configurations) for level in self.levels]

    def density(self, root: int = 0) -> np.ndarray:
        """The spin-summed density matrix (n, n) of a state over the active orbitals."""
        if not 0 <= root < len(self.levels):
            raise InputError(f"root={root}: there are {counted(len(self.levels), 'state')}, counted from 0")
        return self.columns.density(self.vectors[root])

    def natural_orbitals(self, root: int = 0) -> NaturalOrbitals:
        """Of a state; of an atom by l, summed over m."""
        return self.problem.natural_orbitals(self.density(root))

    @property
    def s_squared(self) -> list[float]:
        """<S^2> of each state."""
        return [level.s_squared for level in self.levels]

    @property
    def multiplicities(self) -> list[int]:
        """2S + 1 of each level."""
        return [multiplicity(level.s_squared) for level in self.levels]

    def __repr__(self) -> str:
        return cards.line("CI", self._shown)

    def _repr_html_(self) -> str:
        return cards.table("CI", self._shown)

    @property
    def _shown(self) -> dict[str, str]:
        if not self.levels:
            return self.problem.shown | {"state": "not run yet"}
        cycles = counted(len(self.cycles), "cycle")
        state = f"{'' if self.converged else 'not '}converged after {cycles}"
        energies = ", ".join(f"{level.name} {level.energy:.10f}" for level in self.levels)
        return self.problem.shown | {"state": state, "energies": f"{energies} hartree"}


def _subshells(frozen: Any) -> list[str]:
    """Names of subshells in a text or a list; none of an empty one."""
    if isinstance(frozen, str):
        return frozen.split()
    is_empty = isinstance(frozen, list | tuple) and not frozen
    return [] if is_empty else texts("frozen", frozen, "1s")
