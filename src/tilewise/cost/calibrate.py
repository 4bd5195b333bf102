"""Fits the cost model to short measurements of the native kernels on one core."""

from __future__ import annotations

import numpy as np
import scipy  # which loads scipy.optimize when it is used: that takes a quarter of a second

from tilewise.cost.model import PARTS, CostModel
from tilewise.cost.sample import Experiment, Molecule, Sample, measure, products, program, samples, triples

NEAR, FAR = 12 << 20, 120 << 20
"""Bytes of buffers that a last-level cache holds, and of such that it does not."""

LARGEST = (600, 4000, 3000)  # m, n, k of the products in a sample
FLOPS = 1e4, 4e7  # multiply-adds of one: no matter of microseconds, and no matter of seconds
OPERAND = 1.5e6  # elements of a matrix at most
CLOSE = 0.03
"""A relative error below which a measurement is met well enough."""

IMPORTANCE = 0.5
"""A task that takes four times as long weighs twice as much."""

QUICK = (
    Molecule((2, 1, 1, 2), (8, 6, 5, 7)),
    Molecule((8,), (40,)),
    Molecule((3, 3), (12, 10), 4),
    Molecule((5, 1, 2, 3), (20, 9, 12, 15)),
)
THOROUGH = (
    *QUICK,
    Molecule((4,), (90,)),
    Molecule((10,), (60,)),
    Molecule((5, 4), (40, 30)),
    Molecule((4, 1, 0, 0, 0, 3, 3, 2), (16, 9, 6, 7, 5, 18, 14, 11)),
    Molecule((2, 2, 1, 2, 3, 1, 2, 2), (15, 12, 8, 11, 14, 9, 13, 10)),
)
TRIPLES = (Molecule((4,), (28,)), Molecule((3, 1, 1, 2), (14, 6, 8, 10)))


def calibrate(rounds: int = 4) -> CostModel:
    """A quick fit, of about a second."""
    experiments = [products(random_shapes(60, 1), NEAR), *map(program, QUICK), *map(triples, TRIPLES)]
    measure(experiments, rounds)
    return fit(Sample.joined(samples(experiments)))


def thorough_experiments() -> list[Experiment]:
    """What a fit of some ten seconds is made of."""
    near, far = products(random_shapes(300, 1), NEAR), products(random_shapes(200, 2), FAR)
    return [near, far, *map(program, THOROUGH), *map(triples, TRIPLES)]


def random_shapes(count: int, seed: int) -> np.ndarray:
    """(m, n, k, transpose_a, transpose_b) from narrow to square: each extent evenly in its logarithm."""
    rng = np.random.default_rng(seed)
    extents = np.zeros((0, 3), np.int64)
    while len(extents) < count:
        new = np.exp(rng.random((count, 3)) * np.log(LARGEST)).astype(np.int64)
        m, n, k = new.T
        wanted = (m * n * k > FLOPS[0]) & (m * n * k < FLOPS[1])
        wanted &= np.maximum(np.maximum(m * n, m * k), k * n) < OPERAND
        extents = np.concatenate([extents, new[wanted]])
    flips = rng.choice([0, 1, 2], count, p=[0.6, 0.25, 0.15])
    return np.column_stack([extents[:count], flips == 1, flips == 2])


def fit(sample: Sample, rounds: int = 8) -> CostModel:
    """Non-negative coefficients with the least sum of absolute relative errors, by reweighted least squares.

    Absolute errors and not their squares: what the machine does besides spoils a few measurements thoroughly.
    Longer tasks weigh a little more, for an iteration's time is theirs.
    """
    features = np.concatenate([sample.features[part] for part in PARTS], axis=1)
    importance = (sample.seconds / np.median(sample.seconds)) ** IMPORTANCE
    weight, solution = importance, np.zeros(features.shape[1])
    for _ in range(rounds):
        scaled = features * (weight / sample.seconds)[:, None]
        norms = np.maximum(scaled.max(axis=0), 1e-300)
        solution = scipy.optimize.nnls(scaled / norms, weight, maxiter=100 * len(norms))[0] / norms
        error = np.abs(features @ solution / sample.seconds - 1.0)
        weight = importance / np.sqrt(np.maximum(error, CLOSE))
    values = iter(solution.tolist())
    return CostModel(**{part: {name: next(values) for name in names} for part, names in PARTS.items()})
