"""Plans: what a calculation will take, known before any integral is computed."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewise import cards
from tilewise.arguments import flag, whole_number
from tilewise.chem.reference import Outline
from tilewise.config import (
    cache_groups,
    default_memory,
    format_bytes,
    parse_memory,
    resident_memory,
    resolve_threads,
)
from tilewise.cost import CostModel, estimate, load_or_calibrate
from tilewise.cost.wisdom import load, panel_key
from tilewise.equations import Equation, plan_program
from tilewise.equations.program import Program
from tilewise.errors import InputError
from tilewise.execute.distribution import Distribution
from tilewise.execute.simulated import Simulation
from tilewise.hardware.model import MachineModel
from tilewise.inspect import PanelRule, TaskGraph, dense_flops, inspect
from tilewise.inspect.counting import program_bytes, program_flops
from tilewise.lazy import cached_property
from tilewise.methods.memory import MemoryEstimate, too_little
from tilewise.methods.method import DEFAULT_METHOD, Method, method_named
from tilewise.methods.panels import BUSY, GAIN, LOWER, TALLER, rule_of_ranks
from tilewise.methods.prediction import Predictor
from tilewise.methods.rank_memory import RankMemory
from tilewise.methods.triples_plan import TriplesPlan
from tilewise.native import scratch_size
from tilewise.new_memory import settle
from tilewise.schedule import Policy, Schedule, Team, policies, policy_named
from tilewise.schedule.policies import DEFAULT_POLICY
from tilewise.spaces import Space
from tilewise.spaces.space import DEFAULT_TILE
from tilewise.wording import counted

DEFAULT_DIIS_SPACE = 10
PROGRAM = ("spaces", "equation", "program")
"""Properties of a plan that its panels do not change."""
LONG = 0.1
"""Seconds of an iteration for which it is worth while to look for better panels."""


@dataclass(frozen=True)
class Plan:
    """A calculation, inspected: sizes, tasks, flops, memory, predicted time."""

    outline: Outline
    method: Method
    tile: int
    threads: int
    policy: Policy
    budget: int
    diis_space: int
    deterministic: bool = False
    rule: PanelRule = field(default_factory=PanelRule)
    in_use: int = 0
    """Bytes that the process has, or will have, before the calculation begins."""
    vectors: tuple[int, ...] | None = None
    """Where the integrals over four virtual orbitals are formed on the fly: vectors per irrep."""
    model: CostModel | None = None
    """Of this machine, if it is known: else it is measured when it is needed."""
    ranks: int = 1
    """Processes that share the calculation, each with so many threads and with such a budget."""
    on_one_node: bool = False
    """Whether these read each other's memory: then nothing is made twice to move less."""
    triples: bool = False
    """Whether (T) is to follow."""

    def __repr__(self) -> str:
        return cards.line("Plan", self._shown)

    def _repr_html_(self) -> str:
        return cards.table(f"Plan of a {self.method.title} calculation", self._shown)

    @property
    def _shown(self) -> dict[str, str]:
        return self.outline.shown | {
            "memory": f"{format_bytes(self.peak_memory)} of {format_bytes(self.budget)}",
            "tasks": f"{counted(len(self.graph), 'task')} per iteration",
            "threads": f"{self.policy} on {counted(self.threads, 'thread')}",
            "predicted": f"{self.predicted_seconds:.2g} s per iteration",
        }

    @cached_property
    def spaces(self) -> dict[str, Space]:
        return self.method.spaces(self.outline, self.tile, self.vectors)

    @cached_property
    def equation(self) -> Equation:
        """The text of the method, with constants that can be filled."""
        return self.method.equation_over(self.spaces, self.on_the_fly)

    @property
    def on_the_fly(self) -> bool:
        return self.vectors is not None

    @property
    def note(self) -> str:
        """What a user should know about a plan that is not the usual one."""
        if not self.on_the_fly:
            return ""
        return (
            "integrals over four virtual orbitals are formed on the fly from vectors, "
            f"for all of them do not fit into {format_bytes(self.budget)} of memory"
        )

    def of(self, outline: Outline) -> Plan:
        """This plan for the orbitals that the SCF has found; made anew only if others were guessed."""
        if self.outline.orbitals != outline.orbitals:
            return plan_outline(
                outline,
                method=self.method,
                threads=self.threads,
                policy=self.policy,
                tile=self.tile,
                budget=self.budget,
                diis_space=self.diis_space,
                deterministic=self.deterministic,
                on_the_fly=self.on_the_fly or None,
                in_use=self.in_use,
                ranks=self.ranks,
                on_one_node=self.on_one_node,
                triples=self.triples,
            )
        same = copy(self)  # with all that has been inspected
        object.__setattr__(same, "outline", outline)
        return same

    def with_panels(self, rule: PanelRule) -> Plan:
        """The same program in other panels."""
        other = replace(self, rule=rule)
        for known in PROGRAM:
            other.__dict__[known] = getattr(self, known)
        return other

    def with_what_is_known(self, other: Plan) -> Plan:
        """This plan of several ranks, with what each of them does if that was found out for an equal one."""
        if "distribution" in other.__dict__ and _decisions(self) == _decisions(other.agreed(other.ranks)):
            for known in (*PROGRAM, "distribution"):
                self.__dict__[known] = getattr(other, known)
        return self

    def with_vectors(self, counts: tuple[int, ...]) -> Plan:
        """The same, when the number of vectors is known."""
        return replace(self, vectors=counts)

    @cached_property
    def program(self) -> Program:
        return plan_program(self.equation, self.spaces)

    @cached_property
    def inspected(self) -> TaskGraph:
        """The tasks that the equations make, whatever the policy."""
        return inspect(self.program, self.rule, self.deterministic)

    @cached_property
    def _prepared(self) -> tuple[TaskGraph, np.ndarray]:
        """The graph as the policy likes it, and the seconds of each task by the model of this machine."""
        graph, model = self.inspected, self.model or load_or_calibrate()[0]
        seconds = estimate(graph, model)
        if self.deterministic:  # sums keep their order, whatever the number of workers
            return graph, seconds
        suited = self.policy.prepared(graph, seconds, self.threads)
        return suited, seconds if suited is graph else estimate(suited, model)

    @property
    def graph(self) -> TaskGraph:
        return self._prepared[0]

    @property
    def task_seconds(self) -> np.ndarray:
        return self._prepared[1]

    @cached_property
    def schedule(self) -> Schedule:
        return self.policy(self.graph, self.task_seconds, self.team)

    @cached_property
    def team(self) -> Team:
        return Team(self.threads, groups=cache_groups(self.threads))

    @cached_property
    def predicted_seconds(self) -> float:
        """Of one iteration: the work shared evenly, but no less than the longest path."""
        path = float(self.graph.longest_path(self.task_seconds).max(initial=0.0))
        return max(path, float(self.task_seconds.sum()) / self.threads)

    # Counts

    @property
    def flops(self) -> float:
        return program_flops(self.program)

    @property
    def dense_flops(self) -> float:
        """Of the same products on dense tensors without symmetry and packing."""
        return sum(dense_flops(op, self.program.layouts) for op in self.program.operations)

    @cached_property
    def without_symmetry(self) -> tuple[float, int]:
        """Flops and stored bytes of the same calculation in C1."""
        vectors = self.vectors and (sum(self.vectors),)
        program = replace(self, outline=self.outline.restrict("C1"), vectors=vectors).program
        return program_flops(program), program_bytes(program)

    @property
    def stored_bytes(self) -> int:
        return program_bytes(self.program)

    @cached_property
    def memory(self) -> dict[str, int]:
        """Bytes at the peak of each stage, with all that the process has besides; of the largest rank."""
        own = self.rank_memory if self.ranks > 1 else MemoryEstimate(self.program, *self._held)
        stages = {stage: self.in_use + size for stage, size in own.stages.items()}
        return {"before": self.in_use} | stages | (self.triples_plan.memory if self.triples else {})

    @cached_property
    def triples_plan(self) -> TriplesPlan:
        """Of (T), whether it is to follow or not."""
        return TriplesPlan(
            self.outline,
            self.method,
            self.tile,
            self.threads,
            self.policy,
            self.budget,
            self.in_use,
            self.deterministic,
            self.outline.is_fitted or self.on_the_fly,
            self.model,
        ).suited()

    @cached_property
    def distribution(self) -> Distribution:
        """Who does and holds what, on several ranks."""
        from tilewise.methods.ranks import distribution_of

        return distribution_of(self.agreed(self.ranks), self.ranks)

    def agreed(self, ranks: int) -> Plan:
        """The same with what all ranks must know alike: a cost model, and panels that are not too tall."""
        pairs = self.outline.n_occ * self.outline.n_vir
        rule = rule_of_ranks(self.rule, pairs, ranks * self.threads)
        return replace(self, model=self.model or load_or_calibrate()[0], rule=rule)

    @cached_property
    def rank_memory(self) -> RankMemory:
        """What each of several ranks holds and moves."""
        return RankMemory(self.program, self.distribution, *self._held, self.on_one_node)

    @property
    def _held(self) -> tuple[Outline, int, int, bool]:
        """What memory depends on besides the tensors."""
        scratch = 8 * scratch_size(self.inspected) * self.threads
        return self.outline, self.diis_space, scratch, self.outline.is_fitted or self.on_the_fly

    @property
    def peak_memory(self) -> int:
        return max(self.memory.values())

    def check_memory(self) -> None:
        """Raises MemoryBudgetError if the calculation needs more than it may use."""
        if self.peak_memory <= self.budget:
            return
        raise too_little(self.memory, self.budget, self.ranks)

    def tensors(self) -> list[tuple[str, str, int]]:
        """(name, kind, bytes) of each tensor, largest first."""
        rows = [
            (name, self.program.kinds[name], self.program.bytes_of(name)) for name in self.program.layouts
        ]
        return sorted(rows, key=lambda row: -row[2])

    def to_dict(self) -> dict[str, Any]:
        """The plan as a document of plain values."""
        c1_flops, c1_bytes = self.without_symmetry
        return {
            "method": self.method.name,
            "molecule": self.outline.title,
            "formula": self.outline.formula,
            "basis": self.outline.basis,
            "group": self.outline.group.name,
            "irreps": list(self.outline.group.irreps),
            "occupied": list(self.outline.occ),
            "virtual": list(self.outline.vir),
            "occupied_beta": list(self.outline.beta[0]) if self.outline.beta else None,
            "virtual_beta": list(self.outline.beta[1]) if self.outline.beta else None,
            "frozen_core": self.outline.frozen_core,
            "frozen_virtual": self.outline.frozen_virtual,
            "orbitals_from": self.outline.source,
            "threads": self.threads,
            "policy": str(self.policy),
            "tile": self.tile,
            "tasks": len(self.graph),
            "dependencies": len(self.graph.sources),
            "flops": self.flops,
            "flops_c1": c1_flops,
            "flops_dense": self.dense_flops,
            "stored_bytes": self.stored_bytes,
            "stored_bytes_c1": c1_bytes,
            "memory": dict(self.memory),
            "memory_peak": self.peak_memory,
            "memory_budget": self.budget,
            "on_the_fly": self.on_the_fly,
            "tensors": {name: size for name, _, size in self.tensors()},
            "predicted_iteration_seconds": self.predicted_seconds,
            **({"triples": self.triples_plan.to_dict()} if self.triples else {}),
            **({"ranks": self._ranks_shown} if self.ranks > 1 else {}),
        }

    @property
    def _ranks_shown(self) -> dict[str, Any]:
        """What several ranks hold and move, each."""
        own = self.rank_memory
        return {
            "count": self.ranks,
            "memory": [{stage: self.in_use + size for stage, size in each.items()} for each in own.by_rank],
            "shared_memory": own.windows,
            "bytes_per_iteration": own.moved,
            "gets_per_iteration": [self.distribution.counted(rank).gets for rank in range(self.ranks)],
        }


def plan_outline(
    outline: Outline,
    *,
    method: Method | str = DEFAULT_METHOD,
    threads: int | None = None,
    policy: str | Policy | None = DEFAULT_POLICY,
    tile: int | None = None,
    memory: str | int | float | None = None,
    diis_space: int = DEFAULT_DIIS_SPACE,
    deterministic: bool = False,
    on_the_fly: bool | None = None,
    in_use: int | None = None,
    budget: int | None = None,
    ranks: int = 1,
    on_one_node: bool = False,
    triples: bool = False,
) -> Plan:
    """The plan of a calculation, with `triples` that of CCSD(T).

    The integrals over four virtual orbitals are stored, or formed `on_the_fly`; by default that is done if
    they do not fit the memory.
    `in_use` is what the process has in memory when the calculation begins; by default what it has now.
    `budget` are the bytes that it may use; or `memory` says the same as a user does. With several `ranks`
    both are of each; by default all of them share the memory of this machine. `on_one_node` says that they
    read each other's memory.
    """
    ranks = whole_number("ranks", ranks)
    method = method_named(method).suited_to(outline)
    tile = DEFAULT_TILE if tile is None else whole_number("tile", tile)
    diis_space, deterministic = whole_number("diis_space", diis_space), flag("deterministic", deterministic)
    on_the_fly = None if on_the_fly is None else flag("on_the_fly", on_the_fly)
    settle()
    if budget is None:
        budget = default_memory() // ranks if memory is None else parse_memory(memory)
    budget = whole_number("budget", budget)
    if in_use is not None:
        in_use = whole_number("in_use", in_use, least=0)
    else:
        in_use = resident_memory()
        is_kept = in_use + outline.ao_bytes < 0.95 * budget  # as PySCF decides
        in_use += outline.ao_bytes * is_kept
        outline = replace(outline, is_direct=outline.is_direct or not is_kept)
    workers, known = resolve_threads(threads), load()[0]
    tuned = known.panels.get(panel_key(outline.group.order, outline.n_occ, outline.n_vir, workers))
    made = Plan(
        outline,
        method,
        tile,
        workers,
        policy_named(DEFAULT_POLICY if policy is None else policy),
        budget,
        diis_space,
        deterministic,
        PanelRule() if deterministic else tuned or PanelRule(),
        in_use,
        model=known.model,
        ranks=ranks,
        on_one_node=flag("on_one_node", on_one_node),
        triples=flag("triples", triples),
    )
    if on_the_fly and not outline.n_vectors:
        raise InputError("on_the_fly needs a molecule: integrals of a file cannot be decomposed")
    if on_the_fly and method.thrifty is None:
        raise InputError(f"on_the_fly: {method.name} has no text that forms integrals on the fly")
    can_be_thrifty = bool(outline.n_vectors) and method.thrifty is not None
    if can_be_thrifty and (on_the_fly or (on_the_fly is None and made.peak_memory > made.budget)):
        thrifty = replace(made, vectors=_guessed_vectors(outline))
        if on_the_fly or thrifty.peak_memory < made.peak_memory:
            made = thrifty
    return made if deterministic or tuned else _with_suited_panels(made)


def _with_suited_panels(plan: Plan) -> Plan:
    """With the panels that make the iteration shortest by the cost model, if it is long."""
    if plan.predicted_seconds < LONG or plan.peak_memory > plan.budget:
        return plan
    now = _by_dataflow(plan)
    best, least = plan, (1 - GAIN) * now.makespan
    for rule in LOWER if now.efficiency < BUSY else TALLER:
        other = plan.with_panels(rule)
        found = _by_dataflow(other)
        if found.makespan < least and other.peak_memory <= plan.budget:
            best, least = other, found.makespan
        if found.efficiency >= BUSY:  # lower panels would make more tasks for nothing
            break
    return best


def _decisions(plan: Plan) -> tuple[Any, ...]:
    """What the tasks of several ranks depend on."""
    return (
        *(plan.outline.orbitals, plan.method.name, plan.vectors, plan.tile, plan.rule, plan.model),
        *(str(plan.policy), plan.deterministic, plan.ranks, plan.on_one_node),
    )


def _by_dataflow(plan: Plan) -> Simulation:
    """An iteration on equal cores that lose no time."""
    predict = Predictor(plan.inspected, MachineModel("threads", 1, plan.threads))
    return predict(policies["dataflow"], plan.threads).simulation


def _guessed_vectors(outline: Outline) -> tuple[int, ...]:
    """Vectors of each irrep, in proportion to its pairs of orbitals."""
    counts = np.add(outline.occ, outline.vir)
    h = np.arange(outline.group.order)
    pairs = np.array([(counts[h] * counts[h ^ k]).sum() for k in h]) / 2
    return tuple(int(n) for n in np.ceil(outline.n_vectors * pairs / pairs.sum()))


def plan(
    source: Any,
    *,
    frozen: Any = None,
    symmetry: str | bool | None = "auto",
    df: bool | str = False,
    cholesky: float | None = None,
    **settings: Any,
) -> Plan:
    """Inspects a calculation without running it: memory, flops, tasks, predicted time.

    `source` is a PySCF molecule, a PySCF mean field, a Reference or an Outline. For a molecule no
    SCF is run: the occupation of each irrep is guessed. `method` is a Method or the name of one, "ccsd" by
    default; all else is as for `CCSD`.
    """
    from tilewise.chem import sources

    fitting = sources.fitting_wish(df, cholesky)
    return plan_outline(sources.outline_of(source, frozen, symmetry, fitting), **settings)
