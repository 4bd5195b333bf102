"""Results as JSON documents; `docs/plan.schema.json` and `docs/result.schema.json` describe them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tilewise import __version__
from tilewise.calculation import IntegralKind
from tilewise.methods import CCSD, Plan
from tilewise.methods.granularity import Granularity
from tilewise.methods.prediction import PredictionRow
from tilewise.output_files import SideFiles
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


def result_document(
    ccsd: CCSD, integrals: IntegralKind, seconds: dict[str, float], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Keys are the attributes of `CCSD`; amplitudes are named by their place in the checkpoint."""
    assert ccsd.t1 is not None and ccsd.t2 is not None and ccsd.summary is not None
    is_kept = ccsd.checkpoint is not None and ccsd.kept == len(ccsd.iterations)
    kept = str(ccsd.checkpoint.resolve()) if ccsd.checkpoint and is_kept else None
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
        "notes": [*notes, *ccsd.notes],
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


def write_document(document: dict[str, Any], target: str, files: SideFiles) -> None:
    """To a file, or to the standard output for "-"."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        files.write(target, lambda place: place.write_text(text, encoding="utf-8"))
