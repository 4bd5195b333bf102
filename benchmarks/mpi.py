"""What ranks gain: iterations of CCSD on two ranks against one, beside two processes of bare products.

python benchmarks/mpi.py                              # (H2O)3 aug-cc-pVDZ, two ranks of this machine
python benchmarks/mpi.py --network 10gbit,1gbit       # and in two network namespaces, as root
python benchmarks/mpi.py --case examples/geometries/water2.xyz,aug-cc-pvdz,C1 --repeat 3
python benchmarks/mpi.py --peers nwchem               # and NWChem's TCE on two processes, if it is installed

One job of two ranks does all in turn, round after round: an iteration by rank 0 alone (1 x 1), by both
(2 x 1), by two threads of rank 0 (1 x 2), and products of the shape of the ladder, as many operations as an
iteration has, by rank 0 alone and half of them by each. Numbers are random, so that no SCF is needed. Medians
over the rounds; `of bare` is the gain of 2 x 1 over that of the products, `CPU` the seconds of both ranks'
processes over those of 1 x 1, beside that of two processes of products and that of two threads, which share
caches and memory as ranks do. Two more processes, of which one was started by mpiexec, then do iterations by
two threads in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import peers

from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.config import available_cpus, thread_limits
from tilewise.execute import Runner
from tilewise.execute.mpi.launch import find_mpiexec
from tilewise.execute.mpi.stores import tested
from tilewise.execute.mpi.world import World, world
from tilewise.methods.exploration import random_tensors
from tilewise.methods.plan import Plan, plan
from tilewise.methods.ranks import distribution_of, on_ranks, rank_runner

HERE = Path(__file__).parent
CASE = f"{HERE.parent / 'examples' / 'geometries' / 'water3.xyz'},aug-cc-pvdz,C1"

TIMEOUT = 1800.0
"""Seconds that another program may take."""


@dataclass
class Spans:
    """Wall-clock and CPU seconds of one kind of run, on all ranks."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, ranks: World, act, takes_part: bool) -> None:
        ranks.barrier()
        before, began = _cpu(), time.perf_counter()
        if takes_part:
            act()
        wall = time.perf_counter() - began if takes_part else 0.0
        cpu = _cpu() - before if takes_part else 0.0
        self.wall.append(ranks.total(wall, "max"))
        self.cpu.append(ranks.total(cpu))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def planned(case: str, threads: int, policy: str | None = None) -> Plan:
    xyz, basis, symmetry = case.split(",")
    molecule = build_molecule(Path(xyz), basis, 0)
    return plan(molecule, frozen="auto", symmetry=symmetry, threads=threads, policy=policy)


def threads_runner(made: Plan) -> Runner:
    return Runner(made.graph, made.schedule, random_tensors(made.graph))


def ranks_runner(made: Plan, ranks: World):
    """With random shards, all of them small numbers."""
    agreed = on_ranks(made, ranks)
    shared = distribution_of(agreed, ranks.size)
    rng, buffers = np.random.default_rng(ranks.rank), {}
    for name in shared.constants:
        buffers[name] = 1e-3 * rng.random(shared.shard(name, ranks.rank).size)
    for op in shared.program.updates:
        buffers[op.gaps] = 1.0 + rng.random(shared.graph.length_of(op.gaps))
    return rank_runner(ranks, agreed, shared, buffers)


def products(made: Plan) -> tuple[float, tuple[int, int, int]]:
    """Operations of an iteration, and the shape of the products that most of them are in, the ladder's."""
    n_occ, n_vir = made.outline.n_occ, made.outline.n_vir
    return float(made.graph.flops.sum()), (192, n_vir * (n_vir + 1) // 2, n_occ * (n_occ + 1) // 2)


def multiply(operations: float, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    left, right = np.full((m, k), 1e-3), np.full((k, n), 1e-3)
    out = np.empty((m, n))
    for _ in range(max(1, round(operations / (2.0 * m * k * n)))):
        np.matmul(left, right, out=out)


def on_two_ranks(case: str, repeat: int) -> dict:
    """The rounds; on rank 0 what was found."""
    ranks = world()
    one, two = planned(case, 1), planned(case, 2)
    operations, shape = products(one)
    first = ranks.rank == 0
    together = ranks_runner(one, ranks)
    alone = threads_runner(one) if first else None
    threads = threads_runner(two) if first else None
    acts = {
        "1 x 1": (lambda: alone.run(), first),
        "2 x 1": (lambda: together.run(), True),
        "1 x 2": (lambda: threads.run(), first),
        "bare 1": (lambda: multiply(operations, shape), first),
        "bare 2": (lambda: multiply(operations / ranks.size, shape), True),
    }
    found = {name: Spans() for name in acts}
    with thread_limits(1):
        for number in range(repeat + 1):
            for name, (act, takes_part) in acts.items():
                spans = found[name] if number else Spans()  # the first round warms up
                spans.add(ranks, act, takes_part)
    moved = ranks.allgather(together.run().moved)
    together.close()
    return {
        "nodes": len(ranks.nodes),
        "self_test": tested(ranks).text,
        "bytes": sum(one.bytes for one in moved),
        "gets": sum(one.gets for one in moved),
        "runs": {name: {"wall": spans.wall, "cpu": spans.cpu} for name, spans in found.items()},
    }


def with_two_threads(case: str) -> None:
    """Prints seconds of an iteration by two threads of this process, for each line that it is given."""
    world()
    runner = threads_runner(planned(case, min(2, available_cpus())))
    with thread_limits(1):
        for _ in sys.stdin:
            before, began = _cpu(), time.perf_counter()
            runner.run()
            print(json.dumps([time.perf_counter() - began, _cpu() - before]), flush=True)


def by_turns(commands: dict[str, list[str]], case: str, repeat: int) -> dict[str, dict[str, list[float]]]:
    """Iterations of several processes, one process at a time, in another order each round."""
    jobs = {
        name: subprocess.Popen(
            [*command, sys.executable, __file__, "--work", "threads", "--case", case],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, command in commands.items()
    }
    found: dict[str, dict[str, list[float]]] = {name: {"wall": [], "cpu": []} for name in jobs}
    for number in range(repeat + 1):
        for name, job in list(jobs.items())[:: -1 if number % 2 else 1]:
            assert job.stdin and job.stdout
            job.stdin.write("\n")
            job.stdin.flush()
            line = job.stdout.readline()
            if not line:
                raise SystemExit(f"the job {name} has ended with {job.wait()}")
            wall, cpu = json.loads(line)
            if number:  # the first round warms up
                found[name]["wall"].append(wall)
                found[name]["cpu"].append(cpu)
    for job in jobs.values():
        job.communicate()
    return found


def started(command: list[str], case: str, repeat: int):
    """What the ranks that a command starts print at the end."""
    arguments = [__file__, "--work", "ranks", "--case", case, "--repeat", str(repeat)]
    path = f"{Path(find_mpiexec()).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        [*command, sys.executable, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PATH": path},
    )
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}")
    return json.loads(ended.stdout.splitlines()[-1])


def show(where: str, found: dict) -> dict[str, float]:
    median = {name: float(np.median(spans["wall"])) for name, spans in found["runs"].items()}
    cpu = {name: float(np.median(spans["cpu"])) for name, spans in found["runs"].items()}
    gain, bare = median["1 x 1"] / median["2 x 1"], median["bare 1"] / median["bare 2"]
    figures = {
        "gain": gain,
        "bare": bare,
        "of bare": gain / bare,
        "CPU": cpu["2 x 1"] / cpu["1 x 1"],
        "CPU of threads": cpu["1 x 2"] / cpu["1 x 1"],
        "CPU of bare": cpu["bare 2"] / cpu["bare 1"],
        "1 x 2": median["1 x 1"] / median["1 x 2"],
    }
    seconds = ", ".join(f"{name} {1e3 * span:.0f} ms" for name, span in median.items())
    print(
        f"{where}: {found['self_test']}; {found['bytes'] / 1e6:.1f} MB in {found['gets']} Gets per iteration"
    )
    print(f"  {seconds}")
    print(
        f"  2 x 1 gains {gain:.2f}, bare products {bare:.2f}: {gain / bare:.2f} of bare; "
        f"CPU {figures['CPU']:.3f}, bare {figures['CPU of bare']:.3f}; "
        f"two threads gain {figures['1 x 2']:.2f}, CPU {figures['CPU of threads']:.3f}",
        flush=True,
    )
    return figures


def beside(program: str, case: str, median: float) -> dict:
    """Another program on two processes, against the seconds of an iteration by two ranks."""
    xyz, basis, symmetry = case.split(",")
    frozen = planned(case, 1).outline.frozen_core
    found = peers.run(program, peers.Job(xyz, basis, frozen, 2, TIMEOUT, symmetry=symmetry))
    print(
        f"{program} on two processes: {found['iteration']:.3f} s per iteration, "
        f"{found['iteration'] / median:.1f} times that of two ranks",
        flush=True,
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", default=CASE, help="XYZ,BASIS,SYMMETRY")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--network", default="", help="rates of a link between two namespaces, as 10gbit,1gbit"
    )
    parser.add_argument("--peers", default="", help="other programs to run beside it, as nwchem")
    parser.add_argument("--json")
    parser.add_argument("--work", choices=("ranks", "threads"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        if args.work == "threads":
            with_two_threads(args.case)
            return
        found = on_two_ranks(args.case, args.repeat)
        if world().rank == 0:
            print(json.dumps(found), flush=True)
        return

    results = {"here": started([find_mpiexec(), "-n", "2"], args.case, args.repeat)}
    show("two ranks of this machine", results["here"])
    for program in peers.programs(args.peers):
        median = float(np.median(results["here"]["runs"]["2 x 1"]["wall"]))
        results[program] = beside(program, args.case, median)
    compared = by_turns({"under mpiexec": [find_mpiexec(), "-n", "1"], "alone": []}, args.case, args.repeat)
    results["threads"] = compared
    under, alone = (compared[name] for name in ("under mpiexec", "alone"))
    wall, cpu = (np.median(under[what]) / np.median(alone[what]) for what in ("wall", "cpu"))
    print(f"two threads under mpiexec take {wall:.3f} of two threads alone; CPU {cpu:.3f}", flush=True)
    nodes = str(HERE / "nodes" / "two_nodes")
    for rate in filter(None, args.network.split(",")):
        subprocess.run([nodes, "up", rate], check=True)
        try:
            results[rate] = started([nodes, "run", "2"], args.case, args.repeat)
        finally:
            subprocess.run([nodes, "down"], check=True)
        show(f"two namespaces, {rate}", results[rate])
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
