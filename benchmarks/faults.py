"""Faults at random moments of calculations on two to four ranks: does the job end, and can it go on?

python benchmarks/faults.py                       # 200 cases
python benchmarks/faults.py --cases 20 --seed 3 --json faults.json

Each case meets an exception, SIGKILL, SIGSEGV, Ctrl-C on one rank, a NaN or a full disk. The job must end
within 10 s of it, name the rank and the reason, and leave a checkpoint from which a restart on any number of
ranks reaches the energy of an undisturbed run. A full disk costs the checkpoint alone: the run goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pyscf import gto, scf

import tilewise
from rank_faults import KINDS, Case, draw, run_case, undisturbed
from tilewise.chem.sources import reference_of


def told(case: Case) -> str:
    """A case in a line."""
    fault, met = case.fault, "met" if case.met else "not met"
    kept = "kept" if case.kept else "nothing kept"
    ended = f"ended with {case.code} in {case.seconds:.1f} s, {kept}"
    return (
        f"{case.ranks} ranks, {fault.kind} on rank {fault.rank} at {fault.moment:.2f} {met}; {ended}; "
        f"{case.restart_ranks} ranks off by {case.error:.1e}; {case.reason[:90]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json")
    args = parser.parse_args()

    random, cases = Random(args.seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fcidump = folder / "water.fcidump"
        mol = gto.M(atom="O 0 0 0.12; H 0 0.76 -0.47; H 0 -0.76 -0.47", basis="6-31g", verbose=0)
        tilewise.write_fcidump(fcidump, reference_of(scf.RHF(mol).run(conv_tol=1e-11)))
        energy, duration = undisturbed(fcidump, folder)
        print(f"undisturbed: {energy:.10f} hartree in {duration:.1f} s", flush=True)
        for number in range(args.cases):
            case = run_case(draw(random, duration, KINDS[number % len(KINDS)]), fcidump, energy, folder)
            cases.append(case)
            state = "right" if case.is_right else "WRONG"
            print(f"{number + 1:4d} {state} {told(case)}", flush=True)
    met = [case for case in cases if case.met]
    print(f"{sum(case.is_right for case in cases)} of {len(cases)} right; {len(met)} met their fault:")
    for kind, count in Counter(case.fault.kind for case in met).items():
        own = [case for case in met if case.fault.kind == kind]
        print(f"  {kind}: {count}, at most {max(case.seconds for case in own):.1f} s to the end")
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(case) for case in cases], indent=1))


if __name__ == "__main__":
    main()
