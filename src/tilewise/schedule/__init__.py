"""Scheduling policies: which worker runs which tasks, in which order. Pure functions of the graph.

A policy turns (graph, seconds per task, workers) into a Schedule; it knows nothing of
chemistry and nothing of threads. `policies` maps names to policies.
"""

from tilewise.schedule.policies import policies, policy_named, register
from tilewise.schedule.policy import LevelPolicy, Policy
from tilewise.schedule.ready import ReadyQueues
from tilewise.schedule.schedule import Phase, Queue, Rule, Schedule
from tilewise.schedule.team import Team

__all__ = [
    "LevelPolicy",
    "Phase",
    "Policy",
    "Queue",
    "ReadyQueues",
    "Rule",
    "Schedule",
    "Team",
    "policies",
    "policy_named",
    "register",
]
