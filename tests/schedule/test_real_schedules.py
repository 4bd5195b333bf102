"""Policies on graphs that the inspector made: null tuples, shared blocks, native loops."""

import numpy as np
import pytest

from tilewise import Space, policies
from tilewise.equations import parse, plan_program
from tilewise.execute import Runner
from tilewise.inspect import PanelRule, inspect
from tilewise.schedule import policy_named
from tilewise.schedule.loops import Loop

LADDER = "input V[ab-|cd-]\ninput T[cd-|ij-]\nR[ab-|ij-] = V[ab|cd] T[cd|ij]"
"""t2_8 of the TCE in spin orbitals."""


def ladder(occupied, virtual):
    """Program and graph, with a tile per irrep and a task per tuple."""
    spaces = {
        "ij": Space.spin_orbital("o", occupied, occupied, 99),
        "abcd": Space.spin_orbital("v", virtual, virtual, 99),
    }
    program = plan_program(parse(LADDER), spaces)
    return program, inspect(program, PanelRule(1, 1))


def restricted(graph):
    """Without the tasks whose orbitals are all beta: they equal those that are all alpha."""
    spin = np.array([label[1] for label in graph.panels["R"].layout.labels])
    return graph.part(np.flatnonzero(spin[graph.panels["R"].table["sector"][graph.tasks["panel"]]] >= 0))


def run(program, graph, policy, workers):
    buffers = {name: np.full(layout.size, 0.5) for name, layout in program.layouts.items()}
    return Runner(graph, policy_named(policy)(graph, graph.flops, workers), buffers).run()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_counter_calls_of_benzene_with_and_without_an_inspector(workers):
    """Ozog et al., table I: 14,280 tuples of benzene's t2_8 with a tile per irrep, 532 of them not null."""
    program, graph = ladder([2] * 7 + [0], [2] * 8)
    graph = restricted(graph)
    assert len(graph) == 532
    assert run(program, graph, "nxtval", workers).counter_calls == 14280 + workers
    assert run(program, graph, "ie-nxtval", workers).counter_calls == 532 + workers


@pytest.mark.parametrize(
    ("occupied", "virtual"), [([2, 3], [3, 2]), ([2, 0, 2, 2], [2, 2, 0, 3]), ([4], [5])]
)
def test_tuples_are_those_of_a_loop(occupied, virtual):
    _, graph = ladder(occupied, virtual)
    tiles = {
        "o": [(spin, h) for spin in (1, -1) for h, n in enumerate(occupied) if n],
        "v": [(spin, h) for spin in (1, -1) for h, n in enumerate(virtual) if n],
    }
    canonical = found = 0
    for p, (s3, h3) in enumerate(tiles["v"]):
        for s4, h4 in tiles["v"][p:]:
            for q, (s1, h1) in enumerate(tiles["o"]):
                for s2, h2 in tiles["o"][q:]:
                    canonical += 1
                    found += s1 + s2 == s3 + s4 and h1 ^ h2 == h3 ^ h4
    place, count = graph.tuples
    assert count.tolist() == [canonical] and len(graph) == found
    assert len(np.unique(place)) == len(graph) and place.min() >= 0 and place.max() < canonical
    text = f"nxtval: {canonical} tuples, {canonical - found} of them null, 1 counter"
    assert str(policies["nxtval"](graph, graph.flops, 2)) == text


@pytest.mark.parametrize("name", ["gss", "tss", "factoring", "factoring(literal=true)"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_native_loops_hand_out_as_many_chunks_as_their_twins(name, workers):
    program, graph = ladder([2] * 4, [3] * 4)
    rule = policy_named(name)(graph, graph.flops, workers).queues[0].rule
    loop, expected = Loop(rule, graph.flops, workers), 0
    while True:
        first, last = loop.next(expected % workers, 0.0)
        if first == last:
            break
        expected += 1
    result = run(program, graph, name, workers)
    assert result.counter_calls == expected + workers


@pytest.mark.parametrize(
    "policy",
    [
        "factoring(delta=1e-5)",
        "chunk(size=0, delta=1e-5)",
        "tss(delta=1e-5, probe=2)",
        "factoring(delta=1e-5, literal=true)",
        "chunk(size=0, delta=1e-5, literal=true)",
    ],
)
def test_probes_measure_the_speed_of_each_worker(policy):
    program, graph = ladder([2] * 4, [3] * 4)
    result = run(program, graph, policy, 2)
    assert 2 < result.counter_calls <= len(graph) + 2


def test_a_hypergraph_partition_shares_less_than_lpt():
    spaces = {"ij": Space.spatial("o", [24], 4), "abcd": Space.spatial("v", [24], 4)}
    program = plan_program(parse("input A[ij|cd]\ninput B[ab|cd]\nC[ij|ab] = A[ij|cd] B[ab|cd]"), spaces)
    graph = inspect(program, PanelRule(16, 16))
    seconds = np.random.default_rng(1).random(len(graph)) + 0.1

    def shared(schedule):
        """Blocks of operands that each worker reads, summed over the workers."""
        gemms, owner = graph.records["gemm"], graph.owners("gemm")
        worker = np.zeros(len(graph), int)
        for queue in schedule.queues:
            worker[queue.tasks] = queue.workers[0]
        reads = {
            (worker[t], x, int(g[x]), int(g[f"{x}_offset"]))
            for g, t in zip(gemms, owner, strict=True)
            for x in "ab"
        }
        return len(reads)

    by_lpt, by_hypergraph = (policies[name](graph, seconds, 4) for name in ("lpt", "hypergraph"))
    by_hypergraph.check(graph)
    assert shared(by_hypergraph) < 0.8 * shared(by_lpt)
    assert by_hypergraph.makespan(graph, seconds) <= 1.04 * seconds.sum() / 4
    assert "read once more by another worker" in str(by_hypergraph)
