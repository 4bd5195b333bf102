"""Tukey, the machine of Ghosh et al., and what its Accumulates take: for the studies of their runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewise.hardware.machines import MachineModel, Rates, find_machine
from tilewise.studies.constants import in_machine, in_module

ADDED = 0.8e9
"""Bytes per second that a node adds up for the Accumulates of all, which takes the time of its processes."""

FREE = np.inf
"""Bytes per second of a node whose Accumulates take no time of its processes."""

RATES = (ADDED, 2 * ADDED, 4 * ADDED, FREE)
"""Of a node: how the studies show what they owe to ADDED."""


@dataclass(frozen=True)
class Tukey:
    """The machine with so many processes on each node, which share its link."""

    per_node: int
    added: float = ADDED

    @property
    def machine(self) -> MachineModel:
        return replace(find_machine("tukey"), cores=self.per_node, links=True)

    @property
    def rates(self) -> Rates:
        rates = self.machine.rates
        if rates is None:
            raise ValueError("machine tukey has no rates of products and sorts")
        return rates

    def accumulating(self, bytes_put: np.ndarray) -> np.ndarray:
        """Seconds of a process for Accumulates of so many bytes: each adds up as many as it sends."""
        return bytes_put * (self.per_node / self.added)


def shown_rate(added: float) -> str:
    """Of a node, in GB/s."""
    return "free" if added == FREE else f"{added / 1e9:g}"


_UNKNOWN = "chosen: the paper gives none"

CONSTANTS = (
    in_module(
        __name__,
        "ADDED",
        "whether the original or the inverted loops win",
        "fitted to the sign of figures 3 to 6, where the original loops win",
        "B/s of a node",
    ),
    in_machine("tukey", "rates.gemm", "flop/s", "weight of messages", "chosen: 90 % of a core's 8 Gflop/s"),
    in_machine("tukey", "rates.sort", "words/s", "cost of a Get", _UNKNOWN),
    in_machine("tukey", "noise", "", "imbalance, by a few per cent", _UNKNOWN),
    in_machine("tukey", "barrier", "s", "the end of each routine: next to nothing", _UNKNOWN),
    in_machine("tukey", "counter.service", "s", "cost of a task, null ones too", _UNKNOWN),
)
"""Of all studies that run on this machine."""
