"""Configuration interaction by self-scheduled columns: the calculation from a mean field to its levels."""
# ruff: noqa: E741 (l is the angular momentum)

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from tilewise import cards
from tilewise.arguments import flag, path_or_none, positive, whole_number
from tilewise.chem.configurations import Term, subshell_name
from tilewise.chem.reference import Outline
from tilewise.chem.sources import reference_of
from tilewise.ci.checkpoint import Roots
from tilewise.ci.columns import Built, Columns
from tilewise.ci.cost import keep_costs, known_costs
from tilewise.ci.determinants import Determinants, Selection, listed
from tilewise.ci.levels import Level, NaturalOrbitals, configuration_weights, natural_orbitals
from tilewise.ci.operators import Operator, spin_squared
from tilewise.ci.orbitals import PairNumbers
from tilewise.ci.plan import CIPlan, make_plan
from tilewise.ci.problems import Atom, Molecule, Problem, multiplicity
from tilewise.config import (
    default_memory,
    parse_memory,
    processor_of_each,
    resolve_threads,
    thread_limits,
)
from tilewise.errors import InputError
from tilewise.inspect.loop import LoopGraph
from tilewise.lazy import cached_property
from tilewise.methods.davidson import Cycle, Eigenpairs, Preconditioner, davidson
from tilewise.output_files import SideFiles
from tilewise.schedule import Policy, policy_named
from tilewise.trace import Summary, TraceFile, summarize
from tilewise.wording import counted

DEFAULT_POLICY = "factoring(f=2, delta=0.02)"
"""Chunks of columns that shrink, the last ones of about 20 ms."""

MODEL_SPACE = 200
"""Determinants with the lowest diagonal, whose dense block starts Davidson and preconditions it."""

MOST_ROOTS_FOR_A_TERM = 24
"""Roots that are followed at most until enough of a term are among them."""

_KEEP_EVERY = 5.0
"""Seconds between two checkpoints."""


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
        source = mf if isinstance(mf, Outline) else reference_of(mf, frozen, symmetry)
        problem = Molecule.of(source, irrep, spin, reference)
        self._begin(problem, rank, roots, None, settings)
        self._listed = None if determinants is None else _source_orbitals(determinants, problem)

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
        wanted = Term.parse(term) if term else None
        made = cls.__new__(cls)
        problem = Atom.of(
            symbol,
            basis,
            reference,
            charge=charge,
            n=n,
            l=l,
            frozen=frozen.split() if isinstance(frozen, str) else frozen,
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
        self.rank = sum(problem.electrons) if rank is None else whole_number("rank", rank, 0)
        self.roots = whole_number("roots", roots)
        chosen = self.settings = Settings(**settings)
        for name in ("conv_tol", "conv_tol_residual"):
            positive(name, getattr(chosen, name))
        whole_number("max_cycle", chosen.max_cycle)
        for name in ("callback", "progress"):
            called = getattr(chosen, name)
            if called is not None and not callable(called):
                raise InputError(f"{name}={called!r}: {name} must be a function")
        self._budget = None if chosen.memory is None else parse_memory(chosen.memory)
        self.policy = policy_named(chosen.policy)
        self.threads = resolve_threads(chosen.threads)
        self.checkpoint = path_or_none("checkpoint", chosen.checkpoint)
        self.restart = path_or_none("restart", chosen.restart)
        self.processors = processor_of_each(self.threads) if flag("pin", chosen.pin) else ()
        self._plan: CIPlan | None = None
        self.converged, self.levels = False, list[Level]()
        self.energies, self.vectors = np.zeros(0), np.zeros((0, 0))
        self.notes, self.cycles, self.seconds = list[str](), list[Cycle](), dict[str, float]()
        self.built: Built | None = None
        self.summary: Summary | None = None
        self.traced: TraceFile | None = None
        self.solution: Eigenpairs | None = None

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
        return Columns(self.determinants, self.numbers, self.threads, self.policy, self.processors)

    def plan(self) -> CIPlan:
        """What the calculation would take; made once, and followed by `run`."""
        if self._plan is None:
            self._plan = make_plan(
                self.columns,
                known_costs(),
                budget=self._budget or default_memory(),
                roots=self.roots,
                max_space=_space(self.roots),
                integral_bytes=self.problem.integral_bytes,
                direct=self.settings.direct,
            )
        return self._plan

    # Solving

    def run(self) -> Self:
        """Makes the columns and solves for the roots; returns self. Look at `converged`."""
        self.notes, self.cycles, self.seconds = [], [], {}
        plan = self._timed("planning", self.plan)
        if plan.stored_share < 1.0 and self.settings.direct is None:
            self.notes.append(f"memory is short: {plan.how}")
        start = self._timed("restart", self._read_restart) if self.restart else None
        with thread_limits(self.threads):
            operator = self._timed("integrals", lambda: self.problem.hamiltonian(self.numbers))
        with thread_limits(1):
            self.columns.use(operator)
            self.built = self._timed("columns", lambda: self._build(plan))
            preconditioner = self._timed("start", lambda: self._preconditioner(operator))
        with thread_limits(self.threads):
            self._timed("iterations", lambda: self._solve(operator, preconditioner, start))
        if self.traced and not isinstance(self.settings.trace, bool):
            SideFiles(self.notes.append).write(str(self.settings.trace), self.traced.write)
        return self

    def follow(self, callback: Callable[[Cycle], None], progress: Callable[[str], None], trace: bool) -> None:
        """Says whom to tell about the next run, and whether its trace is to be kept in `traced`."""
        self.settings = replace(self.settings, callback=callback, progress=progress, trace=trace or None)

    def _timed(self, phase: str, work: Callable[[], Any]) -> Any:
        if self.settings.progress:
            self.settings.progress(phase)
        began = time.perf_counter()
        result = work()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - began
        return result

    def _build(self, plan: CIPlan) -> Built:
        built = self.columns.build(plan.counts[:, 0], plan.column_seconds, plan.stored_bytes)
        graph = LoopGraph(len(self.determinants), "column")
        self.summary = summarize(graph, built.trace, self.threads)
        took = 1e-9 * (built.trace["end"] - built.trace["start"])
        kept = built.stored
        keep_costs(plan.costs.fitted(plan.counts[kept], took[kept]))
        if self.columns.n_direct and plan.stored_bytes:
            self.notes.append(
                f"{counted(int(kept.sum()), 'column')} are stored, {self.columns.n_direct} are made again "
                "in each product"
            )
        if self.settings.trace:
            title = f"CI of {self.problem.title}, {self.problem.basis}: columns"
            self.traced = TraceFile(title, str(self.policy), str(built.schedule), self.threads)
            self.traced.add(graph, built.trace, built.predicted, built.by_worker(), 1, 0.0)
        return built

    def _preconditioner(self, operator: Operator) -> Preconditioner:
        """The diagonal, and the dense block of the lowest determinants."""
        diagonal = self.columns.diagonal
        size = min(len(diagonal), max(MODEL_SPACE, 8 * (self.roots + 1)))
        lowest = np.argpartition(diagonal, size - 1)[:size]
        part, rows = self.determinants.part(lowest)
        few = Columns(part, self.numbers, 1, policy_named("block"))
        few.use(operator)
        counts = few.count()
        few.build(counts[:, 0], np.ones(len(part)), 1 << 30)
        return Preconditioner(diagonal, rows, few.dense())

    def _solve(self, operator: Operator, preconditioner: Preconditioner, start: np.ndarray | None) -> None:
        """Follows roots until there are enough of the term, if one is asked for."""
        roots, n = self.roots, len(self.determinants)
        while True:
            solved = self.solution = self._davidson(preconditioner, roots, start)
            s_squared, l_squared = self._squares(operator, solved.vectors)
            names = [
                self.problem.symmetry_name(float(s), None if l_squared is None else float(l_squared[k]))
                for k, s in enumerate(s_squared)
            ]
            wanted = [k for k, name in enumerate(names) if self.term is None or name == str(self.term)]
            most = min(MOST_ROOTS_FOR_A_TERM + self.roots, n)
            if len(wanted) >= self.roots or roots >= most:
                break
            start, roots = solved.vectors, min(roots + max(2, self.roots - len(wanted)), most)
        chosen = wanted[: self.roots]
        if not chosen:
            raise InputError(
                f"term {self.term}: it is not among the {counted(roots, 'lowest root')} "
                f"({', '.join(names)}); ask for one of these, or for m_l, m_s and parity alone"
            )
        if len(chosen) < self.roots and self.term is not None:
            self.notes.append(
                f"{len(chosen)} of {self.roots} roots of {self.term} are among the lowest {roots}"
            )
        self.converged = solved.converged
        self.energies, self.vectors = solved.energies[chosen], solved.vectors[chosen]
        self.levels = [
            Level(
                float(solved.energies[k]),
                names[k],
                float(s_squared[k]),
                None if l_squared is None else float(l_squared[k]),
                tuple(
                    (self.problem.configuration(shells), weight)
                    for shells, weight in configuration_weights(self.determinants, solved.vectors[k])
                ),
                float(solved.residuals[k]),
            )
            for k in chosen
        ]
        self._keep(len(self.cycles))

    def _davidson(self, preconditioner: Preconditioner, roots: int, start: np.ndarray | None) -> Eigenpairs:
        kept = time.monotonic()

        def follow(cycle: Cycle, vectors: np.ndarray) -> None:
            nonlocal kept
            self.cycles.append(cycle)
            self.energies, self.vectors = cycle.energies, vectors
            if self.settings.callback:
                self.settings.callback(cycle)
            if time.monotonic() - kept > _KEEP_EVERY:
                self._keep(cycle.number)
                kept = time.monotonic()

        return davidson(
            self.columns.multiply,
            preconditioner,
            roots,
            start=start,
            conv_tol=self.settings.conv_tol,
            conv_tol_residual=self.settings.conv_tol_residual,
            max_cycle=self.settings.max_cycle,
            max_space=_space(roots),
            progress=follow,
        )

    def _squares(self, operator: Operator, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """<S^2> and, of an atom, <L^2> of each vector."""
        problem, columns = self.problem, self.columns
        spin = spin_squared(problem.orbitals, self.numbers, self.determinants.electrons, operator)
        angular = problem.angular(self.numbers, operator)
        s_squared = columns.expectation(spin, vectors)
        return s_squared, None if angular is None else columns.expectation(angular, vectors)

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

    def _read_restart(self) -> np.ndarray:
        assert self.restart
        return Roots.read(self.restart, self.determinants.digest).vectors

    # Results

    @property
    def e_tot(self) -> float:
        """The lowest energy of the states asked for, in hartree."""
        return float(self.energies[0]) if len(self.energies) else float("nan")

    @property
    def e_hf(self) -> float:
        """Of the mean field; of an atom that of the averaged field."""
        known = self.problem.e_mean_field
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
        density, problem = self.density(root), self.problem
        if isinstance(problem, Atom):
            shells = problem.active
            first = np.concatenate([[0], np.cumsum([2 * l + 1 for _, l in shells])])
            radial = np.zeros((len(shells), len(shells)))
            for one, (_, l) in enumerate(shells):
                for other, (_, its) in enumerate(shells):
                    if l == its:
                        rows, columns = first[one] + np.arange(2 * l + 1), first[other] + np.arange(2 * l + 1)
                        radial[one, other] = density[rows, columns].sum()
            return natural_orbitals(radial, [subshell_name((0, l)).removeprefix("0") for _, l in shells])
        irreps = problem.orbitals.labels @ (1 << np.arange(problem.orbitals.labels.shape[1]))
        assert isinstance(problem, Molecule)
        return natural_orbitals(density, [problem.outline.group.irreps[k] for k in irreps])

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


def _space(roots: int) -> int:
    """Vectors that Davidson keeps."""
    return 4 * (roots + 1) + 8


def _source_orbitals(
    determinants: Sequence[tuple[Sequence[int], Sequence[int]]], problem: Molecule
) -> tuple[np.ndarray, np.ndarray]:
    """Alpha and beta orbitals (count, electrons) of a list, in our order."""
    spins = []
    for spin, name in enumerate(("alpha", "beta")):
        lengths = {len(pair[spin]) for pair in determinants}
        if lengths != {problem.electrons[spin]}:
            raise InputError(
                f"determinants: each needs {counted(problem.electrons[spin], f'{name} orbital')}, "
                f"and there are some with {sorted(lengths)}"
            )
        given = np.array([pair[spin] for pair in determinants], np.int64).reshape(len(determinants), -1)
        assert problem.reference is not None
        order = problem.reference.by_spin[0].order
        place = np.full(int(max(order.max(), given.max(initial=0))) + 1, -1, np.int64)
        place[order] = np.arange(len(order))
        mapped = np.where(given >= 0, place[given], -1)
        if (mapped < 0).any():
            wrong = int(given[mapped < 0][0])
            raise InputError(
                f"determinants: orbital {wrong} is not active; active are {sorted(order.tolist())}"
            )
        spins.append(mapped)
    return spins[0], spins[1]
