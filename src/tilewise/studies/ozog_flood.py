"""Figure 2 of Ozog et al. on real ranks: a counter that 1 to 8 of them flood, beside the simulated one."""

from __future__ import annotations

import time
from typing import Any

from tilewise.execute.mpi.world import World
from tilewise.hardware.model import MachineModel
from tilewise.studies.on_ranks import run_program
from tilewise.studies.study import Row, Say, Table

MOST, CALLS = 8, 2000
"""Ranks, and calls of each."""


def on_ranks(ranks: World, calls: int) -> list[dict[str, Any]]:
    """For 1, 2 and more ranks that call at once: seconds per call, and how many numbers were drawn in all."""
    from tilewise.execute.mpi.blocks import Counter

    counter, found = Counter(ranks), []
    for callers in range(1, ranks.size + 1):
        ranks.barrier()
        began = time.perf_counter()
        if ranks.rank < callers:
            for _ in range(calls):
                counter.draw()
        seconds = time.perf_counter() - began if ranks.rank < callers else 0.0
        total = ranks.total(seconds)
        found.append({"callers": callers, "seconds": total / callers / calls, "drawn": counter.reset()})
    counter.close()
    return found


def flood_table(progress: Say, seed: int) -> tuple[Table, ...]:
    """Measured now on this machine, beside a queue with the time of one caller as its service."""
    from tilewise.studies.ozog_counter import flood_seconds

    progress(f"a real counter, 1 to {MOST} ranks")
    found = run_program("flood", MOST, calls=CALLS)
    alone = found[0]["seconds"]
    model = MachineModel("one caller's", 1, 1, counter_service=alone, counter_shared=alone)
    rows = []
    for run in found:
        callers = run["callers"]
        queue = flood_seconds(model, callers) if callers > 1 else alone
        rows.append(Row(str(callers), (1e6 * run["seconds"], 1e6 * queue, run["drawn"])))
    heads = ("ranks", "measured", "a queue alone, simulated", "numbers drawn")
    return (Table("A real counter: microseconds per call, ranks of this machine", heads, tuple(rows)),)
