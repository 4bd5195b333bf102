"""How well the simulator knows ranks: `python benchmarks/simulator.py --mpi` runs this.

`tilewise mpi-info` writes a machine file on two ranks of this machine, with a cost model that is fitted just
then. Then two ranks do iterations of CCSD on random numbers by several policies, in random order, and the
simulator runs the same distribution on the machine of the file. What is measured is the mean, without the
tenth at either end, of the time from the first task to the last one. The last column is the same at the speed
that the cores had when the file was written: as told by a small calculation on both ranks at once, before and
after each iteration.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import numpy as np
from mpi import planned, ranks_runner

from tilewise.config import thread_limits
from tilewise.cost.sample import Experiment, program, typical
from tilewise.execute.mpi.launch import find_mpiexec
from tilewise.execute.mpi.runner import DistributedRunner
from tilewise.execute.mpi.world import World, world
from tilewise.execute.simulated_ranks import simulate_ranks
from tilewise.hardware.machines import find_machine
from tilewise.hardware.model import MachineModel
from tilewise.hardware.this_machine import MOLECULE

HERE = Path(__file__).parent
CASES = tuple(
    f"{HERE.parent / 'examples' / 'geometries' / name}.xyz,aug-cc-pvdz,C1" for name in ("water2", "water3")
)
POLICIES = "dataflow,block,lpt"
SEEDS = 25


def compare(cases: tuple[str, ...], policies: str, rounds: int) -> list[dict]:
    """Starts `mpi-info` and the ranks; a row for each case and policy."""
    with tempfile.TemporaryDirectory() as folder:
        file, variables = Path(folder) / "machine.toml", os.environ | {"TILEWISE_CACHE_DIR": folder}
        run = [find_mpiexec(), "-n", "2", sys.executable]
        info = [*run, "-m", "tilewise", "mpi-info", "--threads", "1", "--out", str(file)]
        subprocess.run(info, check=True, env=variables)
        given = ["--machine", str(file), "--policies", policies, "--rounds", str(rounds)]
        for case in cases:
            given += ["--case", case]
        ended = subprocess.run(
            [*run, __file__, *given], stdout=subprocess.PIPE, text=True, env=variables, check=True
        )
    rows = json.loads(ended.stdout.splitlines()[-1])
    print(f"{'iteration':<24}{'policy':<12}{'simulated':>11}{'measured':>10}{'ratio':>8}{'same speed':>12}")
    for row in rows:
        print(
            f"{row['case']:<24}{row['policy']:<12}{1e3 * row['simulated']:8.1f} ms"
            f"{1e3 * row['measured']:7.1f} ms{row['simulated'] / row['measured']:8.3f}"
            f"{row['simulated'] / row['same_speed']:12.3f}"
        )
    for name in ("measured", "same_speed"):
        errors = np.array([abs(row["simulated"] / row[name] - 1) for row in rows])
        within = int((errors <= 0.15).sum())
        print(f"{name}: within 15 % {within} of {len(errors)}; largest error {100 * errors.max():.1f} %")
    return rows


def reference(experiment: Experiment, ranks: World) -> float:
    """Seconds of a small calculation that every rank does at the same time, the mean over the ranks."""
    ranks.barrier()
    for _ in range(2):  # the first finds other data in the caches
        experiment.run()
    return ranks.total(float(experiment.runs[-1].sum())) / ranks.size


def makespan(runner: DistributedRunner, ranks: World) -> float:
    ranks.barrier()
    trace = runner.run().trace
    return ranks.total(1e-9 * float(trace["end"].max(initial=0)), "max")


def simulated(runner: DistributedRunner, machine: MachineModel) -> float:
    shared = runner.distribution
    assert machine.rates is not None
    graph = shared.graph
    seconds = machine.rates.seconds(graph.flops, graph.sorted_words, graph.operand_words)
    runs = (simulate_ranks(shared, runner.policy, 1, machine, seconds, seed) for seed in range(SEEDS))
    return float(typical([run.makespan for run in runs]))


def on_ranks(cases: list[str], policies: list[str], rounds: int, machine: MachineModel) -> list[dict]:
    """The rounds, and the simulations on rank 0."""
    ranks, experiment = world(), program(MOLECULE)
    runners = {
        (f"{Path(case.split(',')[0]).stem} {case.split(',')[1]}", policy): ranks_runner(
            planned(case, 1, policy), ranks
        )
        for case in cases
        for policy in policies
    }
    measured: dict = {key: [] for key in runners}
    order = Random(0)
    with thread_limits(1):
        for number in range(rounds + 1):
            for key in order.sample(list(runners), len(runners)):
                before = reference(experiment, ranks)
                span = makespan(runners[key], ranks)
                if number:  # the first round warms up
                    measured[key].append((span, (before + reference(experiment, ranks)) / 2))
    assert machine.rates is not None and isinstance(machine.speed, float)
    graph = experiment.graph
    seconds = machine.rates.seconds(graph.flops, graph.sorted_words, graph.operand_words)
    known = float(seconds.sum()) / machine.speed
    rows = []
    for (case, policy), runner in runners.items():
        spans, references = np.array(measured[case, policy]).T
        if ranks.rank == 0:
            rows.append(
                {"case": case, "policy": policy, "simulated": simulated(runner, machine)}
                | {
                    "measured": float(typical(spans)),
                    "same_speed": float(typical(spans * known / references)),
                }
            )
        runner.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--case", action="append", required=True)
    parser.add_argument("--policies", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    args = parser.parse_args()
    found = on_ranks(args.case, args.policies.split(","), args.rounds, find_machine(args.machine))
    if world().rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
