"""A loop as a graph: independent tasks of one kind, which move nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.inspect.dependencies import Graph, Traffic
from tilewise.inspect.records import TASK


@dataclass(frozen=True)
class LoopBody:
    """What each task of a loop is."""

    text: str


class LoopGraph(Graph):
    """Independent tasks that move nothing. All share one record, so that a million of them take no memory."""

    def __init__(self, length: int, text: str) -> None:
        self.operations = (LoopBody(text),)
        self.tasks = np.broadcast_to(np.zeros(1, TASK), length)
        self.sources = self.targets = np.zeros(0, np.int64)

    @property
    def flops(self) -> np.ndarray:
        return np.zeros(len(self))

    @property
    def sorted_words(self) -> np.ndarray:
        return np.zeros(len(self))

    @property
    def traffic(self) -> Traffic:
        nothing = np.zeros(len(self))
        return Traffic(nothing, nothing, nothing, nothing)

    @property
    def tuples(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(self)), np.array([len(self)])

    @property
    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing

    def describe(self, task: int) -> str:
        return f"operation '{self.operations[0].text}', block {task}"
