"""Figures 1, 2 and 5 to 8 and table II of Ozog et al.: the shapes of the paper, and what they rest on."""

from dataclasses import replace

import numpy as np
import pytest

from tilewise import policies
from tilewise.errors import InputError
from tilewise.hardware.machines import find_machine
from tilewise.studies import ozog_balance, ozog_profile
from tilewise.studies.ozog_balance import (
    HYBRID,
    INSPECTED,
    ORIGINAL,
    OTHERS,
    benzene_runs,
    inspector_gain,
    load_balance,
)
from tilewise.studies.ozog_buckets import BUCKETS, SORTED, contraction_times, gain, groups_gain
from tilewise.studies.ozog_counter import (
    CORES,
    FIGURE_5,
    POINT,
    counter_share,
    fitted_machine,
    flood_seconds,
)
from tilewise.studies.ozog_limits import LARGE, fastest, original_seconds
from tilewise.studies.ozog_runs import benzene, water, workers_on
from tilewise.studies.registry import studies
from tilewise.studies.routines import SimulatedIteration, fitted, routine_graph

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
    return {molecules: [counter_share(FUSION, molecules, n) for n in CORES[molecules]] for molecules in CORES}


@pytest.mark.parametrize(("molecules", "low", "high"), [(10, 0.5, 0.7), (14, 0.2, 0.4)])
def test_the_share_of_the_counter_grows_with_the_cores(shares, molecules, low, high):
    assert (np.diff(shares[molecules]) > 0).all()
    assert low < shares[molecules][-1] < high


def test_the_machine_file_has_the_fitted_times():
    assert fitted_machine(FUSION).counter_resend == pytest.approx(FUSION.counter_resend, rel=0.02)
    assert counter_share(FUSION, *POINT) == pytest.approx(FIGURE_5[POINT], abs=0.01)
    gains = [inspector_gain(benzene(), cores) for cores in ozog_balance.CORES]
    assert np.mean(gains) == pytest.approx(np.mean(ozog_balance.FASTER), abs=0.5)


def test_with_as_few_buffers_as_the_gap_asks_for_benzene_comes_to_a_standstill():
    few = fitted_machine(replace(FUSION, counter_buffers=150))
    stuck, running = (
        SimulatedIteration(benzene().graph, machine).run(policies["nxtval"], 175).makespan
        for machine in (few, FUSION)
    )
    assert stuck > 5 * running


def test_the_paper_s_37_percent_lie_between_ours_of_14_and_of_10_molecules():
    shares = [ozog_profile.profile(w, ozog_profile.original_run(w)) for w in (water(14), water(10))]
    assert shares[0]["NXTVAL"] < ozog_profile.IN_NXTVAL < shares[1]["NXTVAL"]
    for kinds in shares:
        *parts, in_calls, closing = kinds.values()
        assert sum(parts) == pytest.approx(100.0)
        assert in_calls + closing == pytest.approx(kinds["NXTVAL"])


def test_routines_of_a_profile_take_all_the_time_of_its_tasks():
    iteration = water(10)
    run = ozog_profile.original_run(iteration)
    shares = list(ozog_profile.routine_shares(iteration, run).values())
    in_tasks = run.share(run.busy) + run.share(run.communication)
    assert sum(shares) == pytest.approx(100 * in_tasks, rel=0.002)
    assert shares == sorted(shares, reverse=True)


def test_10_water_molecules_are_fastest_near_the_paper_s_scale_limit_and_14_beyond_it():
    limits = [fastest(original_seconds(water(n), LARGE)) for n in (10, 14)]
    assert limits[0] == pytest.approx(750, rel=0.1) and limits[1] > 1200


def test_the_fewest_cores_count_among_those_that_are_nearly_fastest():
    assert fastest({8: 2.0, 16: 1.01, 32: 1.0, 64: 1.5}) == 16


def test_a_fit_finds_its_goal():
    assert fitted(0.5, 1e-6, 1e3, lambda x: x / (1 + x), steps=40) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("cores", [120, 240, 400])
def test_the_inspector_gains_on_benzene_and_hybrid_is_never_behind(cores, seed):
    runs = benzene_runs(benzene(), cores, seed)
    assert 0.2 <= 1 - runs[INSPECTED].makespan / runs[ORIGINAL].makespan <= 0.4
    assert runs[HYBRID].makespan <= runs[INSPECTED].makespan
    assert runs[HYBRID].counter_calls <= runs[INSPECTED].counter_calls < runs[ORIGINAL].counter_calls / 10


@pytest.mark.parametrize("cores", [120, 400])
def test_the_gain_of_the_inspector_hangs_on_the_service_of_the_counter(cores):
    services = (1e-6, 5e-6, FUSION.counter_service, 4e-5)
    gains = [inspector_gain(benzene().on(counter_service=service), cores) for service in services]
    assert gains == sorted(gains)
    assert gains[0] < 3 and gains[1] < 15 and gains[3] > 40


@pytest.mark.parametrize("contraction", OTHERS)
def test_refined_lists_gain_more_than_the_paper_s_8_percent_in_other_contractions_too(contraction):
    original, inspected, _, refined = load_balance(0, contraction).values()
    assert refined.makespan < 0.85 * inspected.makespan <= original.makespan


def test_refined_lists_are_faster_than_first_ones_and_than_counters():
    runs = load_balance(0)
    times = [run.makespan for run in runs.values()]
    assert times == sorted(times, reverse=True)
    original, inspected, first, refined = runs.values()
    assert original.share(original.counter) > 0.2 > inspected.share(inspected.counter)
    assert first.counter_calls == refined.counter_calls == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_buckets_gain_under_the_noise_that_makes_hybrid_lose(seed):
    times = contraction_times("t2_7", 752, noise=0.1, seed=seed)
    assert times[HYBRID] > times[ORIGINAL]
    assert 0.05 <= gain(times) <= 0.2 and gain(times) <= gain(times, SORTED)
    assert times[BUCKETS] < times[INSPECTED]
    assert times[INSPECTED] == pytest.approx(times[ORIGINAL], rel=0.05)


@pytest.mark.parametrize("name", ["t2_7", "t2_7_3"])
@pytest.mark.parametrize("cores", [120, 400, 752])
def test_one_counter_over_a_sorted_list_gains_as_much_as_buckets(name, cores):
    times = contraction_times(name, cores)
    assert gain(times, SORTED) >= gain(times) > 0


def test_groups_pay_where_a_counter_is_slow_or_workers_are_many():
    iteration = water(10, ("t2_7",))
    slow = iteration.on(counter_service=3e-3, counter_resend=3e-3)
    assert groups_gain(iteration, 752) < 0 < groups_gain(iteration, 2000)
    assert groups_gain(slow, 120) < 0 < groups_gain(slow, 752)


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_after_a_trial_hybrid_leaves_the_contractions_that_lose_to_the_counter(noise):
    iteration = water(10, ("t2_7",)).on(noise=noise)
    workers = workers_on(FUSION, 752)
    hybrid, counter = (iteration.run(policies[name], workers) for name in ("hybrid", "ie-nxtval"))
    assert (hybrid.makespan, hybrid.counter_calls) == (counter.makespan, counter.counter_calls)


def test_without_noise_static_lists_do_not_lose():
    times = contraction_times("t2_7", 752, noise=0.0)
    assert times[HYBRID] < times[ORIGINAL]


def test_hybrid_is_not_behind_on_300_nodes():
    (table,) = studies["ozog-table2"]().tables
    assert all(pair.ours <= 1.0 for pair in table.pairs.values())


def test_a_machine_without_rates_is_refused():
    iteration = SimulatedIteration(routine_graph("water-1", 36), replace(FUSION, rates=None))
    with pytest.raises(InputError, match=r"needs the table \[rates\]"):
        iteration.run(policies["lpt"], 1)
