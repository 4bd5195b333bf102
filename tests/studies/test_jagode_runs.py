"""Figures 5 and 8 of Jagode et al.: the shapes of the paper."""

import numpy as np
import pytest

from tilewise.hardware.machines import find_machine
from tilewise.studies import studies
from tilewise.studies.jagode_codes import (
    BARRIERS,
    DATAFLOW,
    FEWER,
    FREE,
    ONE,
    ORIGINAL,
    PAPER,
    PRODUCTS,
    codes,
    converted,
    with_copies,
    with_local_sums,
)
from tilewise.studies.jagode_routines import doubles
from tilewise.studies.jagode_runs import BEST, CORES, NODES, fastest

CASCADE = find_machine("cascade")


@pytest.fixture(scope="module")
def times():
    """Of an iteration of beta-carotene; the slow runs with one or two cores of each node are left out."""
    wanted = {ORIGINAL: CORES[2:], DATAFLOW: CORES[3:], PAPER: CORES[3:]}
    return {
        name: {
            (nodes, cores): codes()[name].run(CASCADE, nodes, cores).makespan
            for nodes in NODES
            for cores in some
        }
        for name, some in wanted.items()
    }


def test_the_best_number_of_cores_of_the_original_code_falls_with_the_nodes(times):
    assert {nodes: fastest(times[ORIGINAL], nodes) for nodes in NODES} == {
        nodes: cores for nodes, (cores, _) in BEST.items()
    }


@pytest.mark.parametrize("nodes", NODES)
def test_data_flow_uses_all_cores_and_is_much_faster_at_its_best(times, nodes):
    best = min(seconds for (n, _), seconds in times[ORIGINAL].items() if n == nodes)
    for name in (DATAFLOW, PAPER):
        assert fastest(times[name], nodes) == 16
        assert best / times[name][nodes, 16] >= 1.7
    assert times[DATAFLOW][nodes, 16] < times[PAPER][nodes, 16]


@pytest.fixture(scope="module")
def small():
    """All variants of a smaller molecule."""
    return codes("water-2", 10)


def test_work_is_the_same_and_sums_stay_in_their_node(small):
    (original,), (flow,) = small[ORIGINAL].steps, small[DATAFLOW].steps
    assert flow.graph.flops.sum() == original.graph.flops.sum()
    sums = (flow.graph.gemms == 0) & (flow.graph.tasks["reads"] < 0)
    assert sums.any() and not flow.graph.traffic.gets[sums].any()
    assert np.array_equal(with_local_sums(flow.graph).tasks, flow.graph.tasks)
    assert len(flow.places) == flow.graph.traffic.gets.sum()


@pytest.mark.parametrize("name", [BARRIERS, PAPER, FEWER])
def test_the_papers_version_does_the_same_work_in_levels_and_then_the_other_routines(small, name):
    *levels, others = small[name].steps
    whole = small[DATAFLOW].steps[0].graph
    products = sum(step.graph.flops.sum() for step in small[name].steps)
    assert products == pytest.approx(whole.flops.sum(), rel=1e-12)
    assert len(levels) == 4 and all(step.by_flow for step in levels) and not others.by_flow
    t2 = {routine.name for routine in doubles()}
    for step in levels:
        used = {step.graph.operations[k] for k in np.unique(step.graph.tasks["operation"])}
        assert len({routine.level for routine in used}) == 1
        assert all(routine.name in t2 and not routine.is_copy for routine in used)
        assert len(step.places) == step.graph.traffic.gets.sum()
    used = {others.graph.operations[k] for k in np.unique(others.graph.tasks["operation"])}
    assert all(routine.name not in t2 or routine.is_copy for routine in used)
    assert others.cores == (1 if name == FEWER else 0)


def test_29_routines_are_converted():
    graph = codes("water-2", 10)[ORIGINAL].steps[0].graph
    names = {graph.operations[k].name for k in np.unique(graph.tasks["operation"][converted(graph)])}
    assert len(names) == 29


def test_copies_are_work_in_proportion_to_what_is_moved(small):
    graph = small[DATAFLOW].steps[0].graph
    moved = graph.traffic.bytes_got + graph.traffic.bytes_put
    np.testing.assert_allclose(with_copies(graph).sorted_words - graph.sorted_words, moved / 8, atol=1e-6)


def test_the_products_of_a_chain_are_all_at_home_in_one_node(small):
    (flow,) = small[DATAFLOW].steps
    graph = flow.graph
    assert len(np.unique(graph.chains)) < len(graph)
    sources, targets = graph.sources, graph.targets
    adding = graph.tasks["writes"][sources] < 0  # parts of a chain put nothing
    assert adding.any() and (graph.chains[sources[adding]] == graph.chains[targets[adding]]).all()


def test_data_flow_hides_what_the_original_code_waits_for():
    variants = codes("water-4", 20)
    runs = {name: variants[name].run(CASCADE, 8, 4) for name in (ORIGINAL, DATAFLOW)}
    shares = {name: run.share("communication") for name, run in runs.items()}
    assert shares[DATAFLOW] < shares[ORIGINAL]
    assert runs[DATAFLOW].makespan < runs[ORIGINAL].makespan


def test_queues_at_no_cost_send_no_messages_and_those_per_node_do(small):
    runs = {name: small[name].run(CASCADE, 4, 2) for name in (ONE, FREE, DATAFLOW)}
    assert [runs[name].steps[0].activations > 0 for name in runs] == [False, False, True]
    assert runs[ONE].share("counter") == 0.0 < runs[DATAFLOW].share("counter")


def test_shares_of_a_run_in_steps_add_up(small):
    run = small[PAPER].run(CASCADE, 4, 2)
    total = sum(run.share(what) for what in ("busy", "counter", "communication", "waiting"))
    assert total == pytest.approx(1.0, rel=1e-6)
    assert run.makespan == sum(step.makespan for step in run.steps)


def test_the_constants_are_those_of_the_machine_and_of_the_codes():
    shown = {constant.name: constant.value for constant in studies["jagode-fig8"].constants()}
    assert shown["network.buffers"] == f"{CASCADE.link_buffers} Gets" and shown["network.resend"] == "150 us"
    assert shown["PRODUCTS"] == f"{PRODUCTS} products"


@pytest.mark.parametrize("name", ["jagode-fig2", "jagode-fig7"])
def test_numbers_that_the_papers_text_does_not_print_are_marked(name):
    (derived,) = {
        "jagode-fig2": [{("level 2", "routines"), ("level 3", "routines"), ("level 4", "routines")}],
        "jagode-fig7": [{("alpha-alpha", "products"), ("alpha-beta", "products")}],
    }[name]
    pairs = {key: pair for table in studies[name]().tables for key, pair in table.pairs.items()}
    assert {key for key, pair in pairs.items() if pair.derived} == derived


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("jagode-fig2", {"counted"}),
        ("jagode-fig7", {"counted"}),
        ("jagode-fig5", {"simulated", "fitted"}),
        ("jagode-fig8", {"simulated", "fitted"}),
    ],
)
def test_every_study_says_how_its_numbers_came_about(name, marks):
    assert set(studies[name].marks) == marks
