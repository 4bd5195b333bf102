"""Scheduling policies: which worker runs which tasks, in which order. Pure functions of the graph.

A policy turns (graph, seconds per task, number of workers) into a Schedule; it knows nothing of
chemistry and nothing of threads. `policies` maps names to policies.
"""

from tilewise.schedule.policies import Policy, policies, policy_named
from tilewise.schedule.schedule import Schedule

__all__ = ["Policy", "Schedule", "policies", "policy_named"]
