"""(T) side by side: tilewise's and PySCF's `ccsd_t` on the same amplitudes, in one run.

    python benchmarks/triples.py                                 # benzene cc-pVDZ in D2h
    python benchmarks/triples.py --cases water3,phenyl-dz --repeat 3
    python benchmarks/triples.py --cases phenyl-dz --symmetry C1 --reference uhf
    python benchmarks/triples.py --cases benzene-dz --no-pyscf --threads 1

The amplitudes are those of tilewise's CCSD after a few iterations (the time does not depend on them). PySCF's
integrals are made once and timed apart, since its `ccsd_t` takes them or makes them anew; tilewise makes
those that it needs. Seconds and ratios are told without the integrals of either program, and with those of
both. Printed besides: both energies, flops, and GF/s of the tasks with the share of one core's dgemm, which
is timed in turn.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from ccsd import CASES, GEOMETRIES, SPINS
from scipy.linalg.blas import dgemm

from tilewise import CCSD
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import run_scf
from tilewise.config import format_bytes, thread_limits


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default="benzene-dz", help=f"of {', '.join(CASES)}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--symmetry", default="auto")
    parser.add_argument("--reference", choices=("rhf", "uhf", "rohf"))
    parser.add_argument("--iterations", type=int, default=4, help="of CCSD")
    parser.add_argument("--no-pyscf", action="store_true")
    args = parser.parse_args()
    for name in args.cases.split(","):
        if name not in CASES:
            sys.exit(f"unknown case '{name}': valid are {', '.join(CASES)}")
        _case(name, args)


def _case(name: str, args: argparse.Namespace) -> None:
    geometry, basis, frozen = CASES[name]
    spin = SPINS.get(name, 0)
    kind = args.reference or ("uhf" if spin else "rhf")
    mf = run_scf(build_molecule(Path(GEOMETRIES, geometry), basis, spin=spin), reference=kind)
    cc = CCSD(
        mf, frozen=frozen, symmetry=args.symmetry, threads=args.threads, max_cycle=args.iterations
    ).run()
    theirs, made = (None, 0.0) if args.no_pyscf else _pyscf(mf, frozen, cc, args.threads)
    runs: dict[str, list[float]] = {"tilewise": [], "integrals": [], "pyscf": []}
    shares = []
    for _ in range(args.repeat):
        before = dict(cc.seconds)
        runs["tilewise"].append(_timed(cc.ccsd_t))
        parts = {key: cc.seconds[key] - before.get(key, 0.0) for key in cc.seconds if "triples" in key}
        done = 2.0 * cc.plan.triples_plan.graph.records["triples"]["done"].sum()
        rate = done / cc.triples.task_seconds.sum()
        runs["integrals"].append(parts["triples integrals"])
        shares.append((rate, _dgemm_rate(), cc.triples.flops / parts["triples"]))
        shown = ", ".join(f"{key} {value:.3f} s" for key, value in parts.items())
        print(f"  {shown}; tasks {1e-9 * rate:.1f} GF/s of {1e-9 * shares[-1][1]:.1f} that dgemm has")
        if theirs:
            with thread_limits(args.threads):
                began = time.perf_counter()
                e_t = theirs()
                runs["pyscf"].append(time.perf_counter() - began)
            print(f"  PySCF {runs['pyscf'][-1]:.3f} s, E(T) {e_t:.12f}")
    _show(name, cc, runs, shares, made)


def _show(
    name: str,
    cc: Any,
    runs: dict[str, list[float]],
    shares: list[tuple[float, float, float]],
    pyscf_integrals: float,
) -> None:
    outline, own = cc.plan.outline, statistics.median(runs["tilewise"])
    without = own - statistics.median(runs["integrals"])
    share = statistics.median(rate / dgemm for rate, dgemm, _ in shares)
    print(f"{name}, {outline.basis}, {outline.group.name}: {outline.shown['orbitals']}")
    print(f"  E(T) {cc.e_t:.12f}, {1e-9 * cc.triples.flops:.1f} Gflop, {cc.triples.tasks} tasks")
    print(f"  {without:.3f} s, with integrals {own:.3f} s; tasks at {100 * share:.0f} % of dgemm's rate")
    if runs["pyscf"]:
        theirs = statistics.median(runs["pyscf"])
        both = theirs + pyscf_integrals
        print(f"  PySCF {theirs:.3f} s, {theirs / without:.1f} times as long; ", end="")
        print(f"with integrals {both:.3f} s, {both / own:.1f} times as long")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"  estimate {format_bytes(cc.plan.triples_plan.memory['triples'])}, peak of all {format_bytes(peak)}"
    )


def _pyscf(mf: Any, frozen: int, cc: Any, threads: int) -> tuple[Any, float]:
    """PySCF's (T) on these amplitudes, with integrals that are there already, and what those took."""
    from pyscf import cc as pyscf_cc

    method = (pyscf_cc.UCCSD if cc.method.spin_orbitals else pyscf_cc.CCSD)(mf, frozen=frozen)
    method.verbose = 0
    t1, t2 = cc.to_pyscf()
    with thread_limits(threads):
        began = time.perf_counter()
        eris = method.ao2mo(method.mo_coeff)
        made = time.perf_counter() - began
    return (lambda: method.ccsd_t(t1, t2, eris)), made


def _timed(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _dgemm_rate(n: int = 768) -> float:
    """Flops per second of one core."""
    a, b = np.full((n, n), 0.5, order="F"), np.full((n, n), 0.25, order="F")
    with thread_limits(1):
        times = [_timed(lambda: dgemm(1.0, a, b)) for _ in range(5)]
    return 2.0 * n**3 / statistics.median(times)


if __name__ == "__main__":
    main()
