"""Figures 2 and 5 to 8 and table II of Ozog et al.: the shapes of the paper."""

from dataclasses import replace

import numpy as np
import pytest

from tilewise import policies
from tilewise.errors import InputError
from tilewise.execute.machines import find_machine
from tilewise.studies.hybrid import long_running
from tilewise.studies.ozog_balance import HYBRID, INSPECTED, ORIGINAL, benzene, benzene_runs, load_balance
from tilewise.studies.ozog_buckets import BUCKETS, contraction_times, gain
from tilewise.studies.ozog_counter import CORES, PAPER, POINT, counter_share, fitted_machine, flood_seconds
from tilewise.studies.registry import studies
from tilewise.studies.routines import Iteration, fitted, routine_graph

FUSION = find_machine("fusion")


def test_a_flooded_counter_takes_longer_the_more_call_and_has_a_gap():
    callers = (10, 50, 150, 300, 400, 600)
    seconds = [flood_seconds(FUSION, n) for n in callers]
    assert (np.diff(seconds) > 0).all()
    each = np.array(seconds) / callers
    assert each[:4] == pytest.approx(FUSION.counter_service, rel=0.2)
    assert each[4:] == pytest.approx(FUSION.counter_resend, rel=0.05)


@pytest.fixture(scope="module")
def shares():
    return {molecule: [counter_share(FUSION, molecule, n) for n in CORES[molecule]] for molecule in CORES}


@pytest.mark.parametrize(("molecule", "low", "high"), [("water-10", 0.5, 0.7), ("water-14", 0.2, 0.4)])
def test_the_share_of_the_counter_grows_with_the_cores(shares, molecule, low, high):
    assert (np.diff(shares[molecule]) > 0).all()
    assert low < shares[molecule][-1] < high


def test_the_machine_file_has_the_fitted_time():
    assert fitted_machine(FUSION).counter_resend == pytest.approx(FUSION.counter_resend, rel=0.02)
    assert counter_share(FUSION, *POINT) == pytest.approx(PAPER[POINT], abs=0.01)


def test_a_fit_finds_its_goal():
    assert fitted(0.5, 1e-6, 1e3, lambda x: x / (1 + x), steps=40) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("cores", [120, 240, 400])
def test_the_inspector_gains_on_benzene_and_hybrid_is_never_behind(cores, seed):
    runs = benzene_runs(benzene(), cores, seed)
    assert 0.2 <= 1 - runs[INSPECTED].makespan / runs[ORIGINAL].makespan <= 0.4
    assert runs[HYBRID].makespan <= runs[INSPECTED].makespan
    assert runs[HYBRID].counter_calls <= runs[INSPECTED].counter_calls < runs[ORIGINAL].counter_calls / 10


def test_refined_lists_are_faster_than_first_ones_and_than_counters():
    runs = load_balance(0)
    times = [run.makespan for run in runs.values()]
    assert times == sorted(times, reverse=True)
    original, inspected, first, refined = runs.values()
    assert original.share(original.counter) > 0.2 > inspected.share(inspected.counter)
    assert first.counter_calls == refined.counter_calls == 0


def test_long_running_routines_hold_most_of_the_time():
    iteration = Iteration(routine_graph("water-2", 36), FUSION)
    tasks = np.flatnonzero(iteration.graph.levels == 0)
    long = long_running(iteration.graph, tasks, iteration.seconds)
    operation, seconds = iteration.graph.tasks["operation"][tasks], iteration.seconds[tasks]
    assert 0.9 <= seconds[long].sum() / seconds.sum() < 1.0
    assert not set(operation[long]) & set(operation[~long])


@pytest.mark.parametrize("seed", [0, 1])
def test_buckets_gain_under_the_noise_that_makes_hybrid_lose(seed):
    times = contraction_times("t2_7", 752, noise=0.1, seed=seed)
    assert times[HYBRID] > times[ORIGINAL]
    assert 0.05 <= gain(times) <= 0.2
    assert times[BUCKETS] < times[INSPECTED]
    assert times[INSPECTED] == pytest.approx(times[ORIGINAL], rel=0.05)


def test_without_noise_static_lists_do_not_lose():
    times = contraction_times("t2_7", 752, noise=0.0)
    assert times[HYBRID] < times[ORIGINAL]


def test_hybrid_is_not_behind_on_300_nodes():
    (table,) = studies["ozog-table2"]().tables
    assert all(pair.ours <= 1.0 for pair in table.pairs.values())


def test_a_machine_without_rates_is_refused():
    iteration = Iteration(routine_graph("water-1", 36), replace(FUSION, rates=None))
    with pytest.raises(InputError, match=r"needs the table \[rates\]"):
        iteration.run(policies["lpt"], 1)
