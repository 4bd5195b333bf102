"""How much of the time in which data were under way was hidden: in which workers computed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def under_way(spans: Sequence[tuple[int, int]], trace: np.ndarray, workers: int) -> tuple[float, float]:
    """(seconds in which at least one span goes on, seconds of these in which the average worker computed).

    Spans are (begin, end) in nanoseconds of the clock of the trace, a record per task that ran; they may
    overlap each other.
    """
    if not spans:
        return 0.0, 0.0
    begin, end = np.array(sorted(spans), np.int64).T
    end = np.maximum.accumulate(np.maximum(begin, end))
    new = np.append(True, begin[1:] > end[:-1])
    begin, end = begin[new], end[np.append(np.flatnonzero(new)[1:], len(end)) - 1]
    # Until a moment, the part of it in which something was under way: it rises within spans alone.
    moments = np.stack([begin, end], axis=1).ravel()
    passed = np.stack([np.cumsum(end - begin) - (end - begin), np.cumsum(end - begin)], axis=1).ravel()
    hidden = np.interp(trace["end"], moments, passed) - np.interp(trace["start"], moments, passed)
    return 1e-9 * float(passed[-1]), 1e-9 * float(hidden.sum()) / workers
