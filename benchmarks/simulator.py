"""How well the simulator knows this machine: simulated and measured makespans of CCSD iterations.

python benchmarks/simulator.py              # three molecules, five policies, one worker and all cores
python benchmarks/simulator.py --case examples/geometries/water.xyz,cc-pvtz,auto --policies dataflow,lpt
python benchmarks/simulator.py --mpi        # two ranks, with the machine file of mpi-info: simulator_ranks.py

The cost model is fitted, and counters, barriers and how the speeds of the cores differ are measured, in turn
with the iterations, which come in random order: the speed of a shared machine changes from minute to minute.
Nothing that the iterations themselves have taken enters the simulation. Measured, on random numbers, and
simulated, over seeds, are means without the tenth at either end: a shared core has a fast and a slow speed,
and a median jumps from one to the other. Which of them it had just then is told by a small calculation, the
same for all, before and after each iteration: what a makespan owes to that is taken off, as far as the two
go together (control variates).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random

import numpy as np
import simulator_ranks

from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.cli.run_simulate import parse_policies
from tilewise.config import available_cpus, thread_limits
from tilewise.cost import CostModel, estimate, load_or_calibrate
from tilewise.cost.calibrate import fit, thorough_experiments
from tilewise.cost.sample import Sample, measure, samples, typical
from tilewise.execute import Runner
from tilewise.execute.simulated import simulate
from tilewise.hardware.model import MachineModel
from tilewise.hardware.this_machine import Probe
from tilewise.methods.exploration import random_tensors
from tilewise.methods.plan import plan
from tilewise.schedule import Policy

GEOMETRIES = Path(__file__).parents[1] / "examples" / "geometries"
CASES = tuple(
    f"{GEOMETRIES / name}.xyz,{basis},{symmetry}"
    for name, basis, symmetry in (
        ("benzene", "cc-pvdz", "auto"),
        ("water2", "aug-cc-pvdz", "C1"),
        ("naphthalene", "cc-pvdz", "auto"),
    )
)
ENOUGH = 0.1  # seconds of iterations in a row
SEEDS = 25
POLICIES = "dataflow,levels,ie-nxtval,lpt,block"


@dataclass
class Run:
    """An iteration by one policy on some workers, and the makespans that it had."""

    name: str
    policy: Policy
    machine: Runner
    workers: int
    makespans: list[float] = field(default_factory=list)
    references: list[float] = field(default_factory=list)
    """What a small calculation took on as many workers around each of them."""

    def run(self, probe: Probe) -> None:
        """The mean of several if they are short, without the first, which finds other data in the cache."""
        before = probe.work(self.workers)
        found = [self._makespan()]
        if found[0] < ENOUGH:
            found = [self._makespan() for _ in range(1 + int(ENOUGH / found[0]))]
        self.makespans.append(float(np.mean(found)))
        self.references.append((before + probe.work(self.workers)) / 2)

    def measured(self, usual: float) -> float:
        """The makespan at the speed at which the reference takes as long as usual."""
        x, y = np.array(self.references), np.array(self.makespans)
        slope = np.cov(x, y)[0, 1] / np.var(x, ddof=1) if len(x) > 1 else 0.0
        return float(typical(y - slope * (x - usual)))

    def _makespan(self) -> float:
        trace = self.machine.run().trace
        return 1e-9 * float(trace["end"].max() - trace["start"].min())

    def simulated(self, model: CostModel, here: MachineModel) -> float:
        """The same schedule, on the seconds that the model gives."""
        graph = self.machine.graph
        seconds = estimate(graph, model)
        runs = (simulate(graph, self.machine.schedule, seconds, here, seed=seed) for seed in range(SEEDS))
        return float(typical([run.makespan for run in runs]))


def runs_of(case: str, policies: list[Policy], model: CostModel) -> list[Run]:
    xyz, basis, symmetry = case.split(",")
    molecule = build_molecule(Path(xyz), basis, 0)
    found = []
    for workers in sorted({1, available_cpus()}):
        for policy in policies:
            made = plan(molecule, frozen="auto", symmetry=symmetry, threads=workers, policy=str(policy))
            schedule = policy(made.graph, estimate(made.graph, model), made.team)
            machine = Runner(made.graph, schedule, random_tensors(made.graph))
            found.append(Run(f"{Path(xyz).stem} {basis}", policy, machine, workers))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="XYZ,BASIS,SYMMETRY; may be given several times")
    parser.add_argument("--policies")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json")
    parser.add_argument("--mpi", action="store_true", help="on two ranks of this machine")
    args = parser.parse_args()
    if args.mpi:
        cases = tuple(args.case or simulator_ranks.CASES)
        found = simulator_ranks.compare(cases, args.policies or simulator_ranks.POLICIES, args.rounds)
        if args.json:
            Path(args.json).write_text(json.dumps(found, indent=1))
        return

    known, _ = load_or_calibrate()
    policies = parse_policies(args.policies or POLICIES)
    runs = [run for case in args.case or CASES for run in runs_of(case, policies, known)]
    experiments, probe = thorough_experiments(), Probe()
    turns, order = cycle(experiments), Random(0)
    with thread_limits(1):
        for _ in range(args.rounds):
            probe.measure()
            for run in order.sample(runs, len(runs)):
                measure([next(turns)], 1)
                run.run(probe)
    fewest = min(len(experiment.runs) for experiment in experiments)
    for experiment in experiments:
        del experiment.runs[fewest:]
    model = fit(Sample.joined(samples(experiments)))
    here = probe.model()
    print(
        f"{here.cores} cores, {100 * (here.crowding - 1):.1f} % slower when all work, whose speeds vary by "
        f"{100 * here.drift:.0f} % for {1e3 * here.stretch:.0f} ms; "
        f"a draw {1e6 * here.counter_shared:.2f} and a barrier {1e6 * here.barrier:.2f} microseconds"
    )
    print(f"{'iteration':<24}{'policy':<12}{'workers':>8}{'simulated':>11}{'measured':>10}{'ratio':>8}")
    rows = []
    usual = {
        workers: float(typical([x for run in runs if run.workers == workers for x in run.references]))
        for workers in {run.workers for run in runs}
    }
    for run in runs:
        simulated, measured = run.simulated(model, here), run.measured(usual[run.workers])
        rows.append(
            {"case": run.name, "policy": str(run.policy), "workers": run.workers}
            | {"simulated": simulated, "measured": measured}
            | {"makespans": run.makespans, "references": run.references}
        )
        print(
            f"{run.name:<24}{run.policy!s:<12}{run.workers:8d}{1e3 * simulated:8.1f} ms"
            f"{1e3 * measured:7.1f} ms{simulated / measured:8.3f}"
        )
    errors = np.array([abs(row["simulated"] / row["measured"] - 1) for row in rows])
    within = int((errors <= 0.1).sum())
    print(f"within 10 %: {within} of {len(errors)}; largest error {100 * errors.max():.1f} %")
    if args.json:
        Path(args.json).write_text(json.dumps({"machine": here.to_dict(), "runs": rows}, indent=1))


if __name__ == "__main__":
    main()
