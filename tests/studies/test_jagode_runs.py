"""Figures 5 and 8 of Jagode et al.: the shapes of the paper."""

import numpy as np
import pytest

from tilewise.execute.machines import find_machine
from tilewise.studies.jagode_runs import (
    BEST,
    CORES,
    DATAFLOW,
    NODES,
    ORIGINAL,
    codes,
    fastest,
    with_local_sums,
)

CASCADE = find_machine("cascade")


@pytest.fixture(scope="module")
def times():
    """Of an iteration of beta-carotene; the slow runs with one or two cores of each node are left out."""
    wanted = {ORIGINAL: CORES[2:], DATAFLOW: CORES[3:]}
    return {
        name: {
            (nodes, cores): code.run(CASCADE, nodes, cores).makespan
            for nodes in NODES
            for cores in wanted[name]
        }
        for name, code in codes().items()
    }


def test_the_best_number_of_cores_of_the_original_code_falls_with_the_nodes(times):
    assert {nodes: fastest(times[ORIGINAL], nodes) for nodes in NODES} == {
        nodes: cores for nodes, (cores, _) in BEST.items()
    }


@pytest.mark.parametrize("nodes", NODES)
def test_data_flow_uses_all_cores_and_is_much_faster_at_its_best(times, nodes):
    assert fastest(times[DATAFLOW], nodes) == 16
    best = min(seconds for (n, _), seconds in times[ORIGINAL].items() if n == nodes)
    assert best / times[DATAFLOW][nodes, 16] >= 1.7


def test_work_is_the_same_and_sums_stay_in_their_node():
    original, flow = codes("water-2", 10).values()
    assert flow.graph.flops.sum() == original.graph.flops.sum()
    sums = (flow.graph.gemms == 0) & (flow.graph.tasks["reads"] < 0)
    assert sums.any() and not flow.graph.traffic.gets[sums].any()
    assert np.array_equal(with_local_sums(flow.graph).tasks, flow.graph.tasks)
    assert len(flow.places) == flow.graph.traffic.gets.sum()


def test_data_flow_hides_what_the_original_code_waits_for():
    runs = {name: code.run(CASCADE, 8, 4) for name, code in codes("water-4", 20).items()}
    shares = {name: run.share(run.communication) for name, run in runs.items()}
    assert shares[DATAFLOW] < shares[ORIGINAL]
    assert runs[DATAFLOW].makespan < runs[ORIGINAL].makespan
