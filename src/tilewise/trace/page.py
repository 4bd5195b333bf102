"""The report of a run as one HTML page, which needs neither a network nor a library."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np

from tilewise.inspect.records import KINDS
from tilewise.trace.reader import Trace, TracedIteration
from tilewise.trace.report import report

# Columns of the tasks as the script reads them: little-endian, in base64.
COLUMNS = {
    "worker": "<u4",
    "kind": "<u4",
    "operation": "<u4",
    "level": "<u4",
    "block": "<u4",
    "start": "<f8",
    "seconds": "<f4",
    "wait": "<f4",
    "predicted": "<f4",
    "flops": "<f4",
}


def report_page(trace: Trace, shown: int) -> str:
    """All iterations; the one with the number `shown` is drawn first."""
    data = json.dumps(report_data(trace, shown), separators=(",", ":"), allow_nan=False)
    parts = {
        "TITLE": html.escape(trace.title),
        "STYLE": _part("report.css"),
        "SCRIPT": _part("report.js"),
        "DATA": data.replace("<", "\\u003c"),  # no end of the script element inside of a name
    }
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda mark: parts[mark[1]], _part("report.html"))


def report_data(trace: Trace, shown: int) -> dict[str, Any]:
    """What the script draws: the numbers of all reports, and the tasks as columns."""
    return {
        "title": trace.title,
        "policy": trace.policy,
        "decision": trace.decision,
        "workers": trace.workers,
        "ranks": trace.ranks,
        "kinds": KINDS,
        "shown": shown,
        "operations": trace.operations,
        "blocks": trace.blocks,
        "types": COLUMNS,
        "iterations": [
            asdict(report(trace, iteration)) | {"columns": _columns(iteration)}
            for iteration in trace.iterations
        ],
    }


def _columns(iteration: TracedIteration) -> dict[str, str]:
    return {
        name: b64encode(np.ascontiguousarray(iteration.runs[name], kind).tobytes()).decode("ascii")
        for name, kind in COLUMNS.items()
    }


def _part(name: str) -> str:
    return files("tilewise.trace").joinpath(name).read_text(encoding="utf-8")
