"""How far off a cost model is, on shapes that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tilewise.cost.calibrate import FAR, NEAR, fit, random_shapes, thorough_experiments
from tilewise.cost.model import PARTS, CostModel
from tilewise.cost.sample import Experiment, Molecule, Sample, measure, products, program, samples
from tilewise.inspect.operations.gemm import KERNELS

ROUNDS = 12
HELD_OUT = (
    Molecule((3, 1, 1, 2), (11, 4, 7, 9)),
    Molecule((6,), (54,)),
    Molecule((6, 3), (33, 24)),
    Molecule((9,), (76,)),
)


@dataclass(frozen=True)
class Score:
    """Relative errors of the predicted times of the tasks of a kind; 0.1 is 10 %."""

    kind: str
    samples: int
    median: float
    ninetieth: float
    """The error that nine of ten tasks stay below."""


def scores(model: CostModel, sample: Sample) -> list[Score]:
    """Of each kernel, of all products, and of the other kinds of tasks."""
    predicted = sum(sample.features[part] @ model.coefficients(part) for part in PARTS)
    error = np.abs(predicted / sample.seconds - 1.0)
    groups = {kernel: sample.kinds == kernel for kernel in KERNELS}
    groups["all products"] = np.isin(sample.kinds, KERNELS)
    groups |= {kind: sample.kinds == kind for kind in ("sort", "update", "dot")}
    return [_score(kind, error[mine]) for kind, mine in groups.items() if mine.any()]


def _score(kind: str, error: np.ndarray) -> Score:
    return Score(kind, len(error), float(np.median(error)), float(np.percentile(error, 90)))


def thorough_and_held_out() -> tuple[list[Experiment], list[Experiment]]:
    """What a thorough fit is made of, and other shapes and molecules to score it on."""
    held_out = [products(random_shapes(200, 11), NEAR, 1), products(random_shapes(100, 12), FAR, 1)]
    return thorough_experiments(), [*held_out, *map(program, HELD_OUT)]


def fit_and_score(fitted: list[Experiment], held_out: list[Experiment]) -> tuple[CostModel, list[Score]]:
    """Of experiments that have run."""
    found = samples([*fitted, *held_out])
    model = fit(Sample.joined(found[: len(fitted)]))
    return model, scores(model, Sample.joined(found[len(fitted) :]))


def calibrate_and_score(
    rounds: int = ROUNDS, progress: Callable[[str], None] | None = None
) -> tuple[CostModel, list[Score]]:
    """A thorough fit, of some ten seconds, and its errors on other shapes and other molecules.

    Both are measured in the same rounds; `progress` is called with a word on what is being done.
    """
    fitted, held_out = thorough_and_held_out()
    measure([*fitted, *held_out], rounds, progress)
    return fit_and_score(fitted, held_out)
