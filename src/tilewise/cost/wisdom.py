"""Wisdom: fitted cost models, kept in the user's cache folder, one per machine and library versions."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from pathlib import Path

import numpy as np
import scipy

from tilewise.config import available_cpus, cache_dir
from tilewise.cost.calibrate import calibrate
from tilewise.cost.model import CostModel

FORMAT = 1


def machine_key() -> str:
    """What a measurement depends on: processor, cores, and the versions of the libraries."""
    versions = f"numpy {np.__version__}, scipy {scipy.__version__}"
    return f"{_processor()}; {available_cpus()} cores; {versions}; format {FORMAT}"


def wisdom_file() -> Path:
    return cache_dir() / "wisdom.json"


def load_or_calibrate() -> CostModel:
    """The model of this machine: from the cache if it is there and whole, else measured now and kept."""
    known = _read()
    try:
        return CostModel.from_dict(known[machine_key()])
    except (KeyError, TypeError, ValueError):
        model = calibrate()
        store(model)
        return model


def store(model: CostModel) -> None:
    """Keeps a model; a cache folder that cannot be written is no reason to fail."""
    path = wisdom_file()
    content = json.dumps(_read() | {machine_key(): model.to_dict()}, indent=1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".wisdom")
        with os.fdopen(handle, "w") as file:
            file.write(content)
        Path(temporary).replace(path)
    except OSError:
        return


def _read() -> dict[str, dict[str, dict[str, float]]]:
    try:
        data = json.loads(wisdom_file().read_text())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
