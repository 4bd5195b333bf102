"""Seconds that the items of a named loop have taken, kept in the user's cache folder for the next run."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import numpy as np

from tilewise.config import cache_dir
from tilewise.errors import InputError
from tilewise.output_files import replacing

_NAME = re.compile(r"[\w.-]{1,100}")


def check_name(name: str) -> str:
    """Names are those of files."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"learn={name!r}: it must be a name of letters, digits, '.', '_' and '-'")
    return name


def learned_seconds(name: str, count: int) -> np.ndarray | None:
    """Seconds of each of `count` items, if a loop of that name and length was run before."""
    try:
        kept = np.array(json.loads(_path(name).read_text())["seconds"], np.float64)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kept if kept.shape == (count,) and (kept >= 0).all() and np.isfinite(kept).all() else None


def keep_seconds(name: str, seconds: np.ndarray) -> None:
    """Keeps them for the next run; a folder that cannot be written is no error, for nothing depends on it."""
    path = _path(name)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as place:
            place.write_text(json.dumps({"seconds": seconds.tolist()}))


def _path(name: str) -> Path:
    return cache_dir() / "loops" / f"{name}.json"
