"""What the command line shows: the plan, a line per iteration, the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tilewise.chem.open_shell import AnyReference, OpenReference
from tilewise.cli.inputs import EXACT, IntegralKind
from tilewise.config import format_bytes
from tilewise.execute.distribution import Distribution
from tilewise.execute.mpi.world import SelfTest, World
from tilewise.hardware.machines import MachineModel
from tilewise.inspect import operation_flops
from tilewise.methods import CCSD, Plan, Solver
from tilewise.methods.granularity import Granularity
from tilewise.methods.prediction import PredictionRow
from tilewise.methods.solver import Iteration
from tilewise.methods.triples_plan import TriplesPlan
from tilewise.wording import counted

_SHOWN = 8  # tensors listed by name without --verbose


class Screen:
    """Prints for people; everything goes to one rich console."""

    def __init__(self, console: Console, verbose: bool = False) -> None:
        self.console, self.verbose = console, verbose
        self._told: set[str] = set()

    def line(self, label: str, text: str) -> None:
        self.console.print(f"{label:<12}{text}", soft_wrap=True)

    def note(self, text: str) -> None:
        """Said once."""
        if text in self._told:
            return
        self._told.add(text)
        self.console.print(f"note: {text}", soft_wrap=True, style="yellow")

    # The plan

    def opening(self, plan: Plan, integrals: IntegralKind | None = None, is_run: bool = False) -> None:
        """A plan; one that is run says later, and as it is, what ranks hold and move."""
        self._molecule(plan)
        if integrals is not None and integrals.kind != EXACT:
            self.line("integrals", integrals.text)
        self._orbitals(plan)
        self._tensors(plan)
        self._memory(plan)
        if plan.ranks > 1 and not is_run:
            self._ranks(plan)
        self._work(plan)
        self.console.print()

    def _molecule(self, plan: Plan) -> None:
        outline = plan.outline
        self.line("molecule", f"{outline.shown['molecule']}; {outline.electrons}; basis {outline.basis}")
        self.line("group", outline.group.name)
        frozen = f"frozen {outline.frozen_core} occupied, {outline.frozen_virtual} virtual"
        self.line("orbitals", f"{outline.shown['orbitals']}; {frozen}; {outline.source}")

    def _orbitals(self, plan: Plan) -> None:
        table = plain_table("irrep", *plan.outline.group.irreps, "all")
        for kind, name in enumerate(("occupied", "virtual")):
            for spin, counts in zip(("alpha", "beta"), plan.outline.by_spin, strict=True):
                label = f"{name} {spin}" if plan.outline.beta else name
                if plan.outline.beta or spin == "alpha":
                    table.add_row(label, *map(str, counts[kind]), str(sum(counts[kind])))
        self.console.print(table)

    def _tensors(self, plan: Plan) -> None:
        rows = plan.tensors()
        shown = rows if self.verbose else rows[:_SHOWN]
        rest = sum(size for _, _, size in rows[len(shown) :])
        table = plain_table("tensor", "indices", "kind", "stored", left=3)
        for name, kind, size in shown:
            spaces = "".join(space.name for space in plan.program.layouts[name].spaces)
            table.add_row(name, spaces, kind, format_bytes(size))
        if len(rows) > len(shown):
            table.add_row(f"{len(rows) - len(shown)} more", "", "", format_bytes(rest))
        table.add_row("all", "", "", format_bytes(plan.stored_bytes), style="bold")
        self.console.print(table)

    def _memory(self, plan: Plan) -> None:
        stages = ", ".join(f"{stage} {format_bytes(size)}" for stage, size in plan.memory.items())
        of_rank = " of the largest rank" if plan.ranks > 1 else ""
        self.line("memory", f"{stages}{of_rank}; budget {format_bytes(plan.budget)}{of_rank and ' of each'}")
        if plan.note:
            self.note(plan.note)

    def _ranks(self, plan: Plan) -> None:
        own = plan.rank_memory
        shared = f"{format_bytes(sum(own.windows))} of shared memory if all are on one node"
        moved = f"{format_bytes(sum(own.moved))} moved per iteration, at most {format_bytes(max(own.moved))}"
        self.line("ranks", f"{plan.ranks} x {counted(plan.threads, 'thread')}; {shared}; {moved} to one rank")

    def _work(self, plan: Plan) -> None:
        flops, dense, (flops_c1, bytes_c1) = plan.flops, plan.dense_flops, plan.without_symmetry
        dependencies = counted(len(plan.graph.sources), "dependency", "dependencies")
        self.line("tasks", f"{len(plan.graph)} per iteration, {dependencies}")
        self.line(
            "flops",
            f"{format_flops(flops)} per iteration, in place of {_part(dense, flops, format_flops)} dense",
        )
        self.line(
            "in C1",
            f"{_part(flops_c1, flops, format_flops)} per iteration, "
            f"{_part(bytes_c1, plan.stored_bytes, format_bytes)} stored",
        )
        self.line("threads", f"{plan.threads}, tiles of up to {counted(plan.tile, 'orbital')}")
        self.line("policy", str(plan.schedule))
        self.line("predicted", f"{format_seconds(plan.predicted_seconds)} per iteration")
        if plan.triples:
            self._triples(plan.triples_plan)

    def _triples(self, plan: TriplesPlan) -> None:
        """The pass that follows the iterations."""
        flops, seconds = format_flops(plan.flops), format_seconds(plan.predicted_seconds)
        tasks = counted(len(plan.graph), "task")
        self.line("(T)", f"{tasks}, {flops}, {format_bytes(plan.operand_bytes)} of operands, {seconds}")
        if plan.note:
            self.note(plan.note)

    def ranks(self, ranks: World, threads: int, test: SelfTest) -> None:
        """Who calculates, on how many nodes, by which library, and whether one-sided communication works."""
        each = ", ".join(str(len(own)) for own in ranks.nodes)
        where = counted(len(ranks.nodes), "node") + (f" ({each} ranks)" if len(ranks.nodes) > 1 else "")
        self.line("ranks", f"{ranks.size} x {counted(threads, 'thread')} on {where}, {ranks.library}")
        self.line("self-test", f"{test.text} ({1000 * test.seconds:.0f} ms)")
        if test.note:
            self.note(test.note)

    def distribution(self, shared: Distribution) -> None:
        """What ranks will hold and move."""
        held = [shared.bytes(rank) for rank in range(shared.ranks)]
        moved = [shared.counted(rank) for rank in range(shared.ranks)]
        self.line(
            "each rank",
            f"tensors of {format_bytes(min(held))} to {format_bytes(max(held))}; all ranks move "
            f"{format_bytes(sum(one.bytes for one in moved))} per iteration in "
            f"{counted(sum(one.gets for one in moved), 'Get')}",
        )

    def granularity(self, rows: list[Granularity]) -> None:
        """Tile sizes side by side, each with its ratio to the one before."""
        table = plain_table("tile", "tasks", "blocks", "parallelism", "worker's blocks")
        for k, row in enumerate(rows):
            before = rows[k - 1] if k else row
            table.add_row(
                str(row.tile),
                _against(row.tasks, before.tasks, str),
                _against(row.blocks, before.blocks, str),
                _against(row.parallelism, before.parallelism, lambda x: f"{x:.1f}"),
                _against(row.worker_bytes, before.worker_bytes, format_bytes),
            )
        self.console.print(table)
        self.console.print()

    def machine(self, model: MachineModel) -> None:
        nodes, cores = counted(model.nodes, "node"), counted(model.cores, "core")
        self.line("machine", f"{model.name}: {nodes} of {cores}, simulated")

    def predictions(self, policy: str, rows: list[PredictionRow]) -> None:
        """Simulated iterations by one policy, and where the time of the workers goes."""
        self.line("policy", policy)
        table = plain_table(
            "workers", "tasks", "time", "efficiency", "imbalance", "counters", "network", "waiting", left=0
        )
        for row in rows:
            shares = (row.efficiency, row.imbalance, row.counters, row.communication, row.waiting)
            shown = (f"{100 * share:.1f} %" for share in shares)
            table.add_row(str(row.workers), str(row.tasks), format_seconds(row.seconds), *shown)
        self.console.print(table)

    # The run

    def mean_field(self, reference: AnyReference, seconds: float | None) -> None:
        """`seconds` of the SCF, or None if the orbitals come from a file."""
        how = "of the file" if seconds is None else f"after {format_seconds(seconds)}"
        kind, s_squared = "HF", ""
        if isinstance(reference, OpenReference):
            kind = reference.kind.upper()
            if reference.s_squared is not None:
                s_squared = f", <S^2> = {reference.s_squared:.4f}"
        self.line("mean field", f"E({kind}) = {reference.e_hf:.10f} hartree{s_squared}, {how}")
        for note in reference.notes:
            self.note(note)
        self.console.print()

    def iteration(self, step: Iteration) -> None:
        if step.number == 1:
            heads = f"{'E(corr)/hartree':>18} {'change':>10} {'residual':>10} {'seconds':>9}"
            self.console.print(f"{'iteration':>9} {heads}", style="bold")
        values = f"{step.e_corr:18.10f} {step.change:10.2e} {step.residual:10.2e} {step.seconds:9.3f}"
        self.console.print(f"{step.number:9d} {values}")

    def converged(self, solved: Solver) -> None:
        """Between CCSD and what follows."""
        state = "converged" if solved.converged else "NOT CONVERGED"
        self.console.print()
        self.line(solved.method.title, f"{state} {_how(solved)}; E(corr) = {solved.e_corr:.10f} hartree")

    def closing(self, solved: CCSD, seconds: dict[str, float]) -> None:
        self.console.print()
        if self.verbose and solved.iterations:
            self._operations(solved)
        state = "converged" if solved.converged else "NOT CONVERGED"
        title = solved.method.title
        self.line(title, f"{state} {_how(solved)}")
        energies = {"E(HF)": solved.e_hf, "E(corr)": solved.e_corr, f"E({title})": solved.e_tot}
        if solved.triples is not None:
            parts = {"E[T]": solved.triples.fourth, "E(T) - E[T]": solved.triples.fifth}
            energies |= parts | {"E(T)": solved.e_t, f"E({title}(T))": solved.e_tot_t}
        for label, energy in energies.items():
            self.line(label, f"{energy:18.10f} hartree")
        for name, value in solved.diagnostics.items():
            label, _, kind = name.partition("_")
            self.line({"s2": "<S^2>"}.get(label, label.upper()), f"{value:18.10f} {kind.replace('_', ' ')}")
        inside = {"checkpoint"}  # counted in the iterations too
        phases = [f"{name} {format_seconds(s)}" for name, s in seconds.items() if name not in inside]
        kept = (
            f" (checkpoints {format_seconds(seconds['checkpoint'])} of them)"
            if "checkpoint" in seconds
            else ""
        )
        self.line("time", ", ".join(phases) + kept)
        if solved.summary is not None:
            share = 100 * solved.summary.imbalance
            self.line(
                "imbalance", f"{share:.1f} % of the last iteration, averaged over the workers, was not work"
            )
        if solved.plan.policy.first_runs:
            self.line("policy", solved.decided)
        if solved.by_worker:
            self._workers(solved.by_worker)
        if solved.by_rank:
            gets, moved = (sum(getattr(one, key) for one in solved.by_rank) for key in ("gets", "bytes"))
            self.line("moved", f"{format_bytes(moved)} in {counted(gets, 'Get')} in the last iteration")
            span, hidden = (sum(getattr(one, key) for one in solved.by_rank) for key in ("seconds", "hidden"))
            if span > 0:
                least = min(one.hidden / one.seconds for one in solved.by_rank if one.seconds > 0)
                self.line(
                    "hidden",
                    f"{100 * hidden / span:.0f} % of the time in which ranks moved something their workers "
                    f"computed, {100 * least:.0f} % on the rank with the least",
                )
        for text in solved.notes:
            self.note(text)
        if solved.checkpoint and solved.kept:
            older = f", of iteration {solved.kept}" if solved.kept < len(solved.iterations) else ""
            self.line("checkpoint", f"{solved.checkpoint}{older}")

    def _workers(self, workers: dict[str, list[float]]) -> None:
        calls, steals, allocations = (
            int(sum(workers[key])) for key in ("counter_calls", "steals", "allocations")
        )
        drawn = f"{counted(calls, 'draw')} from counters, " if calls else ""
        drawn += f"{counted(steals, 'steal')}, " if steals else ""
        self.line(
            "workers",
            f"{drawn}at most {format_bytes(max(workers['arena_bytes']))} of memory each, "
            f"{counted(allocations, 'allocation')} inside tasks",
        )

    def _operations(self, solved: Solver) -> None:
        """Flops and seconds of each operation in the last iteration."""
        graph, layouts = solved.plan.graph, solved.plan.program.layouts
        operation = graph.tasks["operation"]
        tasks = np.bincount(operation, minlength=len(graph.operations))
        spent = np.bincount(operation, weights=solved.task_seconds, minlength=len(graph.operations))
        table = plain_table("operation", "kind", "tasks", "flops", "ms", left=2)
        for k, op in enumerate(graph.operations):
            flops = operation_flops(op, layouts)
            shown = format_flops(flops) if flops else ""
            table.add_row(op.text, op.kind, str(tasks[k]), shown, f"{1000 * spent[k]:.3f}")
        self.console.print(table)
        self.console.print()


def _how(solved: Solver) -> str:
    """How the amplitudes were found."""
    done = counted(len(solved.iterations), "iteration")
    return f"after {done}" if solved.iterations else "by the restart file"


def plain_table(*heads: str, left: int = 1) -> Table:
    """Columns without lines, the first ones flush left."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for k, head in enumerate(heads):
        table.add_column(head, justify="left" if k < left else "right", overflow="fold")
    return table


def _part(whole: float, part: float, form: Callable[[float], str]) -> str:
    """A number, and how many times `part` it is."""
    return f"{form(whole)} ({whole / part:.1f} times as much)" if part else form(whole)


def _against(value: Any, before: Any, form: Callable[[Any], str]) -> str:
    """A number, and how many times the one before it is."""
    if value == before or not before:
        return form(value)
    return (
        f"{form(value)} (x {value / before:.2g})"
        if value > before
        else f"{form(value)} (/ {before / value:.2g})"
    )


def format_flops(count: float) -> str:
    """Floating-point operations for people: 34.8 Gflop."""
    for unit in ("", "k", "M", "G", "T"):
        if count < 999.5:
            return f"{count:.3g} {unit}flop"
        count /= 1000
    return f"{count:.3g} Pflop"


def format_seconds(seconds: float) -> str:
    if seconds < 0.0995:
        return f"{1000 * seconds:.2g} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"
