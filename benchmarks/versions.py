"""CCSD of this version and of another one, in turn, on the same SCF orbitals: is anything slower than before?

    python benchmarks/versions.py --against /path/to/other/bin/python
    python benchmarks/versions.py --against ... --cases benzene-dz,water2 --pairs 10

`--against` is the interpreter of an environment in which the other version is installed. Each run is a
process of its own, and each version has a cache folder of its own, filled by a run that does not count; both
of a pair follow each other, this one first in every other pair. Printed per case: the median over the
pairs of the ratios this / other, of the seconds of an iteration (median of the run, and least) and of those
from SCF to energy, with the middle of all runs behind them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from ccsd import CASES, GEOMETRIES
from integrals import save_orbitals

# What a run does: it knows only names that earlier versions have, too.
RUN = """
import json, statistics, sys, time
import numpy as np
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import run_scf

geometry, basis, frozen, path, threads = sys.argv[1:]
kept = np.load(path)
mf = run_scf(build_molecule(geometry, basis), guess=(kept["mo_coeff"], kept["mo_occ"]))
from tilewise import CCSD  # as in a script that has imported PySCF before

began = time.perf_counter()
cc = CCSD(mf, frozen=int(frozen), threads=int(threads)).run()
total = time.perf_counter() - began
seconds = cc.iteration_seconds
found = {"iteration": statistics.median(seconds), "least": min(seconds), "total": total, "e_corr": cc.e_corr}
print(json.dumps(found))
"""
KEYS = {"iteration": "iteration", "least": "least iteration", "total": "SCF to energy"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", required=True, help="the python of another version's environment")
    parser.add_argument("--cases", default="water-tiny,benzene-dz,water2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7)
    args = parser.parse_args()
    for name in args.cases.split(","):
        if name not in CASES:
            sys.exit(f"unknown case '{name}': valid are {', '.join(CASES)}")
        file, basis, frozen = CASES[name]
        pairs: list[dict[str, dict[str, float]]] = []
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "scf.npz")
            save_orbitals(str(GEOMETRIES / file), basis, path)
            work = [str(GEOMETRIES / file), basis, str(frozen), path, str(args.threads)]
            versions = {"this": sys.executable, "other": args.against}
            for number in range(args.pairs + 1):
                order = list(versions.items())[:: -1 if number % 2 else 1]
                pair = {version: _run(python, work, f"{folder}/{version}") for version, python in order}
                pairs += [pair] if number else []
        _show(name, pairs)


def _run(python: str, work: list[str], cache: str) -> dict[str, float]:
    environment = os.environ | {"TILEWISE_CACHE_DIR": cache}
    command = [python, "-c", RUN, *work]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def _show(name: str, pairs: list[dict[str, dict[str, float]]]) -> None:
    apart = max(abs(pair["this"]["e_corr"] - pair["other"]["e_corr"]) for pair in pairs)
    print(f"{name}: {len(pairs)} pairs, energies within {apart:.0e} hartree")
    for key, title in KEYS.items():
        ratios = [pair["this"][key] / pair["other"][key] for pair in pairs]
        this, other = (statistics.median(pair[one][key] for pair in pairs) for one in ("this", "other"))
        each = " ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
        print(f"  {title:16s} {statistics.median(ratios):.3f} ({each}); {this:.4f} for {other:.4f} s")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
