"""Speed and memory of CI: python benchmarks/ci.py [columns] [fci] [triples] [million] [load].

columns  nanoseconds per element: stored, direct, a product; one and two workers, beside what a second
         thread gains dgemm, and the bare reading of as much memory as a product reads; how good predictions
         are: correlation of predicted and measured seconds of runs of 100 columns, the least of some passes
         that store nothing, since pages of new memory make one column in hundreds a hundred times slower.
         All are the least of as many passes as a second holds, or of a few
fci      full CI with symmetry beside PySCF's direct_spin1_symm, whole runs
triples  singles to triples beside qc-pyci, if it can be imported, energies compared
million  a million determinants: elements, time, and the largest resident memory against the plan
load     columns under another job on the first core: when the workers end, against delta, and what the last
         one still did: a single column that took most of that time waited for memory or for its processor.
         The first of three passes takes memory from the system, which on some machines is many times as
         slow as the columns, now for one worker and now for the other; the others find it there
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from pyscf import ao2mo, fci, gto, mcscf, scf

import tilewise
from tilewise.ci.columns import Columns
from tilewise.config import thread_limits
from tilewise.schedule import policy_named
from tilewise.wording import counted

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
NITROGEN = "N 0 0 0; N 0 0 1.0977"


def mean_field(atom: str, basis: str, symmetry: bool | str = True) -> scf.hf.RHF:
    return scf.RHF(gto.M(atom=atom, basis=basis, symmetry=symmetry, verbose=0)).run(conv_tol=1e-11)


def cases() -> dict[str, tilewise.CI]:
    nitrogen = mean_field(NITROGEN, "cc-pvdz")
    return {
        "Ne SD aug-cc-pVQZ, l <= 4": tilewise.CI.atom(
            "Ne", basis="aug-cc-pvqz", reference="1s2 2s2 2p6", l=4, term="1S"
        ),
        "N2 SD cc-pVTZ": tilewise.CI(mean_field(NITROGEN, "cc-pvtz"), frozen=2),
        "N2 SDT cc-pVDZ": tilewise.CI(nitrogen, rank=3, frozen=2),
        "Be FCI aug-cc-pVTZ": tilewise.CI.atom(
            "Be", basis="aug-cc-pvtz", reference="1s2 2s2", rank=None, term="1S"
        ),
        "N2 SDTQ cc-pVDZ": tilewise.CI(nitrogen, rank=4, frozen=2),
    }


def best(work: Callable[[], object], times: int = 3, seconds: float = 0.0) -> float:
    """Wall-clock seconds of the fastest of a few, or of as many as take so long."""
    found: list[float] = []
    while len(found) < times or sum(found) < seconds:
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def passes(made: Columns, vector: np.ndarray, times: int, seconds: float) -> tuple[float, np.ndarray]:
    """Seconds of the fastest direct product, and of each column the least."""
    totals: list[float] = []
    each = np.full(vector.shape[1], np.inf)
    while len(totals) < times or sum(totals) < seconds:
        totals.append(best(partial(made.multiply, vector), 1))
        assert made.direct_trace is not None
        each = np.minimum(each, 1e-9 * (made.direct_trace["end"] - made.direct_trace["start"]))
    return min(totals), each


def gain_of_dgemm(size: int = 800) -> float:
    """How much faster two threads multiply matrices than one, now."""
    a = np.random.default_rng(1).normal(size=(size, size))
    seconds = []
    for threads in (1, 2):
        with thread_limits(threads):
            seconds.append(best(lambda: a @ a, 5, 0.3))
    return seconds[0] / seconds[1]


def gain_of_reading(size: int = 36 << 20, times: int = 10) -> float:
    """How much faster two threads read the memory of a small case's columns than one, now."""
    halves = np.ones((2, size // 16))

    def read(half: np.ndarray) -> None:
        for _ in range(times):
            half.dot(half)

    with thread_limits(1), ThreadPoolExecutor(1) as other:

        def together() -> None:
            waiting = other.submit(read, halves[1])
            read(halves[0])
            waiting.result()

        alone = best(lambda: [read(half) for half in halves], 3, 0.3)
        return alone / best(together, 3, 0.3)


def correlation_of_runs(counts: np.ndarray, took: np.ndarray, length: int = 100) -> float:
    """Of runs of columns: measured seconds, and those of a model that was fitted to the others of them.

    The hundredth of the runs that were late the most is left out.
    """
    runs = np.arange(len(took)) // length
    odd = runs % 2 == 1
    predicted = np.empty(len(took))
    for half in (odd, ~odd):
        predicted[half] = (
            tilewise.ci.cost.ColumnCosts().fitted(counts[~half], took[~half]).seconds(counts[half])
        )
    whole = len(took) // length * length
    sums = [x[:whole].reshape(-1, length).sum(axis=1) for x in (predicted, took)]
    kept = np.argsort(sums[1] - sums[0])[: max(2, int(0.99 * len(sums[0])))]
    return float(np.corrcoef(sums[0][kept], sums[1][kept])[0, 1])


def columns() -> None:
    print(f"a second thread gains dgemm {gain_of_dgemm():.2f}, bare reading {gain_of_reading():.2f}")
    print(f"{'':28s}{'determinants':>13s}{'elements':>11s}{'stored':>8s}{'direct':>8s}{'product':>8s}"
          f"{'two: stored':>12s}{'product':>8s}{'correlation':>12s}")  # fmt: skip
    for name, calculation in cases().items():
        operator = calculation.problem.hamiltonian(calculation.numbers)
        vector = np.random.default_rng(1).normal(size=(1, len(calculation.determinants)))
        seconds = {}
        for workers in (1, 2):
            made = Columns(
                calculation.determinants,
                calculation.numbers,
                workers,
                policy_named("factoring(f=2, delta=0.005)"),
            )
            made.use(operator)
            counts = made.count()
            predicted = tilewise.ci.cost.known_costs().seconds(counts)
            times = 4 if len(counts) > 500000 else 3  # the first ones take memory from the system
            if workers == 1:
                seconds["direct"], took = passes(made, vector, times + 2, 1.0)
                correlation = correlation_of_runs(counts, took)
            built = [made.build(counts[:, 0], predicted, 12 << 30) for _ in range(times)]
            seconds[f"stored {workers}"] = min(b.seconds for b in built)
            seconds[f"product {workers}"] = best(partial(made.multiply, vector), times, 1.0)
            elements = int(made.elements.sum())
        ns = {key: 1e9 * value / elements for key, value in seconds.items()}
        gains = [seconds[f"{what} 1"] / seconds[f"{what} 2"] for what in ("stored", "product")]
        print(
            f"{name:28s}{len(counts):13d}{elements:11d}"
            f"{ns['stored 1']:8.1f}{ns['direct']:8.1f}{ns['product 1']:8.2f}"
            f"{gains[0]:11.2f}x{gains[1]:7.2f}x{correlation:12.3f}",
            flush=True,
        )
    print(f"a second thread gains dgemm {gain_of_dgemm():.2f}, bare reading {gain_of_reading():.2f}")


def full() -> None:
    """Whole calculations from the same mean field, one thread each, then all."""
    for name, mf, frozen in (
        ("H2O FCI 6-31G", mean_field(WATER, "6-31g"), 1),
        ("HF FCI 6-31G", mean_field("F 0 0 0; H 0 0 0.917", "6-31g", "C2v"), 1),
        ("N2 FCI 6-31G, 6 electrons", mean_field(NITROGEN, "6-31g", "D2h"), 4),
    ):
        ours = best(lambda mf=mf, frozen=frozen: tilewise.CI(mf, rank=None, frozen=frozen).run())
        found = tilewise.CI(mf, rank=None, frozen=frozen).run()
        n = mf.mo_coeff.shape[1] - frozen

        def theirs(mf=mf, n=n, frozen=frozen):
            cas = mcscf.CASCI(mf, n, mf.mol.nelectron - 2 * frozen)
            cas.fcisolver = fci.direct_spin1_symm.FCI(mf.mol)
            cas.fcisolver.conv_tol, cas.canonicalization = 1e-9, False
            return cas.kernel()[0]

        seconds, energy = best(theirs), theirs()
        print(
            f"{name:28s} {len(found.determinants)} determinants: {ours:.3f} s here, {seconds:.3f} s PySCF, "
            f"ratio {seconds / ours:.2f}; energies differ by {found.e_tot - energy:.1e}",
            flush=True,
        )


def triples() -> None:
    import pyci

    mf = mean_field(WATER, "6-31g", False)
    n, cas = mf.mo_coeff.shape[1] - 1, mcscf.CASCI(mf, mf.mo_coeff.shape[1] - 1, 8)
    one, core = cas.get_h1eff()
    two = ao2mo.restore(1, ao2mo.full(mf.mol, mf.mo_coeff[:, 1:]), n).transpose(0, 2, 1, 3).copy()
    for rank in (3, 4):

        def theirs(rank=rank):
            wave = pyci.fullci_wfn(n, 4, 4)
            pyci.add_excitations(wave, *range(rank + 1))
            matrix = pyci.sparse_op(pyci.hamiltonian(core, one, two), wave)
            return matrix.solve(n=1, tol=1e-10)[0][0], len(wave)

        energy, count = theirs()
        seconds = best(theirs, 2)
        found = tilewise.CI(mf, rank=rank, frozen=1, symmetry="C1").run()
        ours = best(lambda rank=rank: tilewise.CI(mf, rank=rank, frozen=1, symmetry="C1").run(), 2)
        print(
            f"H2O 6-31G rank {rank}, C1: {len(found.determinants)} and {count} determinants: "
            f"{ours:.3f} s here, {seconds:.3f} s qc-pyci, ratio {seconds / ours:.1f}; "
            f"energies {found.e_tot:.10f} {energy:.10f}",
            flush=True,
        )


def million() -> None:
    calculation = tilewise.CI(mean_field(NITROGEN, "cc-pvdz"), rank=4, frozen=2, memory="4GB")
    print(calculation.plan())
    calculation.run()
    stored = int(calculation.columns.elements.sum())
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{len(calculation.determinants)} determinants, {stored} elements stored, "
        f"{calculation.columns.n_direct} columns direct; {peak / 1e9:.2f} GB at the peak, "
        f"plan {max(calculation.plan().memory.values()) / 1e9:.2f} GB; "
        + ", ".join(f"{phase} {s:.2f} s" for phase, s in calculation.seconds.items())
        + f"; {len(calculation.cycles)} cycles, E = {calculation.e_tot:.8f}"
    )


def _spin(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    while True:
        pass


def load() -> None:
    """Another job on the first processor, which worker 0 is bound to: speeds 1/2 and 1."""
    processors = sorted(os.sched_getaffinity(0))[:2]
    calculation = tilewise.CI(mean_field(NITROGEN, "cc-pvdz"), rank=4, frozen=2)
    operator = calculation.problem.hamiltonian(calculation.numbers)
    for delta in (0.05, 0.02, 0.01):
        made = Columns(
            calculation.determinants,
            calculation.numbers,
            2,
            policy_named(f"factoring(f=2, delta={delta})"),
            tuple(processors),
        )
        made.use(operator)
        counts = made.count()
        seconds = tilewise.ci.cost.known_costs().seconds(counts)
        other = multiprocessing.Process(target=_spin, args=(processors[0],), daemon=True)
        other.start()
        try:
            traces = [made.build(counts[:, 0], seconds, 12 << 30).trace for _ in range(3)]
        finally:
            other.kill()
            other.join()
        for memory, trace in zip(("new memory", "again", "again"), traces, strict=True):
            print(f"delta {delta}, {memory}: {_ends(trace, delta)}", flush=True)


def _ends(trace: np.ndarray, delta: float) -> str:
    ends = [1e-9 * trace["end"][trace["worker"] == w].max(initial=0) for w in range(2)]
    alone = 1e-9 * trace["end"] > min(ends)  # columns that ended when the other worker was through
    longest = 1e-9 * (trace["end"] - trace["start"])[alone].max(initial=0)
    apart = abs(ends[0] - ends[1])
    return (
        f"loop of {max(ends):.2f} s ({max(ends) / delta:.0f} delta), workers end {apart:.3f} s apart "
        f"({apart / delta:.2f} delta): {counted(int(alone.sum()), 'column')}, "
        f"the longest of them {1e3 * longest:.2f} ms"
    )


PARTS = {"columns": columns, "fci": full, "triples": triples, "million": million, "load": load}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    chosen = parser.parse_args().parts or list(PARTS)
    for part in chosen:
        if part == "triples" and not __import__("importlib.util").util.find_spec("pyci"):
            print("triples: qc-pyci is not installed", file=sys.stderr)
        elif len(chosen) == 1:
            PARTS[part]()
        else:  # each in a process of its own, whose memory is that of this part
            subprocess.run([sys.executable, __file__, part], check=True)
