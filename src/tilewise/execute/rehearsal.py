"""First runs of a policy that learns, simulated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewise.execute.simulated import Simulation
from tilewise.inspect import Graph
from tilewise.schedule import Policy, Schedule, Team
from tilewise.schedule.observation import Observation, smoothed


def rehearsed(
    policy: Policy,
    graph: Graph,
    seconds: np.ndarray,
    team: Team,
    run: Callable[[Schedule, int], Simulation],
) -> Schedule:
    """The schedule that a policy makes once it has seen its first runs; at once, if it does not learn.

    `run` simulates a schedule; its second argument counts the runs from 1 up.
    """
    speeds = np.array(team.speeds)
    for number in range(1, policy.first_runs + 1):
        schedule = policy(graph, seconds, team)
        done = run(schedule, number)
        measured = done.seconds * speeds[done.trace["worker"]]
        policy = policy.learn(graph, Observation(schedule, seconds, measured, done.phases))
        seconds = measured if number == 1 else smoothed(seconds, measured)
    return policy(graph, seconds, team)
