"""The native simulator against its twin in Python."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_spaces import SEEDS
from schedule_cases import bare_graphs
from simulated_cases import COSTLY, NAMES, WORKERS, runs
from tilewise import policies
from tilewise.core import core
from tilewise.execute import simulated
from tilewise.execute.simulate_twin import simulate as twin
from tilewise.inspect.records import TRACE


class Both:
    """Asks the native core and its twin, and compares what they say."""

    asked = 0

    def simulate(self, tasks, schedule, machine, trace, table):
        self.asked += 1
        other_trace, other_table = np.zeros_like(trace), np.zeros_like(table)
        ends = core.simulate(tasks, schedule, machine, trace, table)
        assert twin(tasks, schedule, machine, other_trace, other_table) == pytest.approx(ends, rel=1e-9)
        np.testing.assert_allclose(table, other_table, rtol=1e-9, atol=1e-9)
        one, other = trace.view(TRACE), other_trace.view(TRACE)
        assert one["worker"].tolist() == other["worker"].tolist()
        for key in ("ready", "start", "end"):  # the last bit of a time may round to another nanosecond
            np.testing.assert_allclose(one[key], other[key], rtol=1e-12, atol=1)
        return ends


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(data=st.data())
def test_the_simulator_does_what_its_twin_does(name, data):
    *_, run = data.draw(runs(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "core", both := Both())
        run(data.draw(st.integers(0, 100)))
    assert both.asked == 1


@settings(max_examples=15)
@given(bare_graphs(), WORKERS, SEEDS, st.sampled_from([0.01, 0.3]), st.booleans())
def test_cores_whose_speed_drifts_are_those_of_the_twin(graph, workers, seed, stretch, links):
    rng = np.random.default_rng(seed)
    model = replace(COSTLY, drift=0.4, stretch=stretch, links=links)
    seconds, schedule = rng.random(len(graph)), policies["dataflow"](graph, np.ones(len(graph)), workers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "core", Both())
        simulated.simulate(graph, schedule, seconds, model, bytes_got=1e3 * seconds, seed=seed)
