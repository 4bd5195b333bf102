"""Every policy under even and uneven load: who waits for whom, on real work.

python benchmarks/balance.py                                  # all policies, all loads, water trimer
python benchmarks/balance.py --policies lpt,dataflow --loads 1-1,2-1 --repeat 5
python benchmarks/balance.py --work loop --delta 0.05,0.2,1   # a triangular loop; factoring with these bounds
python benchmarks/balance.py --json out.json --picture out.png

Workers are bound to processors, and processes of the benchmark's own compete with them: under load "2-1" one
on the first processor, under "3-1" two; "on-off" is one that computes for 0.3 s and sleeps for 0.3 s.
A worker on a processor with k jobs has speed 1/k. The work of a run is what its tasks took, times the speed
of their workers; its ideal time is that work over the sum of the speeds, which it takes if nobody waits. So
a machine that is slower for a moment does not count against a policy. All policies get the same tasks, in
panels of --height rows: those that a plan chooses by itself suit data flow on equal cores. Printed, as
medians over the repeats: makespan (also the least), makespan over ideal, seconds between the first and the
last worker's end, idle time, draws from counters, steals.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.config import processors, thread_limits
from tilewise.equations.program import Dot
from tilewise.execute import Result, Runner
from tilewise.execute.refinement import Refinement
from tilewise.hardware.competitors import competing
from tilewise.inspect import PanelRule, TaskGraph
from tilewise.inspect.operations.dot import DOT
from tilewise.inspect.records import KINDS, TASK
from tilewise.methods.plan import plan
from tilewise.schedule import Policy, Team, policies, policy_named

GEOMETRIES = Path(__file__).parents[1] / "examples" / "geometries"
LOADS = ("1-1", "2-1", "3-1", "on-off")
HEADS = ("seconds", "least", "/ ideal", "ends", "idle", "draws", "steals")


# Work


@dataclass
class Work:
    """A graph with its buffers and the seconds that each task takes on a free processor."""

    name: str
    graph: TaskGraph
    tensors: dict[str, np.ndarray]
    seconds: np.ndarray

    def run(self, policy: Policy, team: Team, where: list[int]) -> Result:
        """One run, after those that a policy has to learn from."""
        schedule = policy(self.graph, self.seconds, team)
        runner = Runner(self.graph, schedule, self.tensors, processors=tuple(where))
        refinement = Refinement(runner, policy, team, self.seconds)
        for _ in range(policy.first_runs):
            refinement.observe(runner.run())
        return runner.run()

    def measure(self, where: list[int]) -> None:
        """On free processors, all of them at work, as they share caches and memory: medians of five runs."""
        runs = [self.run(policies["dataflow"], Team(len(where)), where).seconds for _ in range(6)]
        self.seconds = np.median(runs[1:], axis=0)


def ccsd_work(xyz: Path, basis: str, symmetry: str, height: int) -> Work:
    """An iteration of CCSD on random numbers, which take as long as true ones."""
    made = plan(build_molecule(xyz, basis, 0), frozen="auto", symmetry=symmetry)
    made = made.with_panels(PanelRule(height))
    graph = made.graph
    used = graph.touched
    rng = np.random.default_rng(0)
    tensors = {}
    for name in graph.buffers:
        size = graph.length_of(name) if name in used else 0
        tensors[name] = 1e-3 * rng.random(size) + (1.0 if name in graph.vectors else 0.0)
    return Work(f"CCSD of {xyz.stem}, {basis}", graph, tensors, made.task_seconds)


def loop_work(columns: int, seconds: float) -> Work:
    """The lower triangle of a matrix, a task per column: column k has `columns - k` elements to sum."""
    repeats = np.arange(columns, 0, -1)
    length = max(16, round(seconds * 1.2e9 / repeats.sum()))  # about as many elements per second
    tasks = np.zeros(columns, TASK)
    tasks["kind"], tasks["count"] = KINDS.index("dot"), repeats
    tasks["first"] = np.cumsum(tasks["count"]) - tasks["count"]
    dots = np.zeros(int(tasks["count"].sum()), DOT)
    dots["rows"], dots["cols"], dots["ld"], dots["factor"] = 1, length, length, 1.0
    column = Dot("a column", "", "x", "x", (1.0, 1.0, 1.0))
    graph = TaskGraph.bare(tasks, {"dot": dots}, (column,))
    graph = replace(graph, buffers=("x",), vectors={"x": length})
    return Work(f"triangular loop of {columns} columns", graph, {"x": np.ones(length)}, repeats.astype(float))


# Measuring


@dataclass(frozen=True)
class Row:
    """Medians over the repeats of one policy under one load; seconds."""

    work: str
    load: str
    policy: str
    makespan: float
    least_makespan: float
    over_ideal: float
    between_ends: float
    idle_share: float
    counter_calls: int
    steals: int


def measured(work: Work, load: str, names: list[str], where: list[int], repeat: int) -> list[Row]:
    """All policies in turn, so that what else happens on the machine meets them alike."""
    found: dict[str, list[Result]] = {name: [] for name in names}
    chosen = {name: policy_named(name) for name in names}
    with competing(load, where) as speeds:
        team = Team(len(where), speeds)
        for _ in range(repeat):
            for name, policy in chosen.items():
                found[name].append(work.run(policy, team, where))
    return [_row(work, load, name, results, np.array(speeds)) for name, results in found.items()]


def _row(work: Work, load: str, name: str, results: list[Result], speeds: np.ndarray) -> Row:
    makespans, ratios, between, idle = [], [], [], []
    for result in results:
        worker = result.trace["worker"]
        ends = [result.trace["end"][worker == w].max(initial=0) for w in range(len(speeds))]
        busy = np.bincount(worker, weights=result.seconds, minlength=len(speeds))
        makespans.append(1e-9 * max(ends))
        ratios.append(makespans[-1] * speeds.sum() / float(busy @ speeds))
        between.append(1e-9 * float(max(ends) - min(ends)))
        idle.append(1.0 - float(busy.sum()) / (len(speeds) * makespans[-1]))
    middle = int(np.argsort(makespans)[len(makespans) // 2])
    return Row(
        work.name,
        load,
        name,
        makespans[middle],
        min(makespans),
        float(np.median(ratios)),
        float(np.median(between)),
        float(np.median(idle)),
        results[middle].counter_calls,
        results[middle].steals,
    )


def show(work: Work, rows: list[Row]) -> None:
    size = f"{len(work.graph)} tasks, {work.seconds.sum():.3f} s of work"
    print(f"\n{work.name}, {size}, load {rows[0].load}", flush=True)
    print(f"{'policy':<28}" + "".join(f"{head:>9}" for head in HEADS))
    for row in rows:
        print(
            f"{row.policy:<28}{row.makespan:9.4f}{row.least_makespan:9.4f}{row.over_ideal:9.3f}"
            f"{row.between_ends:9.4f}{100 * row.idle_share:8.1f}%{row.counter_calls:9d}{row.steals:9d}",
            flush=True,
        )


def draw(rows: list[Row], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    works = list(dict.fromkeys(row.work for row in rows))
    figure, axes = plt.subplots(len(works), 1, figsize=(11, 4.2 * len(works)), squeeze=False)
    for axis, work in zip(axes[:, 0], works, strict=True):
        mine = [row for row in rows if row.work == work]
        names, loads = (list(dict.fromkeys(getattr(row, key) for row in mine)) for key in ("policy", "load"))
        for k, load in enumerate(loads):
            values = {row.policy: row.over_ideal for row in mine if row.load == load}
            places = np.arange(len(names)) + (k - (len(loads) - 1) / 2) * 0.8 / len(loads)
            axis.bar(places, [values.get(n, 0.0) for n in names], 0.8 / len(loads), label=f"load {load}")
        axis.axhline(1.0, color="black", linewidth=0.8)
        axis.set_xticks(np.arange(len(names)), names, rotation=35, ha="right")
        axis.set_ylabel("makespan / ideal")
        axis.set_ylim(0.8, min(2.2, 1.05 * max(row.over_ideal for row in mine)))
        axis.set_title(work)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", default="ccsd,loop", help="of ccsd, loop")
    parser.add_argument("--policies", default=";".join(policies), help="names, separated by ; or ,")
    parser.add_argument("--loads", default=",".join(LOADS), help=f"of {', '.join(LOADS)}")
    parser.add_argument("--delta", default="0.05,0.2,1", help="bounds of factoring on the loop, seconds")
    parser.add_argument("--xyz", type=Path, default=GEOMETRIES / "water3.xyz")
    parser.add_argument("--basis", default="aug-cc-pvdz")
    parser.add_argument("--symmetry", default="auto")
    parser.add_argument("--height", type=int, default=PanelRule().height, help="rows of a panel, about")
    parser.add_argument("--columns", type=int, default=2000)
    parser.add_argument("--loop-seconds", type=float, default=6.0, help="work of the loop")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--picture", help="a PNG or SVG file")
    args = parser.parse_args()

    where = processors()[:2]
    if len(where) < 2:
        parser.error("two processors are needed")
    names = (
        [n.strip() for n in args.policies.replace(";", ",").split(",")]
        if "(" not in args.policies
        else [n.strip() for n in args.policies.split(";")]
    )
    works = []
    if "ccsd" in args.work:
        works.append((ccsd_work(args.xyz, args.basis, args.symmetry, args.height), names, args.repeat))
    if "loop" in args.work:
        bounded = [f"factoring(f=2, delta={d})" for d in args.delta.split(",")]
        works.append(
            (loop_work(args.columns, args.loop_seconds), [*names, *bounded], max(1, args.repeat // 2))
        )
    rows: list[Row] = []
    with thread_limits(1):
        for work, chosen, repeat in works:
            for load in args.loads.split(","):
                work.measure(where)  # anew, for a shared machine is not always as fast
                rows += measured(work, load, chosen, where, repeat)
                show(work, rows[-len(chosen) :])
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))
    if args.picture:
        draw(rows, args.picture)


if __name__ == "__main__":
    main()
