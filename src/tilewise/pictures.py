"""A picture of simulated runs: time by number of workers, and where the time of each policy goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewise.methods.prediction import PredictionRow

PARTS = {"work": "#4c72b0", "counters": "#c44e52", "communication": "#dd8452", "waiting": "#cccccc"}
"""Shares of the time of all workers, and their colours."""


def draw_scaling(rows: Sequence[PredictionRow], title: str, path: Path) -> None:
    """Writes the picture in the format that the name of the file asks for."""
    from matplotlib.figure import Figure

    policies = list(dict.fromkeys(row.policy for row in rows))
    figure = Figure(figsize=(4.6 + 2.8 * len(policies), 3.8), layout="constrained")
    figure.suptitle(title)
    widths = [1.6, *([1.0] * len(policies))]
    axes = figure.subplots(1, 1 + len(policies), width_ratios=widths, squeeze=False)[0]
    for policy in policies:
        mine = [row for row in rows if row.policy == policy]
        axes[0].loglog([row.workers for row in mine], [row.seconds for row in mine], "o-", label=policy)
    ideal = sorted({row.workers: row.seconds * row.efficiency for row in rows}.items())
    axes[0].loglog(*zip(*ideal, strict=True), "k--", linewidth=0.8, label="work shared evenly")
    axes[0].set_xlabel("workers")
    axes[0].set_ylabel("seconds per iteration")
    axes[0].legend(fontsize="small")
    for axis, policy in zip(axes[1:], policies, strict=True):
        mine = [row for row in rows if row.policy == policy]
        _shares(axis, mine)
        axis.set_title(policy, fontsize="medium")
    axes[1].set_ylabel("share of the workers' time")
    figure.legend(*axes[1].get_legend_handles_labels(), fontsize="small", loc="outside right upper")
    figure.savefig(path, dpi=150)


def _shares(axis: Any, rows: Sequence[PredictionRow]) -> None:
    """Bars for each number of workers, which add up to 1."""
    names = [str(row.workers) for row in rows]
    below = [0.0] * len(rows)
    for part, colour in PARTS.items():
        share = [1.0 - row.imbalance if part == "work" else getattr(row, part) for row in rows]
        axis.bar(names, share, bottom=below, color=colour, label=part)
        below = [a + b for a, b in zip(below, share, strict=True)]
    axis.set_ylim(0.0, 1.0)
    axis.set_xlabel("workers")
    axis.tick_params(axis="x", rotation=60)
