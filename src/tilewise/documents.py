"""Results as JSON documents; `docs/plan.schema.json` and `docs/result.schema.json` describe them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewise import __version__
from tilewise.calculation import IntegralKind
from tilewise.errors import InputError
from tilewise.methods import CCSD, Plan
from tilewise.methods.granularity import Granularity
from tilewise.methods.prediction import PredictionRow
from tilewise.tensor import Tensor


def plan_document(
    plan: Plan,
    compared: Sequence[Granularity],
    machine: dict[str, Any] | None = None,
    predicted: Sequence[PredictionRow] = (),
) -> dict[str, Any]:
    """What tiles of other sizes would make, and iterations simulated on a machine, if that was asked."""
    document: dict[str, Any] = {"version": __version__, "plan": plan.to_dict()}
    if compared:
        document["granularity"] = [asdict(row) for row in compared]
    if machine:
        document["machine"] = machine
        document["simulations"] = [asdict(row) for row in predicted]
    return document


def result_document(ccsd: CCSD, integrals: IntegralKind, seconds: dict[str, float]) -> dict[str, Any]:
    """Keys are the attributes of `CCSD`; amplitudes are named by their place in the checkpoint."""
    assert ccsd.t1 is not None and ccsd.t2 is not None and ccsd.summary is not None
    kept = str(ccsd.checkpoint.resolve()) if ccsd.checkpoint and ccsd.checkpoint.is_file() else None
    return {
        "version": __version__,
        "method": "ccsd",
        "integrals": asdict(integrals),
        "converged": ccsd.converged,
        "e_hf": ccsd.e_hf,
        "e_corr": ccsd.e_corr,
        "e_tot": ccsd.e_tot,
        "t1_diagnostic": ccsd.t1_diagnostic,
        "iterations": [asdict(iteration) for iteration in ccsd.iterations],
        "iteration_seconds": ccsd.iteration_seconds,
        "seconds": seconds,
        "imbalance": ccsd.summary.imbalance,
        "workers": ccsd.by_worker,
        "t1": _amplitudes(ccsd.t1, kept, "/amplitudes/t"),
        "t2": _amplitudes(ccsd.t2, kept, "/amplitudes/T"),
        "checkpoint": kept,
        "notes": list(ccsd.notes),
        "plan": ccsd.plan.to_dict(),
    }


def _amplitudes(tensor: Tensor, file: str | None, path: str) -> dict[str, Any]:
    return {
        "file": file,
        "path": path if file else None,
        "elements": int(tensor.layout.size),
        "shape": list(tensor.layout.shape),
        "norm": tensor.norm(),
    }


def write_document(document: dict[str, Any], target: str) -> None:
    """To a file, or to the standard output for "-"."""
    text = json.dumps(document, indent=1, allow_nan=False)
    if target == "-":
        sys.stdout.write(text + "\n")
    else:
        Path(target).write_text(text + "\n", encoding="utf-8")


def check_target(option: str, target: str | None) -> None:
    """Refuses a file that could not be written, before the work whose result it is to hold."""
    if target is None or target == "-":
        return
    path = Path(target)
    if path.is_dir():
        raise InputError(f"{option} {target}: it is a folder, a file is needed")
    if not path.parent.is_dir():
        raise InputError(f"{option} {target}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option} {target}: it cannot be written, permission is denied")
