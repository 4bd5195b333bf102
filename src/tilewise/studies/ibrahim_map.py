"""Figures 8 and 9 of Ibrahim et al.: time against tiling factor and quantum, with two kinds of heaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewise.studies.ibrahim_nodes import (
    ASSUMED,
    DEFAULT,
    EDISON,
    EVENT,
    FACTORS,
    HEAP,
    PAPER,
    QUANTA,
    TILES_AND_PEAK,
    TRESTLES,
    Node,
    copy_rate,
)
from tilewise.studies.libtensor import URACIL, BlockRun
from tilewise.studies.study import FITTED, SIMULATED, Findings, Pair, Row, Say, Study, Table, Value


@dataclass(frozen=True)
class Mapped:
    """A map of the paper, with what its text says of it."""

    node: Node
    figure: int
    best_factor: int
    new_heaps: tuple[float, float] | None
    """Between which the new heaps gain."""


MAPS = (Mapped(TRESTLES, 8, 6, (1.2, 1.6)), Mapped(EDISON, 9, 8, None))
BEST_GAIN = 2.0
"""Of the best point over the default, on both nodes."""
EDISON_FASTER = 1.8
"""Edison over Trestles, in the paper."""

EVENTS = (EVENT / 2, EVENT, 1.5 * EVENT)

Map = Mapping[tuple[int, int], float]
"""Seconds by factor and quantum."""
Maps = Mapping[tuple[str, bool], Map]
"""By the name of the node, and whether it has one heap."""


def _run(progress: Say, seed: int) -> Findings:
    """The study; nothing in it is random."""
    runs = {}
    for factor in FACTORS:
        progress(f"tiles of {4 * factor} orbitals")
        runs[factor] = BlockRun(URACIL, factor)
    maps: dict[tuple[str, bool], Map] = {}
    for node in (TRESTLES, EDISON):
        for one_heap in (True, False):
            progress(f"{node.name}, {_heaps(one_heap)}")
            maps[node.name, one_heap] = {
                (factor, quantum): node.run(runs[factor], quantum, one_heap=one_heap).makespan
                for quantum in QUANTA
                for factor in FACTORS
            }
    progress("other constants")
    tables = [_compared(maps), _plateau(maps, runs), _events(runs)]
    for one in MAPS:
        for one_heap in (True, False):
            where = f"{one.node.name}, {one.node.workers} workers, {_heaps(one_heap)}"
            tables.append(
                _as_table(f"Figure {one.figure}: seconds on {where}", maps[one.node.name, one_heap])
            )
    return Findings(tuple(tables), ASSUMED, lambda figure: _draw(figure, maps))


def _heaps(one_heap: bool) -> str:
    return "one heap" if one_heap else "a heap for each thread"


def _compared(maps: Maps) -> Table:
    rows = []
    for one in MAPS:
        name = one.node.name
        old, new = maps[name, True], maps[name, False]
        best = min(new, key=lambda point: new[point])
        gain = old[DEFAULT] / new[DEFAULT]
        coarse = (one.best_factor, QUANTA[-1])
        gained: Value = Pair(one.new_heaps, gain) if one.new_heaps else gain
        rows += [
            Row(f"{name}: new heaps at the default", (gained,)),
            Row(f"{name}: best over the default", (Pair(BEST_GAIN, old[DEFAULT] / new[best]),)),
            Row(f"{name}: best tiling factor", (Pair(one.best_factor, best[0]),)),
            Row(f"{name}: best quantum", (Pair(1, best[1]),)),
            Row(f"{name}: quantum 8 at the paper's factor", (new[coarse] / new[one.best_factor, 1],)),
        ]
    slow, fast = (min(maps[one.node.name, False].values()) for one in MAPS)
    rows.append(Row("Edison over Trestles, best points", (Pair(EDISON_FASTER, slow / fast),)))
    return Table("Gains in time, and where the best point is", ("map", "value"), tuple(rows))


def _plateau(maps: Maps, runs: Mapping[int, BlockRun]) -> Table:
    """With new heaps and a quantum of 1: how little the factor matters."""
    lines = {one.node.name: [maps[one.node.name, False][factor, 1] for factor in FACTORS] for one in MAPS}
    other = replace(TRESTLES, copied=EDISON.copied)
    lines["Trestles, copies as on Edison"] = [
        other.run(runs[factor], 1, one_heap=False).makespan for factor in FACTORS
    ]
    rows = (
        Row(name, tuple(100.0 * (seconds / min(line) - 1.0) for seconds in line))
        for name, line in lines.items()
    )
    title = "A plateau: per cent above the best factor, a heap for each thread, quantum 1"
    return Table(title, ("node", *(f"factor {factor}" for factor in FACTORS)), tuple(rows))


def _events(runs: Mapping[int, BlockRun]) -> Table:
    """What the fitted time of an event decides; the best point has a quantum of 1."""
    factor, quantum = DEFAULT
    rows = []
    for event in EVENTS:
        values = []
        for one in MAPS:
            old, new = (
                one.node.run(runs[factor], quantum, one_heap=one_heap, event=event).makespan
                for one_heap in (True, False)
            )
            best = min(one.node.run(run, 1, one_heap=False, event=event).makespan for run in runs.values())
            values += [old / new, old / best]
        rows.append(Row(f"{1e6 * event:g}", tuple(values)))
    heads = (f"{one.node.name}: {what}" for one in MAPS for what in ("new heaps", "best over the default"))
    return Table("Gains by microseconds of an event", ("event", *heads), tuple(rows))


def _as_table(title: str, seconds: Map) -> Table:
    heads = ("quantum", *(f"factor {factor}" for factor in FACTORS))
    rows = (Row(str(q), tuple(seconds[factor, q] for factor in FACTORS)) for q in QUANTA)
    return Table(title, heads, tuple(rows))


def _draw(figure: Any, maps: Maps) -> None:
    """The gain over the default with one heap, as in the paper: bright is fast."""
    figure.set_size_inches(8.0, 5.6)
    axes = figure.subplots(2, 2, sharex=True, sharey=True)
    for row, one_heap in zip(axes, (True, False), strict=True):
        for axis, one in zip(row, MAPS, strict=True):
            name = one.node.name
            seconds, base = maps[name, one_heap], maps[name, True][DEFAULT]
            gain = np.array([[base / seconds[factor, q] for factor in FACTORS] for q in QUANTA])
            image = axis.imshow(gain, aspect="auto", cmap="viridis", vmin=0.9, vmax=2.0)
            for (y, x), value in np.ndenumerate(gain):
                colour = "black" if value > 1.5 else "white"
                axis.text(x, y, f"{value:.2f}", ha="center", va="center", color=colour)
            axis.set_title(f"{name}, {_heaps(one_heap)}", fontsize="medium")
            axis.set_xticks(range(len(FACTORS)), [str(factor) for factor in FACTORS])
            axis.set_yticks(range(len(QUANTA)), [str(quantum) for quantum in QUANTA])
    for axis in axes[-1]:
        axis.set_xlabel("tiling factor")
    for axis in axes[:, 0]:
        axis.set_ylabel("quantum")
    figure.colorbar(image, ax=axes.ravel().tolist(), label="gain over the default with one heap")


STUDIES = (
    Study(
        "ibrahim-map",
        f"{PAPER}, figures 8 and 9",
        "time by tile size and quantum, with one heap or with a heap for each thread",
        _run,
        (SIMULATED, FITTED),
        constants=lambda: (*HEAP, *TILES_AND_PEAK, copy_rate(TRESTLES), copy_rate(EDISON)),
    ),
)
