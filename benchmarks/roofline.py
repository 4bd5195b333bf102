"""Where the time of a CCSD iteration goes, operation by operation, against what the machine can do.

    python benchmarks/roofline.py                       # the small cases of ccsd.py
    python benchmarks/roofline.py --cases benzene-tz

For each operation: tasks, seconds summed over the workers, flops and rate with its share of one core's
dgemm, bytes (every operand once per product) and rate with its share of one core's copy bandwidth. The
larger share tells what bounds it. One line closes each case: what one thread and two threads take, beside
what dgemm gains from the second one.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from ccsd import CASES, GEOMETRIES, SMALL
from floor import dgemm_rate

from tilewise import CCSD
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import from_mean_field, run_scf
from tilewise.chem.reference import Reference
from tilewise.config import thread_limits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default=",".join(SMALL), help=f"of {', '.join(CASES)}")
    parser.add_argument("--rows", type=int, default=14, help="operations shown, the costliest first")
    args = parser.parse_args()
    for name in args.cases.split(","):
        if name not in CASES:
            sys.exit(f"unknown case '{name}': valid are {', '.join(CASES)}")
        geometry, basis, frozen = CASES[name]
        mean_field = run_scf(build_molecule(Path(GEOMETRIES, geometry), basis))
        reference = from_mean_field(mean_field, frozen=frozen)
        print(f"\n{name}: {basis}, {reference.outline.group.name}")
        _show(_run(reference, 2), args.rows)
        _threads(reference)


def _run(reference: Reference, threads: int) -> CCSD:
    return CCSD(reference, threads=threads, max_cycle=10).run()  # beyond the first touch of DIIS


def _show(ccsd: CCSD, rows: int) -> None:
    graph = ccsd.plan.graph
    operation, count = graph.tasks["operation"], len(graph.operations)
    seconds, flops, size = (
        np.bincount(operation, weights=values, minlength=count)
        for values in (ccsd.task_seconds, graph.flops, graph.bytes)
    )
    tasks = np.bincount(operation, minlength=count)
    dgemm, copy = dgemm_rate(1), copy_rate()
    print(f"one core: dgemm {dgemm / 1e9:.1f} GF/s, copy {copy / 1e9:.1f} GB/s (read and written)")
    print(f"{'ms':>8}{'tasks':>7}{'Mflop':>9}{'GF/s':>7}{'%':>5}{'MB':>8}{'GB/s':>7}{'%':>5}  operation")
    for k in np.argsort(-seconds)[:rows]:
        if not seconds[k]:
            break
        rate, flow = flops[k] / seconds[k], size[k] / seconds[k]
        text = graph.operations[k].text
        print(
            f"{1e3 * seconds[k]:8.2f}{tasks[k]:7d}{flops[k] / 1e6:9.1f}{rate / 1e9:7.1f}"
            f"{100 * rate / dgemm:5.0f}{size[k] / 1e6:8.1f}{flow / 1e9:7.1f}{100 * flow / copy:5.0f}  "
            f"{text if len(text) < 60 else text[:57] + '...'}"
        )
    print(f"{1e3 * seconds.sum():8.2f}{tasks.sum():7d}{flops.sum() / 1e6:9.1f}  all")


def _threads(reference: Reference) -> None:
    """Alternating, for the machine's speed changes."""
    times: dict[int, list[float]] = {1: [], 2: []}
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for n in (1, 2):
            times[n].append(statistics.median(_run(reference, n).iteration_seconds))
            rates[n].append(dgemm_rate(n))
    one, two = (statistics.median(times[n]) for n in (1, 2))
    gain, possible = one / two, statistics.median(rates[2]) / statistics.median(rates[1])
    print(
        f"iteration: {1e3 * one:.1f} ms on one thread, {1e3 * two:.1f} on two: {gain:.2f} times as fast, "
        f"where dgemm gains {possible:.2f} ({100 * gain / possible:.0f} %)"
    )


def copy_rate(size: int = 1 << 27, repeats: int = 5) -> float:
    """Bytes read and written per second, of one core copying more than its caches hold."""
    a, b = np.ones(size // 8), np.zeros(size // 8)
    best = np.inf
    with thread_limits(1):
        for _ in range(repeats):
            began = time.perf_counter()
            b[:] = a
            best = min(best, time.perf_counter() - began)
    return 2.0 * size / best


if __name__ == "__main__":
    main()
