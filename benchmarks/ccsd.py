"""CCSD side by side: tilewise, PySCF and other programs on the same molecules.

    python benchmarks/ccsd.py                          # the small cases
    python benchmarks/ccsd.py --cases benzene-tz --pyscf-iterations 1
    python benchmarks/ccsd.py --xyz mine.xyz --basis cc-pvtz --frozen 10
    python benchmarks/ccsd.py --peers psi4,nwchem      # those of them that are on PATH
    python benchmarks/ccsd.py --cases phenyl-dz --reference rohf    # an open shell; also uhf, --symmetry C1
    python benchmarks/ccsd.py --repeat 3 --json out.json --chart out.png    # the chart needs matplotlib

Each program runs in a process of its own, in turn, on the same SCF orbitals (peers make their own).
Printed per case: group, orbitals, seconds per iteration (median, DIIS included) and ratio, seconds from
the converged SCF to the converged energy and ratio, peak memory, flops and GF/s with the share of this
machine's dgemm rate (in a further run, where iterations and dgemm take turns), the floor (the iteration's own
products as bare dgemm calls, one BLAS thread on each worker) and the time of each phase.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import peers

HERE = Path(__file__).resolve().parent
GEOMETRIES = HERE.parent / "examples" / "geometries"
CASES = {
    "water-tiny": ("water.xyz", "cc-pvdz", 0),
    "benzene-dz": ("benzene.xyz", "cc-pvdz", 6),
    "benzene-tz": ("benzene.xyz", "cc-pvtz", 6),
    "naphthalene-dz": ("naphthalene.xyz", "cc-pvdz", 10),
    "phenyl-dz": ("phenyl.xyz", "cc-pvdz", 6),
    "n2-atz": ("n2.xyz", "aug-cc-pvtz", 2),
    **{f"water{n}": (f"water{n}.xyz" if n > 1 else "water.xyz", "aug-cc-pvdz", n) for n in range(1, 6)},
}
SPINS = {"phenyl-dz": 1}
"""Unpaired electrons of the cases that have some."""
SMALL = ("water-tiny", "benzene-dz", "water3")


def main() -> None:
    args = _arguments()
    if args.worker:
        print(json.dumps(WORKERS[args.worker](args)))
        return
    cases = dict(CASES)
    chosen = args.cases.split(",")
    if args.xyz:
        cases[Path(args.xyz).stem] = (str(Path(args.xyz).resolve()), args.basis, args.frozen)
        chosen = [Path(args.xyz).stem]
    others = peers.programs(args.peers)
    results = []
    for name in chosen:
        if name not in cases:
            sys.exit(f"unknown case '{name}': valid are {', '.join(cases)}")
        results.append(_run_case(name, cases[name], others, args))
        _print_case(results[-1])
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))
    if args.chart:
        _chart(results, Path(args.chart))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default=",".join(SMALL), help=f"of {', '.join(CASES)}")
    parser.add_argument("--xyz", help="a geometry of one's own instead")
    parser.add_argument("--basis", default="cc-pvdz")
    parser.add_argument("--frozen", type=int, default=0)
    parser.add_argument("--spin", type=int, help="unpaired electrons; of a case its own")
    parser.add_argument("--reference", choices=("rhf", "uhf", "rohf"), help="default rhf, or uhf with a spin")
    parser.add_argument("--symmetry", default="auto", help="the group of tilewise, such as C1")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pyscf-iterations", type=int, default=0, help="time so many only (0: converge)")
    parser.add_argument("--no-pyscf", action="store_true")
    parser.add_argument(
        "--peers", default="", help=f"of {','.join(peers.PEERS)}: those found on PATH run too"
    )
    parser.add_argument("--peer-timeout", type=float, default=3600.0, help="seconds for one run of a peer")
    parser.add_argument("--memory", default=None, help="tilewise's budget, such as 8GB")
    parser.add_argument("--json")
    parser.add_argument("--chart")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--scf", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_case(name: str, case: tuple[str, str, int], others: list[str], args: argparse.Namespace) -> dict:
    geometry, basis, frozen = case
    path = geometry if os.path.isabs(geometry) else str(GEOMETRIES / geometry)
    result: dict = {"case": name, "basis": basis, "frozen": frozen, "threads": args.threads, "runs": {}}
    with tempfile.TemporaryDirectory() as folder:
        common = ["--xyz", path, "--basis", basis, "--frozen", str(frozen), "--threads", str(args.threads)]
        common += ["--scf", str(Path(folder) / "scf.npz"), "--pyscf-iterations", str(args.pyscf_iterations)]
        common += ["--memory", args.memory] if args.memory else []
        spin = SPINS.get(name, 0) if args.spin is None else args.spin
        reference = args.reference or ("uhf" if spin else "rhf")
        common += ["--spin", str(spin), "--reference", reference, "--symmetry", args.symmetry]
        _worker("scf", common, args.threads)
        programs = ["tilewise"] + ([] if args.no_pyscf else ["pyscf"])
        job = peers.Job(path, basis, frozen, args.threads, args.peer_timeout, spin, reference)
        left = list(others)
        for turn in range(args.repeat):
            for program in programs:
                once = program == "pyscf" and args.pyscf_iterations and turn
                if not once:
                    result["runs"].setdefault(program, []).append(_worker(program, common, args.threads))
            for program in tuple(left):
                try:
                    result["runs"].setdefault(program, []).append(peers.run(program, job))
                except peers.PeerError as problem:
                    print(f"{name}: {program} {problem}")
                    left.remove(program)
    result["runs"] = {program: runs for program, runs in result["runs"].items() if runs}
    return result


def _worker(program: str, common: list[str], threads: int) -> dict:
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, str(Path(__file__).resolve()), "--worker", program, *common]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{program} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


# What runs in the processes


def _scf(args: argparse.Namespace) -> dict:
    import numpy as np

    from tilewise.chem.pyscf_molecule import build_molecule
    from tilewise.chem.pyscf_source import run_scf

    mf = run_scf(build_molecule(args.xyz, args.basis, spin=args.spin), reference=args.reference)
    np.savez(args.scf, mo_coeff=mf.mo_coeff, mo_occ=mf.mo_occ)
    return {"e_hf": float(mf.e_tot)}


def _mean_field(args: argparse.Namespace):
    """The SCF of the case, from its own orbitals; AO integrals are kept if PySCF would keep them."""
    import numpy as np

    from tilewise.chem.pyscf_molecule import build_molecule
    from tilewise.chem.pyscf_source import run_scf

    kept = np.load(args.scf)
    mol, guess = build_molecule(args.xyz, args.basis, spin=args.spin), (kept["mo_coeff"], kept["mo_occ"])
    return run_scf(mol, guess=guess, reference=args.reference)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _tilewise(args: argparse.Namespace) -> dict:
    from floor import floor_seconds

    mf = _mean_field(args)
    from tilewise import CCSD  # as in a script that has imported PySCF before

    before = _peak()
    began = time.perf_counter()
    cc = CCSD(mf, **_settings(args)).run()
    total = time.perf_counter() - began
    peak = _peak()
    iteration = statistics.median(cc.iteration_seconds)
    outline = cc.plan.outline
    rate, dgemm_rate = _beside_dgemm(mf, args)
    return {
        "group": outline.group.name,
        "o": "/".join(dict.fromkeys(str(sum(occ)) for occ, _ in outline.by_spin)),
        "v": "/".join(dict.fromkeys(str(sum(vir)) for _, vir in outline.by_spin)),
        "converged": cc.converged,
        "e_corr": cc.e_corr,
        "iterations": len(cc.iterations),
        "iteration": iteration,
        "total": total,
        "peak": peak,
        "peak_before": before,
        "estimate": cc.plan.peak_memory,
        "flops": cc.plan.flops,
        "rate": rate,
        "dgemm_rate": dgemm_rate,
        "floor": floor_seconds(cc.plan.graph, cc.plan.program, args.threads),
        "seconds": cc.seconds,
        "notes": cc.notes,
    }


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "frozen": args.frozen,
        "threads": args.threads,
        "memory": args.memory,
        "symmetry": args.symmetry,
    }


def _beside_dgemm(mf: Any, args: argparse.Namespace) -> tuple[float, float]:
    """Flops per second of an iteration and of dgemm: medians of a second run, where they take turns.

    The speed of a shared machine changes from second to second.
    """
    from floor import Dgemm

    from tilewise import CCSD

    product, rates = Dgemm(args.threads), []

    def measure(_: Any) -> None:
        rates.append(product.rate())
        time.sleep(0.1)  # its threads wait actively for a while

    product.rate()
    cc = CCSD(mf, **_settings(args), callback=measure).run()
    return cc.plan.flops / statistics.median(cc.iteration_seconds), statistics.median(rates)


def _pyscf(args: argparse.Namespace) -> dict:
    from pyscf import cc

    mf = _mean_field(args)
    before = _peak()
    began = time.perf_counter()
    solver = cc.CCSD(mf, frozen=args.frozen or None)
    solver.verbose, solver.conv_tol, solver.conv_tol_normt = 0, 1e-8, 1e-6
    eris = solver.ao2mo()
    transformed = time.perf_counter() - began
    marks: list[float] = []
    update = solver.update_amps

    def timed(*positional, **named):
        marks.append(time.perf_counter())
        return update(*positional, **named)

    solver.update_amps = timed
    if args.pyscf_iterations:
        solver.max_cycle = args.pyscf_iterations
    solver.kernel(eris=eris)
    marks.append(time.perf_counter())
    total = marks[-1] - began
    gaps = [b - a for a, b in itertools.pairwise(marks)]
    return {
        "converged": bool(solver.converged),
        "e_corr": float(solver.e_corr),
        "iterations": len(gaps),
        "iteration": statistics.median(gaps),
        "total": total,
        "transformation": transformed,
        "peak": _peak(),
        "peak_before": before,
    }


WORKERS = {"scf": _scf, "tilewise": _tilewise, "pyscf": _pyscf}


# What is printed


def _median(runs: list[dict], key: str) -> float:
    return statistics.median(run[key] for run in runs)


def _print_case(result: dict) -> None:
    ours = result["runs"]["tilewise"]
    first, iteration, total = ours[0], _median(ours, "iteration"), _median(ours, "total")
    print(
        f"\n{result['case']}: {result['basis']}, {first['group']}, o {first['o']}, v {first['v']}, ", end=""
    )
    print(f"{result['threads']} threads, median of {len(ours)}")
    print(
        f"  {'':14}{'s/iteration':>12}{'ratio':>8}{'SCF to energy':>15}{'ratio':>8}"
        f"{'peak GB':>9}{'iterations':>12}"
    )
    for program, runs in result["runs"].items():
        it, all_ = _median(runs, "iteration"), _seconds(result, program, "total")
        mark = "" if runs[0]["converged"] else " (extrapolated from the timed iterations)"
        peak = f"{_median(runs, 'peak') / 1e9:.2f}" if all(run.get("peak") for run in runs) else "-"
        print(
            f"  {program:14}{it:12.4f}{it / iteration:8.1f}{all_:15.3f}{all_ / total:8.1f}"
            f"{peak:>9}{runs[0]['iterations']:12d}{mark}"
        )
    rate, dgemm = _median(ours, "rate"), _median(ours, "dgemm_rate")
    floor = statistics.median(run["iteration"] / run["floor"] for run in ours)
    print(
        f"  {first['flops'] / 1e9:.3f} GF per iteration, {rate / 1e9:.1f} GF/s "
        f"= {100 * rate / dgemm:.0f} % of dgemm",
        end="",
    )
    print(f" ({dgemm / 1e9:.1f} GF/s); iteration = {floor:.2f} x its products as bare dgemm calls")
    print(
        f"  estimate {first['estimate'] / 1e9:.2f} GB; "
        + ", ".join(f"{k} {v:.3f} s" for k, v in first["seconds"].items())
    )
    energies = {
        program: runs[0]["e_corr"] for program, runs in result["runs"].items() if runs[0]["converged"]
    }
    print("  E(corr) " + ", ".join(f"{program} {e:.9f}" for program, e in energies.items()))


def _seconds(result: dict, program: str, key: str) -> float:
    """Median; if only some iterations were timed, the total is what as many as ours would take."""
    runs, ours = result["runs"][program], result["runs"]["tilewise"]
    if key == "total" and not runs[0]["converged"]:
        return _median(runs, "transformation") + _median(runs, "iteration") * ours[0]["iterations"]
    return _median(runs, key)


def _chart(results: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    programs = sorted({program for result in results for program in result["runs"]} - {"tilewise"})
    width = 0.8 / max(1, len(programs))
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    titles = {"iteration": "per iteration", "total": "SCF to energy"}
    for axis, (key, title) in zip(axes, titles.items(), strict=True):
        for k, program in enumerate(programs):
            cases = [x for x, result in enumerate(results) if program in result["runs"]]
            ratios = [
                _seconds(results[x], program, key) / _seconds(results[x], "tilewise", key) for x in cases
            ]
            places = [x + (k - (len(programs) - 1) / 2) * width for x in cases]
            bars = axis.bar(places, ratios, 0.95 * width, label=program)
            axis.bar_label(bars, [f"{ratio:.3g}" for ratio in ratios], padding=2, fontsize=8)
        axis.set_xticks(range(len(results)), [result["case"] for result in results])
        axis.set_yscale("log")
        axis.margins(y=0.1)
        axis.set_title(f"times slower than tilewise, {title}")
        axis.axhline(1.0, color="grey", linewidth=0.5)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=max(1, len(programs)), frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
