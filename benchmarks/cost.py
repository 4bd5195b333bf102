"""How good the cost model is: its errors on shapes that it was not fitted to, and on whole iterations.

python benchmarks/cost.py                   # fits a model as `tilewise tune` does; nothing is kept
python benchmarks/cost.py --known           # the model that plans use now
python benchmarks/cost.py --verbose         # each operation of the iterations
python benchmarks/cost.py --case examples/geometries/water.xyz,cc-pvtz,auto

Iterations run on one worker, on random numbers, in turn with the measurements that the model is fitted to:
the speed of a shared machine changes from minute to minute. Measured is the mean of the iterations without
the tenth at either end.
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
from tilewise.cost.sample import measure, typical
from tilewise.cost.score import ROUNDS, Score, fit_and_score, thorough_and_held_out
from tilewise.execute import Runner
from tilewise.methods.exploration import random_tensors
from tilewise.methods.plan import plan

GEOMETRIES = Path(__file__).parents[1] / "examples" / "geometries"
ITERATIONS, EXPERIMENTS = 2, 3
"""Of a case and of the model, in turn."""
CASES = (f"{GEOMETRIES / 'benzene.xyz'},cc-pvdz,auto", f"{GEOMETRIES / 'water2.xyz'},aug-cc-pvdz,C1")


@dataclass
class Case:
    """An iteration to be run, and the seconds of each task in each run."""

    name: str
    machine: Runner
    runs: list[np.ndarray]

    @classmethod
    def parse(cls, text: str, model: CostModel) -> Case:
        xyz, basis, symmetry = text.split(",")
        molecule = build_molecule(Path(xyz), basis, 0)
        made = plan(molecule, frozen="auto", symmetry=symmetry, threads=1, policy="dataflow")
        schedule = made.policy(made.graph, estimate(made.graph, model), made.team)
        machine = Runner(made.graph, schedule, random_tensors(made.graph))
        return cls(f"{Path(xyz).stem} {basis} {made.outline.group.name}", machine, [])

    def run(self) -> None:
        """Some iterations; the first finds in the cache what ran before and is not counted."""
        with thread_limits(1):
            runs = [self.machine.run().seconds for _ in range(1 + ITERATIONS)]
        self.runs += runs[1:]


def show_scores(scores: list[Score]) -> None:
    print(f"{'kernel':<14}{'samples':>8}{'median':>9}{'90 %':>9}   relative errors of predicted times")
    for score in scores:
        print(f"{score.kind:<14}{score.samples:8d}{100 * score.median:8.1f}%{100 * score.ninetieth:8.1f}%")


def show_case(case: Case, model: CostModel, verbose: bool) -> dict[str, float | str]:
    graph = case.machine.graph
    predicted, best = estimate(graph, model), float(np.min(case.runs, axis=0).sum())
    whole = np.sum(case.runs, axis=1)
    measured = float(typical(whole))
    print(
        f"{case.name:<24}{1000 * predicted.sum():9.2f} ms predicted,{1000 * measured:9.2f} ms measured "
        f"({1000 * whole.min():.1f} to {1000 * whole.max():.1f}), ratio {predicted.sum() / measured:.3f}; "
        f"best times of all tasks {1000 * best:.2f} ms"
    )
    if verbose:
        count = len(graph.operations)
        of = graph.tasks["operation"]
        spent, expected = (
            np.bincount(of, weights=x, minlength=count) for x in (typical(case.runs), predicted)
        )
        for k in np.argsort(-spent):
            if spent[k] > 0:
                share = f"{1000 * expected[k]:9.3f}{1000 * spent[k]:9.3f}{expected[k] / spent[k]:7.2f}"
                print(f"  {share}  {graph.operations[k].text[:80]}")
    return {
        "case": case.name,
        "predicted": float(predicted.sum()),
        "measured": measured,
        "best": best,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--known", action="store_true", help="score nothing, use the model that is kept")
    parser.add_argument("--case", action="append", help="XYZ,BASIS,SYMMETRY; may be given several times")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--json")
    args = parser.parse_args()

    scores: list[Score] = []
    model, note = load_or_calibrate()
    cases = [Case.parse(text, model) for text in args.case or CASES]

    fitted, held_out = ([], []) if args.known else thorough_and_held_out()
    others = [*fitted, *held_out]
    for _ in range(args.rounds):
        for first in range(0, max(1, len(others)), EXPERIMENTS):
            measure(others[first : first + EXPERIMENTS], 1)
            for case in cases:
                case.run()
    if args.known:
        print(f"note: {note}" if note else "the model that is kept")
    else:
        model, scores = fit_and_score(fitted, held_out)
        show_scores(scores)
    rows = [show_case(case, model, args.verbose) for case in cases]
    if args.json:
        document = {"kernels": [asdict(score) for score in scores], "iterations": rows}
        Path(args.json).write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
