"""(T) side by side: tilewise's, PySCF's `ccsd_t` on the same amplitudes, and Psi4's, in one run.

    python benchmarks/triples.py                                 # benzene cc-pVDZ in D2h
    python benchmarks/triples.py --cases water3,phenyl-dz --repeat 3
    python benchmarks/triples.py --cases phenyl-dz --symmetry C1 --reference uhf --pyscf-repeat 1
    python benchmarks/triples.py --peers psi4-ccenergy           # also psi4-fnocc, for closed shells
    python benchmarks/triples.py --cases water3 --no-pyscf --gain    # one thread against several

The amplitudes are those of tilewise's CCSD after a few iterations (the time does not depend on them); with
peers, which make their own, CCSD converges. PySCF's integrals are made once and timed apart, since its
`ccsd_t` takes them or makes them anew; tilewise makes those that it needs. Seconds and ratios are told
without the integrals of either program, and with those of both; of a peer it is the time from the first line
of its (T) to the energy.

Printed besides: the energies, flops, the rates of whole tasks and of their products alone (the making of W
with all that belongs to it) as shares of one core's dgemm, which is timed before and after each run, what
several threads gain and what dgemm gains by them, and memory: the peak of tilewise's first (T), what was
estimated, and PySCF's peak.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import peers
from ccsd import CASES, GEOMETRIES, SPINS
from floor import Dgemm
from scipy.linalg.blas import dgemm

from tilewise import CCSD
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import run_scf
from tilewise.config import format_bytes, thread_limits
from tilewise.methods.ccsd_t import Triples, TriplesPass
from tilewise.methods.semicanonical import semicanonical


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default="benzene-dz", help=f"of {', '.join(CASES)}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--symmetry", default="auto", help="the group of tilewise and Psi4, such as C1")
    parser.add_argument("--reference", choices=("rhf", "uhf", "rohf"))
    parser.add_argument("--iterations", type=int, help="of CCSD (0: converge); default 4, with peers 0")
    parser.add_argument("--no-pyscf", action="store_true")
    parser.add_argument("--pyscf-repeat", type=int, help="runs of PySCF, if fewer than --repeat")
    parser.add_argument("--peers", default="", help="psi4-ccenergy, psi4-fnocc or both, if on PATH")
    parser.add_argument("--peer-timeout", type=float, default=3600.0, help="seconds for one run of a peer")
    parser.add_argument("--gain", action="store_true", help="runs on one thread, too")
    args = parser.parse_args()
    if args.iterations is None:
        args.iterations = 0 if args.peers else 4
    others = peers.programs(args.peers)
    for name in args.cases.split(","):
        if name not in CASES:
            sys.exit(f"unknown case '{name}': valid are {', '.join(CASES)}")
        Case(name, args).run(others)


@dataclass
class Own:
    """One run of tilewise's (T)."""

    triples: Triples
    total: float
    done: float
    """Flops with those of equal orbitals in equal tiles, of which half would do."""
    dgemm: float
    peak: int
    """Bytes that the process had at most."""

    @property
    def without_integrals(self) -> float:
        return self.total - self.triples.seconds["triples integrals"]

    @property
    def task_share(self) -> float:
        return self.done / float(self.triples.task_seconds.sum()) / self.dgemm

    @property
    def product_share(self) -> float:
        return self.done / float(self.triples.product_seconds.sum()) / self.dgemm

    def __str__(self) -> str:
        parts = ", ".join(f"{key} {value:.3f} s" for key, value in self.triples.seconds.items())
        return (
            f"{parts}; tasks at {100 * self.task_share:.0f} %, products at {100 * self.product_share:.0f} % "
            f"of {1e-9 * self.dgemm:.1f} GF/s"
        )


@dataclass
class Case:
    """A molecule, and what was measured."""

    name: str
    args: argparse.Namespace
    own: list[Own] = field(default_factory=list)
    alone: list[Own] = field(default_factory=list)
    """On one thread."""
    dgemm_gains: list[float] = field(default_factory=list)
    theirs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Seconds and E(T) of each other program."""
    peaks: dict[str, int] = field(default_factory=dict)

    def run(self, others: list[str]) -> None:
        args = self.args
        self._solve()
        outline = self.cc.plan.outline
        print(f"{self.name}, {outline.basis}, {outline.group.name}: {outline.shown['orbitals']}")
        pyscf = None if args.no_pyscf else Pyscf(self)
        left = args.repeat if args.pyscf_repeat is None else args.pyscf_repeat
        for turn in range(args.repeat):
            self.own.append(self._timed_pass(args.threads))
            self.peaks.setdefault("tilewise", self.own[-1].peak)
            print(f"  {self.own[-1]}", flush=True)
            if args.gain:
                self._gain()
            if pyscf and turn < left:
                self._add("PySCF", *pyscf.run())
        for program in others:
            for _ in range(args.repeat):
                try:
                    found = peers.run(program, self._job)
                except peers.PeerError as problem:
                    print(f"  {program} {problem}")
                    break
                self._add(program, found["triples"], found["e_t"])
        self._show(pyscf)

    def _solve(self) -> None:
        geometry, self.basis, self.frozen = CASES[self.name]
        self.xyz, self.spin = str(Path(GEOMETRIES, geometry)), SPINS.get(self.name, 0)
        self.kind = self.args.reference or ("uhf" if self.spin else "rhf")
        self.mf = run_scf(build_molecule(self.xyz, self.basis, spin=self.spin), reference=self.kind)
        dgemm_rate()  # what BLAS keeps is there before memory is planned
        cycles = {"max_cycle": self.args.iterations} if self.args.iterations else {}
        self.cc = CCSD(
            self.mf, frozen=self.frozen, symmetry=self.args.symmetry, threads=self.args.threads, **cycles
        ).run()
        self.plan = self.cc.plan.triples_plan

    @property
    def _job(self) -> peers.Job:
        return peers.Job(
            *(self.xyz, self.basis, self.frozen, self.args.threads, self.args.peer_timeout),
            *(self.spin, self.kind),
            symmetry=self.args.symmetry,
            triples=True,
        )

    def _timed_pass(self, threads: int) -> Own:
        plan = replace(self.plan, threads=threads)
        assert self.cc.t1 is not None and self.cc.t2 is not None
        orbitals = semicanonical(self.cc.reference, (self.cc.t1, self.cc.t2))
        done = 2.0 * plan.graph.records["triples"]["done"].sum()
        before = dgemm_rate()
        reset_peak()
        began = time.perf_counter()
        with thread_limits(threads):
            triples = TriplesPass(plan, *orbitals).run()
        total, most = time.perf_counter() - began, peak()
        return Own(triples, total, done, (before + dgemm_rate()) / 2, most)

    def _gain(self) -> None:
        self.alone.append(self._timed_pass(1))
        rates = [Dgemm(threads) for threads in (1, self.args.threads)]
        turns = [[product.rate() for product in rates] for _ in range(5)]
        one, several = (statistics.median(rate) for rate in zip(*turns, strict=True))
        self.dgemm_gains.append(several / one)
        print(f"  one thread: {self.alone[-1]}; dgemm gains {several / one:.3f}", flush=True)

    def _add(self, program: str, seconds: float, e_t: float) -> None:
        self.theirs.setdefault(program, []).append((seconds, e_t))
        print(f"  {program} {seconds:.3f} s, E(T) {e_t:.12f}", flush=True)

    def _show(self, pyscf: Pyscf | None) -> None:
        triples = self.own[-1].triples
        own = statistics.median(one.total for one in self.own)
        without = statistics.median(one.without_integrals for one in self.own)
        shares = [
            100 * statistics.median(getattr(one, f"{part}_share") for one in self.own)
            for part in ("task", "product")
        ]
        print(f"  E(T) {triples.e_t:.12f}, {1e-9 * triples.flops:.1f} Gflop, {triples.tasks} tasks")
        print(f"  {without:.3f} s, with integrals {own:.3f} s")
        print(f"  tasks at {shares[0]:.0f} %, their products at {shares[1]:.0f} % of dgemm's rate")
        if self.alone:
            gains = [
                one.triples.seconds["triples"] / several.triples.seconds["triples"]
                for one, several in zip(self.alone, self.own, strict=True)
            ]
            gain, dgemm_gain = statistics.median(gains), statistics.median(self.dgemm_gains)
            print(f"  {self.args.threads} threads are {gain:.3f} times as fast as one, ", end="")
            print(f"dgemm {dgemm_gain:.3f} times: {100 * gain / dgemm_gain:.1f} % of it")
        for program, runs in self.theirs.items():
            seconds, e_t = statistics.median(took for took, _ in runs), runs[-1][1]
            print(f"  {program} {seconds:.3f} s, {seconds / without:.1f} times as long; ", end="")
            print(f"E(T) differs by {abs(e_t - triples.e_t):.1e}")
            if program == "PySCF" and pyscf:
                both = seconds + pyscf.integrals
                print(f"    with integrals {both:.3f} s, {both / own:.1f} times as long")
        peak, estimate = self.peaks["tilewise"], self.plan.memory["triples"]
        print(f"  peak of (T) {format_bytes(peak)}, estimate {format_bytes(estimate)}", end="")
        print(f" ({100 * (estimate / peak - 1):+.1f} %)", end="")
        print(f", PySCF {format_bytes(self.peaks['PySCF'])}" if "PySCF" in self.peaks else "")


class Pyscf:
    """PySCF's (T) on the same amplitudes. Its integrals are made in the first run, and timed apart."""

    def __init__(self, case: Case) -> None:
        from pyscf import cc as pyscf_cc

        kind = pyscf_cc.UCCSD if case.cc.method.spin_orbitals else pyscf_cc.CCSD
        self.case, self.method = case, kind(case.mf, frozen=case.frozen)
        self.method.verbose = 0
        self.eris: Any = None
        self.integrals = 0.0

    def run(self) -> tuple[float, float]:
        """Seconds and E(T)."""
        with thread_limits(self.case.args.threads):
            if self.eris is None:
                reset_peak()
                began = time.perf_counter()
                self.eris = self.method.ao2mo(self.method.mo_coeff)
                self.integrals = time.perf_counter() - began
                self.amplitudes = self.case.cc.to_pyscf()
            began = time.perf_counter()
            e_t = self.method.ccsd_t(*self.amplitudes, self.eris)
            seconds = time.perf_counter() - began
        self.case.peaks.setdefault("PySCF", peak())
        return seconds, e_t


def reset_peak() -> None:
    """From here on the peak of this process is counted anew, where the system can."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


def peak() -> int:
    """Bytes that this process had at most."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def dgemm_rate(n: int = 768) -> float:
    """Flops per second of one core."""
    a, b = np.full((n, n), 0.5, order="F"), np.full((n, n), 0.25, order="F")
    times = []
    with thread_limits(1):
        for _ in range(5):
            began = time.perf_counter()
            dgemm(1.0, a, b)
            times.append(time.perf_counter() - began)
    return 2.0 * n**3 / statistics.median(times)


if __name__ == "__main__":
    main()
