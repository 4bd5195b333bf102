"""Schedules that run one operation after the other."""

import numpy as np
import pytest

from simulated_cases import free
from tilewise import policies
from tilewise.execute.simulated import simulate
from tilewise.schedule import Team
from tilewise.schedule.routines import by_operation, operations_with_tasks
from tilewise.spaces import TileSpace
from tilewise.tce.inspector import inspect_routines
from tilewise.tce.routines import tce_routines

WORKERS = 5


@pytest.fixture(scope="module")
def graph():
    return inspect_routines(tce_routines("ccsd"), TileSpace((2, 1), (3, 2), 2))


def test_each_operation_has_a_phase(graph):
    operations = operations_with_tasks(graph)
    schedule = by_operation(graph, graph.flops, Team(WORKERS), policies["ie-nxtval"])
    schedule.check(graph)
    assert len(schedule.phases) == len(operations) > 20
    for phase, (operation, tasks) in zip(schedule.phases, operations, strict=True):
        assert phase.queues[0].tasks.tolist() == tasks.tolist()
        assert (graph.tasks["operation"][tasks] == operation).all()


def test_every_worker_draws_once_more_from_each_counter(graph):
    _, tuples = graph.tuples
    operations = [operation for operation, _ in operations_with_tasks(graph)]
    for name, drawn in (("nxtval", tuples[operations].sum()), ("ie-nxtval", len(graph))):
        schedule = by_operation(graph, graph.flops, Team(WORKERS), policies[name])
        schedule.check(graph)
        run = simulate(graph, schedule, 1e-9 * graph.flops, free(WORKERS))
        assert run.counter_calls == drawn + WORKERS * len(operations)
        assert len(run.phases) == len(operations)


def test_operations_may_have_policies_of_their_own(graph):
    operations = operations_with_tasks(graph)
    schedule = by_operation(
        graph, graph.flops, Team(WORKERS), lambda operation: policies["lpt" if operation % 2 else "ie-nxtval"]
    )
    schedule.check(graph)
    static = [phase.queues[0].quantum == 0 for phase in schedule.phases]
    assert static == [operation % 2 == 1 for operation, _ in operations]
    assert f"{sum(static)} by lpt" in str(schedule)
    done = np.concatenate([queue.tasks for queue in schedule.queues])
    assert sorted(done.tolist()) == list(range(len(graph)))
