"""Simulated cores: speeds, loads of other users, noise; and bad input."""

from dataclasses import replace

import numpy as np
import pytest

from simulated_cases import COSTLY, free, one_level
from tilewise import policies
from tilewise.errors import InputError
from tilewise.execute.simulated import simulate
from tilewise.hardware.machines import Load, MachineModel, Rates
from tilewise.schedule import Team, policy_named


def test_a_core_under_load_shares_its_time():
    graph, seconds = one_level(2), np.array([10.0, 10.0])
    schedule = policies["interleaved"](graph, seconds, 2)

    def ends(*loads):
        run = simulate(graph, schedule, seconds, replace(free(2), loads=loads))
        return (1e-9 * run.trace["end"]).tolist()

    assert ends(Load(0, 2)) == pytest.approx([20.0, 10.0])
    assert ends(Load(0, 2, 4.0, 10.0)) == pytest.approx([13.0, 10.0])
    assert ends(Load(0, 2, 0.0, 4.0), Load(0, 4, 4.0, 8.0), Load(1, 3, 50.0)) == pytest.approx([15.0, 10.0])
    assert ends(Load(0, 2, 10.0)) == pytest.approx([10.0, 10.0])


@pytest.mark.parametrize(
    ("jobs", "ideal"), [((1, 1, 1, 1), 2028), ((2, 2, 1, 1), 2704), ((3, 2, 2, 1), 3477)]
)
def test_self_scheduling_reaches_the_ideal_time_under_load(jobs, ideal):
    """Stathopoulos and Ynnerman: a triangle of 7158 columns, 4 x 2028 seconds of work."""
    n = 7158
    seconds = np.arange(n, 0, -1.0)
    seconds *= 4 * 2028 / seconds.sum()
    loads = tuple(Load(core, k) for core, k in enumerate(jobs))
    model = MachineModel("workstations", 4, 1, loads=loads)
    graph = one_level(n)

    def time(policy):
        return simulate(graph, policy_named(policy)(graph, seconds, 4), seconds, model).makespan

    assert time("ie-nxtval") == pytest.approx(ideal, rel=0.002)
    assert time("factoring(f=2, delta=0.5)") == pytest.approx(ideal, rel=0.01)
    assert time("interleaved") == pytest.approx(max(jobs) * 2028, rel=0.002)


def test_noise_has_the_asked_width_and_leaves_the_mean_alone():
    graph, seconds = one_level(20000), np.ones(20000)
    schedule = policies["block"](graph, seconds, 4)
    spread = [
        1e-9 * (run.trace["end"] - run.trace["start"])
        for run in (simulate(graph, schedule, seconds, replace(free(4), noise=0.2), seed=s) for s in (1, 2))
    ]
    for times in spread:
        assert times.mean() == pytest.approx(1.0, abs=0.01) and times.std() == pytest.approx(0.2, rel=0.05)
    assert not np.array_equal(*spread)


# Machines and bad input


def test_a_team_has_the_speeds_and_nodes_of_its_machine():
    team = COSTLY.team(5)
    assert team == Team(5, (1.0, 0.5, 2.0, 1.0, 1.0), ((0, 1), (2, 3), (4,)))


def test_reserved_cores_do_not_work():
    model = replace(free(8), nodes=3, reserved=1)
    assert model.size == 21 and model.node_of(15).tolist() == [0] * 7 + [1] * 7 + [2]
    assert model.team(15).groups == (tuple(range(7)), tuple(range(7, 14)), (14,))
    with pytest.raises(InputError, match="from 1 to 21 are possible, one per core"):
        model.check(22)


def test_rates_give_the_seconds_of_tasks():
    seconds = Rates(2e9, 1e8).seconds(np.array([4e9, 0.0]), np.array([1e7, 1e8]))
    assert seconds.tolist() == pytest.approx([2.1, 1.0])
    streamed = Rates(2e9, 1e8, 1e9).seconds(np.array([4e9, 0.0]), np.array([1e7, 1e8]), np.array([5e8, 0.0]))
    assert streamed.tolist() == pytest.approx([2.6, 1.0])


def test_bad_input_gets_one_sentence():
    graph, model = one_level(3), free(2)
    schedule = policies["lpt"](graph, np.ones(3), 2)
    with pytest.raises(InputError, match="7 workers on machine costly: from 1 to 6 are possible"):
        simulate(graph, policies["lpt"](graph, np.ones(3), 7), np.ones(3), COSTLY)
    for wrong in (np.ones(2), -np.ones(3), np.array([1.0, np.nan, 1.0])):
        with pytest.raises(InputError, match="seconds: a number from 0 up is needed for each of 3 tasks"):
            simulate(graph, schedule, wrong, model)
    with pytest.raises(InputError, match="bytes_got: a number"):
        simulate(graph, schedule, np.ones(3), model, bytes_got=np.full(3, np.inf))
    for gets in (np.ones(2), np.full(3, 0.5), np.array([1, -1, 1])):
        with pytest.raises(InputError, match="gets: a whole number is needed for each of 3 tasks"):
            simulate(graph, schedule, np.ones(3), model, gets=gets)
    with pytest.raises(InputError, match=r"puts: a whole number .*, above 0 where bytes are moved"):
        simulate(graph, schedule, np.ones(3), model, bytes_put=np.ones(3), puts=np.array([1, 0, 1]))
    for places in (np.zeros(2), np.array([0.0, 1.5, 0.0])):
        with pytest.raises(InputError, match="places: a number from 0 to 1 is needed for each of 3 Gets"):
            simulate(graph, schedule, np.ones(3), model, gets=np.ones(3), places=places)


def test_an_empty_graph_takes_no_time():
    graph = one_level(0)
    for policy in policies.values():
        result = simulate(graph, policy(graph, np.zeros(0), 3), np.zeros(0), free(3))
        assert result.makespan == 0.0 and result.imbalance == 0.0 and result.efficiency == 1.0


def test_speeds_that_drift_depend_on_the_seed_and_are_even_in_the_long_run():
    graph = one_level(2000)
    seconds = np.full(2000, 0.05)
    model = replace(free(2), drift=0.3, stretch=0.02)
    static = policies["block"](graph, seconds, 2)
    first, again, other = (simulate(graph, static, seconds, model, seed=seed) for seed in (1, 1, 2))
    assert first.trace.tolist() == again.trace.tolist() and first.makespan != other.makespan
    assert first.makespan == pytest.approx(50.0, rel=0.03)
    assert first.busy.sum() == pytest.approx(100.0, rel=0.02)


def test_a_core_keeps_its_speed_for_a_stretch():
    graph, seconds = one_level(8), np.full(8, 0.01)
    model = replace(free(1), drift=0.3, stretch=1.0)
    trace = simulate(graph, policies["block"](graph, seconds, 1), seconds, model).trace
    lengths = (trace["end"] - trace["start"]) / 1e9
    assert lengths == pytest.approx(lengths[0], rel=1e-6) and lengths[0] != pytest.approx(0.01, rel=1e-3)


def test_drift_leaves_idle_time_to_lists_and_none_to_counters():
    graph, seconds = one_level(2000), np.full(2000, 1e-3)
    model = replace(free(4), drift=0.2, stretch=1.0)
    idle = {
        name: np.mean(
            [
                simulate(graph, policies[name](graph, seconds, 4), seconds, model, seed=seed).imbalance
                for seed in range(10)
            ]
        )
        for name in ("lpt", "ie-nxtval")
    }
    assert idle["lpt"] > 0.1 and idle["ie-nxtval"] < 0.01


def test_a_slow_worker_is_not_handed_a_long_task_where_its_speed_is_known():
    """By speed it has the task of 3 s, and steals that of 1 s in the end; unknown it begins with 7 s."""
    machine, graph = replace(free(2), speed=(1.0, 0.1)), one_level(8)
    seconds = np.arange(8.0, 0.0, -1.0)

    def run(team):
        return simulate(graph, policies["steal"](graph, seconds, team), seconds, machine)

    assert run(machine.team(2)).makespan == pytest.approx(40.0)
    assert run(2).makespan == pytest.approx(70.0)
