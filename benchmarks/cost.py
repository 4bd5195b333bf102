"""How good the cost model is: its errors on shapes that it was not fitted to, and on whole iterations.

python benchmarks/cost.py                   # fits a model as `tilewise tune` does; nothing is kept
python benchmarks/cost.py --known           # the model that plans use now
python benchmarks/cost.py --verbose         # each operation of the iterations
python benchmarks/cost.py --case examples/geometries/water.xyz,cc-pvtz,auto

Iterations run on one worker, on random numbers. Measured is the sum over all tasks of their best time in
several runs, made in turn with those of the other cases; beside it stands the median of whole iterations.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.config import thread_limits
from tilewise.cost import CostModel, estimate, load_or_calibrate
from tilewise.cost.score import Score, calibrate_and_score
from tilewise.execute import Machine
from tilewise.methods.exploration import random_tensors
from tilewise.methods.plan import plan

GEOMETRIES = Path(__file__).parents[1] / "examples" / "geometries"
CASES = (f"{GEOMETRIES / 'benzene.xyz'},cc-pvdz,auto", f"{GEOMETRIES / 'water2.xyz'},aug-cc-pvdz,C1")


@dataclass
class Case:
    """An iteration to be run, and the seconds of each task in each run."""

    name: str
    machine: Machine
    runs: list[np.ndarray]

    @classmethod
    def parse(cls, text: str, model: CostModel) -> Case:
        xyz, basis, symmetry = text.split(",")
        molecule = build_molecule(Path(xyz), basis, 0)
        made = plan(molecule, frozen="auto", symmetry=symmetry, threads=1, policy="dataflow")
        schedule = made.policy(made.graph, estimate(made.graph, model), made.team)
        machine = Machine(made.graph, schedule, random_tensors(made.graph))
        return cls(f"{Path(xyz).stem} {basis} {made.outline.group.name}", machine, [])


def show_scores(scores: list[Score]) -> None:
    print(f"{'kernel':<14}{'samples':>8}{'median':>9}{'90 %':>9}   relative errors of predicted times")
    for score in scores:
        print(f"{score.kind:<14}{score.samples:8d}{100 * score.median:8.1f}%{100 * score.ninetieth:8.1f}%")


def show_case(case: Case, model: CostModel, verbose: bool) -> dict[str, float | str]:
    graph = case.machine.graph
    predicted, best = estimate(graph, model), np.min(case.runs, axis=0)
    median = float(np.median(np.sum(case.runs, axis=1)))
    ratio = float(predicted.sum() / best.sum())
    print(
        f"{case.name:<32}{1000 * predicted.sum():9.2f} ms predicted,{1000 * best.sum():9.2f} ms measured, "
        f"ratio {ratio:.3f}; median iteration {1000 * median:.2f} ms"
    )
    if verbose:
        count = len(graph.operations)
        of = graph.tasks["operation"]
        spent, expected = (np.bincount(of, weights=x, minlength=count) for x in (best, predicted))
        for k in np.argsort(-spent):
            if spent[k] > 0:
                share = f"{1000 * expected[k]:9.3f}{1000 * spent[k]:9.3f}{expected[k] / spent[k]:7.2f}"
                print(f"  {share}  {graph.operations[k].text[:80]}")
    return {
        "case": case.name,
        "predicted": float(predicted.sum()),
        "measured": float(best.sum()),
        "median": median,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--known", action="store_true", help="score nothing, use the model that is kept")
    parser.add_argument("--case", action="append", help="XYZ,BASIS,SYMMETRY; may be given several times")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()

    scores: list[Score] = []
    if args.known:
        model, note = load_or_calibrate()
        print(f"note: {note}" if note else "the model that is kept")
    else:
        model, scores = calibrate_and_score()
        show_scores(scores)
    cases = [Case.parse(text, model) for text in args.case or CASES]
    with thread_limits(1):
        for _ in range(args.repeat):
            for case in cases:
                case.runs.append(case.machine.run().seconds)
    rows = [show_case(case, model, args.verbose) for case in cases]
    if args.json:
        document = {"kernels": [asdict(score) for score in scores], "iterations": rows}
        Path(args.json).write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
