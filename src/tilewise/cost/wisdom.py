"""Wisdom: what was measured on a machine, kept in the user's cache folder for the next run.

One JSON file holds an entry for each machine and set of library versions: the coefficients of the cost
model, and the panel sizes that `tilewise tune --molecule` found best. Wisdom that cannot be read or does
not fit is ignored with a note, and a folder that cannot be written is a note too: nothing depends on it.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from tilewise import __version__
from tilewise.arguments import whole_number
from tilewise.config import available_cpus, blas_name, cache_dir
from tilewise.cost.calibrate import calibrate
from tilewise.cost.model import CostModel
from tilewise.inspect import PanelRule

FORMAT = 3


@dataclass(frozen=True)
class Wisdom:
    """What is known about this machine."""

    model: CostModel | None = None
    panels: dict[str, PanelRule] = field(default_factory=dict)
    """The best panels by the key of a class of calculations; see `panel_key`."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model.to_dict() if self.model else None,
            "panels": {key: [rule.height, rule.width] for key, rule in self.panels.items()},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Wisdom:
        """Raises AttributeError, KeyError, TypeError or ValueError if it is not what `to_dict` made."""
        panels = {
            key: PanelRule(whole_number("height", height), whole_number("width", width))
            for key, (height, width) in data["panels"].items()
        }
        return cls(CostModel.from_dict(data["model"]) if data["model"] else None, panels)


_measured: dict[str, CostModel] = {}
"""Models that this process has measured itself, for when they cannot be kept."""


def machine_key() -> str:
    """What a measurement depends on: processor, cores, and the versions of the libraries."""
    return f"{_processor()}; {available_cpus()} cores; {blas_name()}; {_versions()}"


def _versions() -> str:
    return f"numpy {np.__version__}, scipy {scipy.__version__}, tilewise {__version__}"


def panel_key(group_order: int, n_occ: int, n_vir: int, threads: int) -> str:
    """The class of a calculation: molecules of similar size in groups of one order, on as many threads."""
    doublings = round(np.log2(max(1, n_occ * n_vir)))
    return f"group of order {group_order}, 2^{doublings} pairs, {threads} threads"


def wisdom_file() -> Path:
    return cache_dir() / "wisdom.json"


def load() -> tuple[Wisdom, str]:
    """What is known about this machine, and a note for the user if there is something that cannot be used."""
    machines, note = _read()
    if note or not machines:
        return Wisdom(), note
    key = machine_key()
    if key not in machines:
        return Wisdom(), f"{wisdom_file()} is of another machine or of other versions, and is not used"
    try:
        return Wisdom.from_dict(machines[key]), ""
    except (AttributeError, KeyError, TypeError, ValueError):
        return Wisdom(), f"{wisdom_file()} is damaged, and is not used"


def store(wisdom: Wisdom) -> str:
    """Keeps what is known about this machine; a note for the user if that is not possible."""
    path = wisdom_file()
    machines = _read()[0] | {machine_key(): wisdom.to_dict()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".wisdom")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"format": FORMAT, "machines": machines}, file, indent=1)
            Path(temporary).replace(path)  # at once: other processes see the old file or the new one
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        return f"{path} cannot be written ({error.strerror or error}): measurements are not kept"
    return ""


def keep_model(model: CostModel) -> str:
    """Keeps a model beside what else is known; a note as `store` gives it."""
    _measured[machine_key()] = model
    return store(replace(load()[0], model=model))


def keep_panels(key: str, rule: PanelRule) -> str:
    """Keeps the best panels of a class of calculations; a note as `store` gives it."""
    known = load()[0]
    return store(replace(known, panels=known.panels | {key: rule}))


def load_or_calibrate() -> tuple[CostModel, str]:
    """The model of this machine, quickly measured now if it is not known, and a note for the user if any."""
    known, note = load()
    model = known.model or _measured.get(machine_key())
    if model is not None:
        return model, note
    model = calibrate()
    return model, "; ".join(filter(None, [note, keep_model(model)]))


def _read() -> tuple[dict[str, Any], str]:
    """The entries of all machines, and a note if there is a file that cannot be read."""
    path = wisdom_file()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"{path} cannot be read ({error.strerror or error}), and is not used"
    except ValueError:
        return {}, f"{path} is damaged, and is not used"
    if not isinstance(data, dict) or not isinstance(data.get("machines"), dict):
        return {}, f"{path} is damaged or of another version of tilewise, and is not used"
    if data.get("format") != FORMAT:
        return {}, f"{path} is of another version of tilewise, and is not used"
    return data["machines"], ""


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
