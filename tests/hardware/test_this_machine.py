"""What is found out about the cores of this machine."""

import numpy as np
import pytest

from tilewise.hardware.model import MachineModel
from tilewise.hardware.this_machine import drift_and_stretch

RUN, RUNS, STEPS = 5e-3, 32, 50  # seconds of a run, runs of a sequence, moments of a run


def sequence(rng, cores, drift, stretch):
    """Seconds of runs on cores whose speeds last for a stretch, which begins at any time."""
    moments, kept = RUNS * STEPS, round(stretch / RUN * STEPS)
    speeds = np.exp(drift * rng.standard_normal((cores, moments // kept + 2)))
    starts = rng.integers(0, kept, cores)
    lines = [np.repeat(own, kept)[start : start + moments] for own, start in zip(speeds, starts, strict=True)]
    return RUN / np.reshape(lines, (cores, RUNS, STEPS)).mean(axis=2)


@pytest.mark.parametrize(("drift", "stretch"), [(0.1, 0.02), (0.15, 0.05), (0.05, 0.3)])
@pytest.mark.parametrize("cores", [2, 5])
def test_drift_and_stretch_are_found_again(drift, stretch, cores):
    rng = np.random.default_rng(7)
    found = drift_and_stretch([sequence(rng, cores, drift, stretch) for _ in range(100)])
    assert found == pytest.approx((drift, stretch), rel=0.25)


def test_one_core_does_not_drift_against_another():
    assert drift_and_stretch([np.full((1, RUNS), RUN)]) == (0.0, MachineModel.stretch)
