"""Tukey, the machine of Ghosh et al., and what its Accumulates take: for the studies of their runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewise.execute.machines import MachineModel, Rates, find_machine
from tilewise.studies.study import Constant

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


def tukey_constants() -> tuple[Constant, ...]:
    """What the machine file and this module assume, for the studies that run on this machine."""
    machine, file = find_machine("tukey"), "src/tilewise/machines/tukey.toml"
    rates = Tukey(1).rates
    chosen = "chosen; the paper gives none"
    return (
        Constant(
            "ADDED",
            f"{ADDED / 1e9:g} GB/s of a node",
            "src/tilewise/studies/tukey.py",
            "whether the original or the inverted loops win",
            "fitted to the sign of figures 3 to 6, where the original loops win",
        ),
        Constant(
            "rates.gemm",
            f"{rates.gemm / 1e9:g} Gflop/s",
            file,
            "the weight of communication",
            "chosen as 90 % of the 8 Gflop/s of a core",
        ),
        Constant("rates.sort", f"{rates.sort / 1e6:g} million words/s", file, "the cost of a Get", chosen),
        Constant("noise", f"{machine.noise:g}", file, "imbalance within a few per cent", chosen),
        Constant("barrier", f"{1e6 * machine.barrier:g} us", file, "nothing that is seen", chosen),
        Constant(
            "counter.service",
            f"{1e6 * machine.counter_service:g} us",
            file,
            "when the counter is full",
            chosen,
        ),
    )
