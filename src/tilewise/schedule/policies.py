"""The registry of policies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np

from tilewise.errors import one_of
from tilewise.inspect import TaskGraph
from tilewise.schedule.block import block
from tilewise.schedule.counter import ie_nxtval
from tilewise.schedule.dataflow import dataflow
from tilewise.schedule.lpt import lpt
from tilewise.schedule.schedule import Schedule


class Policy(Protocol):
    """Decides from the graph and the estimated seconds of each task alone."""

    def __call__(self, graph: TaskGraph, seconds: np.ndarray, workers: int) -> Schedule: ...


policies: Mapping[str, Policy] = MappingProxyType(
    {"ie-nxtval": ie_nxtval, "block": block, "lpt": lpt, "dataflow": dataflow}
)

DEFAULT_POLICY = "dataflow"


def policy_named(name: str) -> Policy:
    if name not in policies:
        raise one_of("policy", name, policies)
    return policies[name]
