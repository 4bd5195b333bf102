"""Seconds of columns: coefficients times what was counted of each, fitted to columns that were made.

What a machine took is kept in the user's cache folder; nothing depends on it but predictions and the sizes of
the first chunks.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import scipy  # which loads scipy.optimize when it is used: that takes a quarter of a second

from tilewise.config import cache_dir
from tilewise.cost.wisdom import machine_key

_LEAST_COLUMNS = 2000
"""Columns that a fit needs."""

_MOST_COLUMNS = 6000
"""That coefficients are fitted to, chosen at random; what memory takes comes from all columns."""

_ROUNDS = 2
"""Of a fit, each without the columns that were the slowest in the one before."""

_SLOWEST_LEFT_OUT = 0.005
"""Share of the columns, the slowest ones against their prediction: the first ones on a page of memory, which
the system sets to zero, and those that were interrupted."""

_LONGEST_TOUCH = 5e-4
"""Seconds that a page of 2 MB takes at most; what is longer was something else."""


@dataclass(frozen=True)
class ColumnCosts:
    """Seconds of one core for what `columns.COLUMN_COUNTS` counts.

    For a column; an element whose alpha strings are two orbitals apart, or one with one hop; one with a hop
    of each spin; an alpha string with such, and one that was looked at; a beta string that was looked at;
    something looked up. `product` is that of a stored element times a number, `touched` that of the memory of
    a stored one: pages make a few columns much slower than others, and no count can tell which ones.
    """

    column: float = 250e-9
    same_beta: float = 2e-9
    pair: float = 2.5e-9
    run: float = 4e-9
    looked: float = 1e-9
    walked: float = 3e-9
    prepared: float = 8e-9
    product: float = 2e-9
    touched: float = 1e-9

    def seconds(self, counts: np.ndarray, stored: float = 0.0) -> np.ndarray:
        """Of columns with these COLUMN_COUNTS (columns, 6), of which the share `stored` is kept."""
        of_counts = [stored * self.touched, self.pair, self.run, self.looked, self.walked, self.prepared]
        made: np.ndarray = counts @ np.array(of_counts)
        return made + self.same_beta * _same_beta(counts) + self.column

    def fitted(self, counts: np.ndarray, seconds: np.ndarray) -> ColumnCosts:
        """To columns that took so many seconds; unchanged if they are too few."""
        if len(seconds) < _LEAST_COLUMNS:
            return self
        some = np.random.default_rng(1).integers(0, len(seconds), _MOST_COLUMNS)
        chosen = some if len(seconds) > _MOST_COLUMNS else slice(None)
        features, took = _features(counts[chosen]), seconds[chosen]
        for _ in range(_ROUNDS):
            weights = 1.0 / np.sqrt(np.maximum(took, 1e-7))
            found, _ = scipy.optimize.nnls(features * weights[:, None], took * weights)
            late = took - features @ found
            kept = late <= np.quantile(late, 1.0 - _SLOWEST_LEFT_OUT)
            features, took = features[kept], took[kept]
        made = replace(self, **dict(zip(_FEATURES, map(float, found), strict=True)))
        return replace(made, touched=made._touched(counts, seconds))

    def _touched(self, counts: np.ndarray, seconds: np.ndarray) -> float:
        """Seconds of an element that the slowest columns took longer than predicted."""
        late = seconds - self.seconds(counts)
        count = int(np.ceil(_ROUNDS * _SLOWEST_LEFT_OUT * len(late)))
        slowest = np.partition(late, len(late) - count)[len(late) - count :]
        return max(0.0, float(np.minimum(slowest, _LONGEST_TOUCH).sum())) / max(
            1.0, float(counts[:, 0].sum())
        )


_FEATURES = ("column", "same_beta", "pair", "run", "looked", "walked", "prepared")


def _features(counts: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(counts)), _same_beta(counts), counts[:, 1:]])


def _same_beta(counts: np.ndarray) -> np.ndarray:
    """Elements that are neither pairs nor walked to."""
    return np.maximum(0, counts[:, 0] - counts[:, 1] - counts[:, 4])


def costs_file() -> Path:
    return cache_dir() / "columns.json"


def known_costs() -> ColumnCosts:
    """Those measured on this machine; others as they were once measured elsewhere."""
    try:
        entry = json.loads(costs_file().read_text(encoding="utf-8"))[machine_key()]
        values = {name: float(entry[name]) for name in asdict(ColumnCosts())}
    except (OSError, ValueError, KeyError, TypeError):
        return ColumnCosts()
    return ColumnCosts(**values) if all(0 <= x < 1e-3 for x in values.values()) else ColumnCosts()


def keep_costs(costs: ColumnCosts) -> None:
    """Kept for the next run; a folder that cannot be written changes nothing."""
    path = costs_file()
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        entries = {}
    if not isinstance(entries, dict):
        entries = {}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".columns")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(entries | {machine_key(): asdict(costs)}, file, indent=1)
        Path(temporary).replace(path)
    except OSError:
        pass
