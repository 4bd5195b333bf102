"""Pictures: simulated runs by number of workers, and the time against panels and quanta."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewise.errors import InputError
from tilewise.methods.exploration import Exploration
from tilewise.methods.prediction import PredictionRow

FORMATS = (".png", ".svg", ".pdf")

PARTS = {"work": "#4c72b0", "counters": "#c44e52", "communication": "#dd8452", "waiting": "#cccccc"}
"""Shares of the time of all workers, and their colours."""


def check_picture(path: Path | None) -> None:
    """Refuses a format that cannot be drawn, before the work that the picture is to show."""
    if path and path.suffix.lower() not in FORMATS:
        raise InputError(f"--picture {path}: its name must end in one of {', '.join(FORMATS)}")


def picture_format(path: Path) -> str:
    """The format that the name of a file asks for."""
    return path.suffix.lower().removeprefix(".")


def draw_scaling(rows: Sequence[PredictionRow], title: str, path: Path, form: str) -> None:
    """Writes the picture in the format `form`."""
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
    figure.savefig(path, dpi=150, format=form)


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


def draw_exploration(found: Exploration, title: str, path: Path, form: str) -> None:
    """Heat maps of the time against panel height and quantum, one for each panel width."""
    from matplotlib.figure import Figure

    widths = sorted({trial.rule.width for trial in found.trials})
    times = [trial.at(quantum) for trial in found.trials for quantum in found.quanta]
    figure = Figure(figsize=(1.5 + 3.6 * len(widths), 3.6), layout="constrained")
    axes = figure.subplots(1, len(widths), squeeze=False)
    for axis, width in zip(axes[0], widths, strict=True):
        trials = sorted(
            (t for t in found.trials if t.rule.width == width), key=lambda trial: trial.rule.height
        )
        map_ = [[1000 * trial.at(quantum) for trial in trials] for quantum in found.quanta]
        image = axis.imshow(
            map_,
            origin="lower",
            aspect="auto",
            cmap="viridis",
            vmin=1000 * min(times),
            vmax=1000 * max(times),
        )
        for row, values in enumerate(map_):
            for column, value in enumerate(values):
                color = "black" if value > 500 * (min(times) + max(times)) else "white"
                axis.text(column, row, f"{value:.3g}", ha="center", va="center", color=color)
        axis.set_xticks(range(len(trials)), [str(trial.rule.height) for trial in trials])
        axis.set_yticks(range(len(found.quanta)), [str(quantum) for quantum in found.quanta])
        axis.set_xlabel(f"panel height (width {width})")
    axes[0, 0].set_ylabel("quantum")
    figure.colorbar(image, ax=axes[0].tolist(), label="ms per iteration")
    figure.suptitle(title)
    figure.savefig(path, dpi=110, format=form)
