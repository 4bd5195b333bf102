"""Chains: tasks that do records of several kinds one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from tilewise.inspect.operations.kind import Kind, Tables, Work
from tilewise.inspect.records import I8, KINDS

STEP = np.dtype([(name, I8) for name in ("kind", "first", "count")])


class Chain(Kind):
    """Steps, each of which is some records of another kind: what they cost is counted there."""

    name: ClassVar[str] = "chain"
    record: ClassVar[np.dtype] = STEP

    def relocate(self, tables: Tables, lengths: Mapping[str, int]) -> None:
        steps = tables[self.name]
        steps["first"] += np.array([lengths[name] for name in KINDS])[steps["kind"]]

    def twin(self, work: Work, record: np.void) -> float:
        return work.step(record)
