"""Data flow on threads with several queues of ready tasks."""

import numpy as np
import pytest

from random_programs import bare_graph, ccsd_case, energies_by_letter, run_program
from random_spaces import LETTERS, assert_close
from simulated_cases import free
from tilewise import Space, Tensor, native
from tilewise.equations import evaluate_dense, parse, plan_program
from tilewise.execute.simulated import simulate
from tilewise.inspect import PanelRule, inspect
from tilewise.inspect.chains import with_trees
from tilewise.schedule import ReadyQueues, Schedule, Team, policy_named

WORLD = {
    LETTERS["o"]: Space.spatial("o", [3, 1], tile=2),
    LETTERS["v"]: Space.spatial("v", [4, 3], tile=2),
}
RULE = PanelRule(3, 5)
NAMES = ("dataflow(queues=worker)", "dataflow(queues=node)")


@pytest.fixture(scope="module")
def case():
    return ccsd_case(WORLD, 5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_an_iteration_gives_what_the_dense_evaluation_gives(case, name, workers):
    equation, program, tensors, energies = case
    dense = {key: tensor.to_dense() for key, tensor in tensors.items()}
    expected = evaluate_dense(equation, dense, energies_by_letter(energies))
    buffers, scalars, _ = run_program(
        program, tensors, policy=name, workers=workers, rule=RULE, energies=energies
    )
    for key, value in scalars.items():
        assert_close(value, expected[key])
    for key in ("t.new", "T.new"):
        if key in expected:
            assert_close(Tensor(program.layouts[key], buffers[key]).to_dense(), expected[key])


@pytest.mark.parametrize("name", NAMES)
def test_ordered_accumulations_give_the_same_bits_on_any_number_of_workers(case, name):
    _, program, tensors, energies = case

    def bits(policy, workers):
        buffers, scalars, _ = run_program(
            program, tensors, policy=policy, workers=workers, rule=RULE, ordered=True, energies=energies
        )
        return [buffers[key].tobytes() for key in sorted(program.layouts)], scalars

    expected = bits("dataflow", 1)
    assert all(bits(name, workers) == expected for workers in (1, 2, 3, 4) for _ in range(3))


def empty_run(graph, schedule):
    """Tasks that do nothing: all time goes to the queues."""
    arrays, workers = schedule.arrays(graph), schedule.workers
    return native.run(graph, native.tables(graph), arrays, [], np.zeros(workers), workers)


@pytest.mark.parametrize("workers", [2, 4, 7])
def test_two_hundred_random_graphs_of_empty_tasks_never_hang(workers):
    rng = np.random.default_rng(workers)
    groups = (tuple(range(workers // 2)), tuple(range(workers // 2, workers)))
    for repeat in range(200):
        n = int(rng.integers(1, 120))
        level = np.sort(rng.integers(0, 8, n))
        pairs = rng.integers(0, n, (int(rng.integers(0, 4 * n)), 2))
        edges = np.unique(pairs[level[pairs[:, 0]] < level[pairs[:, 1]]], axis=0)
        graph = bare_graph(level.tolist(), edges.tolist())
        team = Team(workers, groups=groups if repeat % 2 else ())
        schedule = policy_named(NAMES[repeat % 4 // 2])(graph, rng.random(n), team)
        schedule.check(graph)
        done = empty_run(graph, schedule)
        assert done.failed < 0 and (done.trace["end"] > 0).all()
        assert (done.trace["end"][graph.sources] <= done.trace["start"][graph.targets]).all()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_tasks_of_a_queue_that_is_nobodys_own_are_stolen(workers):
    n = 1000
    graph = bare_graph([0] * n, [])
    own, two_queues = np.zeros(workers, np.int64), np.zeros(2, np.int64)
    ready = ReadyQueues(own, two_queues, np.zeros(n, np.int64))
    schedule = Schedule("hand", workers, (), np.arange(n, 0, -1.0), ready=ready)
    schedule.check(graph)
    done = empty_run(graph, schedule)
    steals = done.counts[:, native.COUNTS.index("steals")]
    assert (done.trace["end"] > 0).all() and steals.sum() == n // 2
    assert simulate(graph, schedule, np.ones(n), free(workers)).steals == n // 2


def test_a_worker_goes_on_with_what_its_own_task_has_made_ready():
    """Two chains of tasks: each stays with a worker unless it is stolen."""
    n = 2000
    graph = bare_graph(np.repeat(np.arange(n), 2).tolist(), [(k, k + 2) for k in range(2 * n - 2)])
    schedule = policy_named("dataflow(queues=worker)")(graph, np.ones(2 * n), 2)
    done = empty_run(graph, schedule)
    worker = done.trace["worker"]
    changes = sum(int((np.diff(worker[chain::2]) != 0).sum()) for chain in (0, 1))
    assert changes <= done.counts[:, native.COUNTS.index("steals")].sum()


@pytest.mark.parametrize(
    "wrong",
    [
        {"ready_queue": np.zeros(1, np.int64)},
        {"ready_queue": np.full(2, 5)},
        {"ready_group": np.full(2, -1)},
        {"home": np.zeros(2, np.int64)},
        {"home": np.full(3, 2)},
    ],
)
def test_the_native_core_refuses_queues_that_do_not_fit(wrong):
    graph = bare_graph([0] * 3, [])
    schedule = policy_named("dataflow(queues=worker)")(graph, np.ones(3), 2)
    arrays = schedule.arrays(graph) | wrong
    with pytest.raises(ValueError, match="the queues of ready tasks are for other workers or tasks"):
        native.run(graph, native.tables(graph), arrays, [], np.zeros(2), 2)


def test_the_parts_of_a_chain_that_was_cut_are_one_chain(case):
    _, program, _, _ = case
    graph = inspect(program, PanelRule(50, 50))
    assert np.array_equal(graph.chains, np.arange(len(graph)))
    wide = {letter: Space.spatial(letter, [200], 200) for letter in "ijk"}
    product = plan_program(parse("input A[i|k]\ninput B[k|j]\nC[i|j] = A[i|k] B[k|j]"), wide)
    whole = inspect(product, PanelRule(500, 500))
    trees = with_trees(whole, np.ones(len(whole)), 2)
    assert len(trees) > len(whole) == 1 and not trees.chains.any()
