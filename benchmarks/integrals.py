"""The integral transformation alone, of this version and of another one, in turn.

    python benchmarks/integrals.py                                   # the small cases
    python benchmarks/integrals.py --cases benzene-tz --direct       # no integrals kept by the SCF
    python benchmarks/integrals.py --against /path/to/other/bin/python --repeat 3
    python benchmarks/integrals.py --spins                           # three spin sets of a UHF, and one set

Each run is a process of its own on the same SCF orbitals. Printed are the seconds from the orbitals to all
integrals of CCSD (Fock matrix and tables included), the seconds of all cores, the growth of the process's
peak memory meanwhile, and, with --against, both as ratios to the other version: `--against` is the
interpreter of an environment in which that one is installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

GEOMETRIES = Path(__file__).resolve().parent.parent / "examples" / "geometries"
CASES = {
    "benzene-dz": ("benzene.xyz", "cc-pvdz", 6),
    "benzene-tz": ("benzene.xyz", "cc-pvtz", 6),
    "naphthalene-dz": ("naphthalene.xyz", "cc-pvdz", 10),
    "water2": ("water2.xyz", "aug-cc-pvdz", 2),
    "water3": ("water3.xyz", "aug-cc-pvdz", 3),
}

KEYS = ("seconds", "cpu", "growth")

# What a run does: it knows only names that earlier versions have, too.
RUN = """
import json, resource, sys, threading, time
import numpy as np
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import from_mean_field, run_scf
from tilewise.methods.integrals import constants
from tilewise.methods.plan import plan_outline

geometry, basis, frozen, path, threads, direct, spins = sys.argv[1:]
kept = np.load(path)
memory = 1e6 if direct == "True" else 16e9
mf = run_scf(build_molecule(geometry, basis), guess=(kept["mo_coeff"], kept["mo_occ"]), max_memory=memory)
assert (mf._eri is None) == (direct == "True")
threads = int(threads)
if spins == "three":
    mf = mf.to_uhf()
reference = from_mean_field(mf, frozen=int(frozen))
plan = plan_outline(reference.outline, threads=threads)
program, equation = plan.program, plan.equation


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


most, done, before = 0, False, resident()


def watch():
    global most
    while not done:
        most = max(most, resident())
        time.sleep(0.002)


watcher = threading.Thread(target=watch)
watcher.start()
clock, work = time.perf_counter(), time.process_time()
constants(equation, program, reference, threads)
seconds, cpu = time.perf_counter() - clock, time.process_time() - work
done = True
watcher.join()
print(json.dumps({"seconds": seconds, "cpu": cpu, "growth": max(most, resident()) - before}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default="benzene-dz,naphthalene-dz,water3")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--direct", action="store_true", help="the SCF keeps no integrals")
    parser.add_argument("--against", help="the python of another version's environment")
    parser.add_argument("--spins", action="store_true", help="a UHF with the same orbitals, against the RHF")
    args = parser.parse_args()
    if args.spins and args.against:
        parser.error("--spins compares with one set of this version: leave --against out")
    versions = {"this": (sys.executable, "three" if args.spins else "one")}
    if args.spins or args.against:
        versions["other"] = (args.against or sys.executable, "one")
    for name in args.cases.split(","):
        if name not in CASES:
            sys.exit(f"unknown case '{name}': valid are {', '.join(CASES)}")
        file, basis, frozen = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "scf.npz")
            save_orbitals(str(GEOMETRIES / file), basis, path)
            runs: dict[str, list[dict[str, float]]] = {version: [] for version in versions}
            for _ in range(args.repeat):
                for version, (python, spins) in reversed(versions.items()):
                    command = [python, "-c", RUN, str(GEOMETRIES / file), basis, str(frozen), path]
                    command += [str(args.threads), str(args.direct), spins]
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                    runs[version].append(json.loads(done.stdout.splitlines()[-1]))
        _show(name, runs)


def save_orbitals(geometry: str, basis: str, path: str) -> None:
    """Runs the SCF and saves its orbitals."""
    import numpy as np

    from tilewise.chem.pyscf_molecule import build_molecule
    from tilewise.chem.pyscf_source import run_scf

    mf = run_scf(build_molecule(geometry, basis))
    np.savez(path, mo_coeff=mf.mo_coeff, mo_occ=mf.mo_occ)


def _show(name: str, runs: dict[str, list[dict[str, float]]]) -> None:
    middle = {
        version: {key: statistics.median(run[key] for run in found) for key in KEYS}
        for version, found in runs.items()
    }
    line = f"{name:16s}"
    for version, found in runs.items():
        times = " ".join(f"{run['seconds']:.2f}" for run in found)
        line += f"  {version}: {times} s ({middle[version]['cpu']:.2f} s of all cores)"
        line += f", {middle[version]['growth'] / 1e9:.2f} GB"
    if "other" in middle:
        line += "  ratio: " + ", ".join(
            f"{key} {middle['this'][key] / middle['other'][key]:.2f}" for key in KEYS
        )
    print(line, flush=True)


if __name__ == "__main__":
    main()
