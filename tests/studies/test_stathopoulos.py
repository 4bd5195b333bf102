"""Tables 1 and 2 of Stathopoulos and Ynnerman: times, imbalances, steps, and loads that change."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewise import policies
from tilewise.hardware.machines import Load, MachineModel
from tilewise.inspect.loop import LoopGraph
from tilewise.schedule.loops import Chunk, Factoring
from tilewise.studies import Pair, studies
from tilewise.studies.columns import (
    factoring_steps,
    ideal_seconds,
    least_columns,
    run_loop,
    triangle,
    with_jobs,
)
from tilewise.studies.stathopoulos_rules import CHANGES, Sweeps, over_deltas, over_moments
from tilewise.studies.stathopoulos_runs import (
    ALLOWED,
    DELTAS_2,
    DYNAMIC,
    FACTORING_2,
    FACTORING_4,
    LETTER,
    LOADS,
    OURS,
    TSS,
    WORK,
    Trial,
    always,
    fitted_slowness,
    loaded,
)

JOBS = st.lists(st.integers(1, 3), min_size=4, max_size=4).map(lambda jobs: "-".join(map(str, jobs)))
STUDIES = ("pvm-table1", "pvm-table2")
COMES_AND_GOES = [text for text in CHANGES if " " in text][:3]
LATE = "1-2-1-1, after 600 s 1-1-2-1"


@pytest.fixture(scope="module", params=STUDIES)
def found(request):
    return studies[request.param]()


@pytest.fixture(scope="module")
def deltas() -> Sweeps:
    return over_deltas()


def pairs(found, number: int, rule: str) -> dict[str, Pair]:
    return {label: pair for (label, head), pair in found.tables[number].pairs.items() if head == rule}


# Beside the paper


def test_every_time_by_our_rule_is_within_five_per_cent(found):
    times = pairs(found, 0, OURS)
    assert len(times) in (12, 16)
    for label, pair in times.items():
        assert abs(pair.deviation) < 0.05, label


def test_by_the_letter_one_time_is_further_off(found):
    far = {
        label: pair.deviation for label, pair in pairs(found, 0, LETTER).items() if abs(pair.deviation) > 0.05
    }
    assert set(far) <= {"TSS, delta 90 s"} and all(0.1 < value < 0.11 for value in far.values())
    assert len(far) == (1 if found.tables[0].rows[0].label.startswith("TSS, delta") else 0)


def test_what_each_rule_reaches_is_counted_from_the_tables(found):
    for row in found.tables[2].rows:
        rule = LETTER if row.label.endswith(LETTER) else OURS
        name = row.label.removesuffix(f" {rule}")
        off = [abs(p.deviation) for label, p in pairs(found, 0, rule).items() if label.startswith(name)]
        assert row.values[0] == f"{sum(x < 0.05 for x in off)} of {len(off)}"
        assert abs(float(row.values[1].removesuffix(" %"))) == pytest.approx(100 * max(off), abs=0.051)


def test_imbalances_of_interleaved_runs_are_within_six_per_cent():
    imbalances = pairs(studies["pvm-table2"](), 1, LETTER)
    for load in LOADS:
        assert abs(imbalances[f"interleaved, {load}"].deviation) < 0.06
    assert 0.005 < fitted_slowness() < 0.01  # fitted to the first of these


@pytest.mark.parametrize("rule", [LETTER, OURS])
def test_factoring_ends_within_delta_in_every_run_of_the_paper(found, rule):
    allowed = {f"delta {delta:g} s": delta for delta in ALLOWED}
    checked = 0
    for label, pair in pairs(found, 1, rule).items():
        name, _, case = label.partition(", ")
        if "factoring" in name:
            assert pair.ours <= allowed.get(case, DELTAS_2[name]), label
            checked += 1
    assert checked == 8


def test_steps_of_our_rule_are_those_of_the_formulas_to_six_per_cent(found):
    for label, pair in pairs(found, 3, OURS).items():
        assert abs(pair.deviation) < 0.06, label


def test_steps_by_the_letter_are_those_of_the_formulas_where_these_fit(found):
    """But for f = 4, and for those who ask before all probes are in: up to five steps of 30 columns."""
    for label, pair in pairs(found, 3, LETTER).items():
        if label.startswith(TSS):
            assert -0.05 * pair.paper < pair.ours - pair.paper <= 5, label
        elif label.startswith(FACTORING_2):
            assert abs(pair.deviation) < 0.05, label
        else:
            assert -0.27 < pair.deviation < -0.1, label


def test_numbers_that_the_paper_does_not_print_are_marked_as_derived(found):
    for table in found.tables:
        for (label, _), pair in table.pairs.items():
            steps = "Scheduling steps" in table.title or "Equation 5" in table.title
            assert pair.derived == steps, (table.title, label)


def test_equal_iterations_take_the_steps_of_equation_five_as_printed_to_six_per_cent():
    table = studies["pvm-table1"]().tables[4]
    assert "Equation 5 as it is printed" in table.title and len(table.pairs) == 8
    for label, pair in table.pairs.items():
        assert abs(pair.deviation) < 0.06, label


def test_smaller_deltas_are_not_slower():
    first = studies["pvm-table1"]()
    for rule in (LETTER, OURS):
        times = pairs(first, 0, rule)
        for name in DYNAMIC:
            small, larger = (times[f"{name}, delta {delta:g} s"].ours for delta in (0.5, 5))
            assert small < larger + 1.0


# One rule against the other


def test_neither_rule_of_tss_is_better_over_many_deltas(deltas):
    letter, ours = (deltas[TSS, rule].above_ideal.mean() for rule in (LETTER, OURS))
    assert abs(letter - ours) < 0.2


def test_tss_exceeds_delta_in_most_runs_by_either_rule(deltas):
    for rule in (LETTER, OURS):
        assert deltas[TSS, rule].within_delta < 0.2 * len(deltas[TSS, rule].trials)


def test_factoring_by_the_letter_leaves_less_imbalance_than_by_our_rule(deltas):
    for name in (FACTORING_2, FACTORING_4):
        letter, ours = (deltas[name, rule].imbalance_over_delta for rule in (LETTER, OURS))
        assert np.median(letter) < 0.5 * np.median(ours)
        assert max(letter.max(), ours.max()) <= 1.0


@pytest.mark.parametrize(
    ("load", "f"), [("3-1-1-1", FACTORING_2), ("6-1-1-1", FACTORING_2), ("6-1-1-1", FACTORING_4)]
)
def test_our_factoring_knows_a_slow_processor_where_the_letter_does_not(load, f):
    letter, ours = (Trial(f, DELTAS_2[f], always(load), literal) for literal in (True, False))
    assert ours.above_ideal < 0.3 and ours.run.imbalance <= DELTAS_2[f]
    assert letter.above_ideal > 15


def test_a_job_that_moves_costs_little_with_small_first_chunks():
    moments = over_moments()
    for rule in (LETTER, OURS):
        assert moments[FACTORING_4, rule].above_ideal.max() < 0.2
        assert moments[FACTORING_2, rule].above_ideal.max() > 2


@pytest.mark.parametrize("name", [FACTORING_2, FACTORING_4])
@pytest.mark.parametrize("case", COMES_AND_GOES)
def test_factoring_follows_loads_that_change(name, case):
    machine, delta = loaded(*CHANGES[case]), DELTAS_2[name]
    run = Trial(name, delta, machine).run
    assert run.imbalance <= 2 * delta
    assert run.seconds == pytest.approx(ideal_seconds(WORK, machine), rel=0.01)


@settings(max_examples=40, deadline=None)
@given(before=JOBS, after=JOBS, change=st.floats(0.0, 6000.0))
def test_small_first_chunks_meet_any_change_of_loads(before, after, change):
    machine = (
        loaded((0.0, change, before), (change, math.inf, after)) if change else loaded((0.0, math.inf, after))
    )
    run = Trial(FACTORING_4, 5.0, machine).run
    assert run.imbalance <= 2 * 5.0
    assert run.seconds == pytest.approx(ideal_seconds(WORK, machine), rel=0.01)


def test_large_first_chunks_do_not():
    run = Trial(FACTORING_2, 0.5, loaded(*CHANGES[LATE])).run
    assert run.imbalance > 100


# What was fitted or chosen


def test_both_studies_list_the_same_constants_and_say_that_they_are_fitted():
    first, second = (studies[name].constants() for name in STUDIES)
    assert first == second and len(first) == 7
    assert {constant.name for constant in first} >= {
        "UNLOADED",
        "fitted_slowness",
        "counter.service",
    }
    assert all(studies[name].marks == ("simulated", "fitted") for name in STUDIES)


def test_neither_network_nor_barrier_changes_a_run():
    machine = always("2-2-1-1")
    other = replace(machine, barrier=3.0, latency=1.0, bandwidth=1.0, counter_shared=2.0)
    for name, delta in DELTAS_2.items():
        assert Trial(name, delta, machine).run == Trial(name, delta, other).run


# The loop


def test_columns_of_a_triangle_share_its_work_by_their_elements():
    seconds = triangle(100, 50.0)
    assert seconds.sum() == pytest.approx(50.0) and seconds[0] == pytest.approx(100 * seconds[-1])


def test_equation_three_is_the_positive_root():
    c = least_columns(30.0, 1500.0)
    assert c > 0 and c**2 + c - 2 * 30.0 * 1500.0 == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("size", "f", "workers"), [(2000, 2.0, 3), (5000, 3.0, 4), (4000, 4.0, 8)])
def test_equation_five_counts_the_steps_of_equal_iterations(size, f, workers):
    machine = MachineModel("free", workers, 1)
    steps = run_loop(np.ones(size), Factoring(delta=5.0, f=f, probe=1), machine).steps
    assert steps == pytest.approx(factoring_steps(size, 5.0, f, workers), rel=0.1)


def test_a_loop_of_equal_chunks_takes_as_many_steps_as_there_are_chunks():
    machine = MachineModel("free", 4, 1)
    columns, rate = 3000, 1000.0
    seconds = np.arange(columns, 0, -1.0) / rate
    for delta in (1.0, 10.0):
        steps = run_loop(seconds, Chunk(size=0, delta=delta, probe=10), machine).steps
        assert steps == pytest.approx(columns / least_columns(delta, rate), rel=0.05)


def test_the_ideal_time_counts_what_other_jobs_leave():
    machine = MachineModel("two", 2, 1, speed=(1.0, 2.0))
    assert ideal_seconds(6.0, machine) == pytest.approx(2.0)
    slowed = with_jobs(machine, (1, 4), 1.0, 3.0)  # speed 3, then 1.5, then 3 again
    assert slowed.loads == (Load(1, 4, 1.0, 3.0),)
    assert ideal_seconds(6.0, slowed) == pytest.approx(3.0)
    assert ideal_seconds(9.0, slowed) == pytest.approx(4.0)


def test_the_slowest_processor_holds_up_an_interleaved_loop():
    machine = with_jobs(MachineModel("four", 4, 1), (1, 1, 1, 3))
    run = run_loop(np.ones(400), policies["interleaved"], machine)
    assert run.seconds == pytest.approx(300.0) and run.imbalance == pytest.approx(200.0)


def test_a_loop_is_a_graph_without_dependencies():
    graph = LoopGraph(5, "column")
    assert len(graph) == 5 and graph.levels.tolist() == [0] * 5 and graph.n_needed.tolist() == [0] * 5
    assert graph.describe(3) == "operation 'column', block 3"
    assert not graph.flops.any() and not graph.traffic.bytes_got.any() and not len(graph.operands[0])
