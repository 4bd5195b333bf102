"""Results as JSON documents; `docs/plan.schema.json` and `docs/result.schema.json` describe them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import comb
from typing import Any

from tilewise import __version__
from tilewise.cli.inputs import IntegralKind
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
    solved: CCSD, integrals: IntegralKind, seconds: dict[str, float], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Keys are the attributes of the solver; amplitudes are named by their place in the checkpoint."""
    is_kept = solved.checkpoint is not None and solved.kept == len(solved.iterations)
    kept = str(solved.checkpoint.resolve()) if solved.checkpoint and is_kept else None
    return {
        "version": __version__,
        "method": solved.method.name,
        "integrals": asdict(integrals),
        "converged": solved.converged,
        "e_hf": solved.e_hf,
        "e_corr": solved.e_corr,
        "e_tot": solved.e_tot,
        **_triples(solved),
        **solved.diagnostics,
        "iterations": [asdict(iteration) for iteration in solved.iterations],
        "iteration_seconds": solved.iteration_seconds,
        "seconds": seconds,
        "imbalance": solved.summary.imbalance if solved.summary else None,
        "workers": solved.by_worker or None,
        "ranks": [asdict(rank) for rank in solved.by_rank],
        **{
            name: _amplitudes(getattr(solved, name), kept, f"/amplitudes/{amplitude}")
            for name, amplitude in solved.method.results.items()
        },
        "checkpoint": kept,
        "notes": [*notes, *solved.notes],
        "plan": solved.plan.to_dict(),
    }


def _triples(solved: CCSD) -> dict[str, Any]:
    """Nothing unless there was a (T)."""
    found = solved.triples
    if found is None:
        return {}
    parts = {"fourth": found.fourth, "fifth": found.fifth}
    counts = {"tasks": found.tasks, "restarted": found.restarted, "flops": found.flops}
    return {"e_t": solved.e_t, "e_tot_t": solved.e_tot_t, "triples": parts | counts}


def _amplitudes(tensor: Tensor, file: str | None, path: str) -> dict[str, Any]:
    return {
        "file": file,
        "path": path if file else None,
        "elements": int(tensor.layout.size),
        "shape": list(tensor.layout.shape),
        "norm": tensor.norm(),
        **({"norms": spin_norms(tensor)} if tensor.layout.spaces[0].spins != (0,) else {}),
    }


def spin_norms(tensor: Tensor) -> dict[str, float]:
    """Norms of amplitudes over spin orbitals by spin case, as of PySCF's arrays: "a" and "b", or "aa", "ab",
    "bb" of which the mixed one is stored once for the order alpha, beta."""
    layout, found = tensor.layout, dict[str, float]()
    n = layout.rank // 2
    for s, (_, spin, _) in enumerate(layout.labels):
        alphas = (n + spin) // 2
        case, part = "a" * alphas + "b" * (n - alphas), tensor.data[layout.offsets[s] : layout.offsets[s + 1]]
        found[case] = found.get(case, 0.0) + float(part @ part) / comb(n, alphas) ** 2
    return {case: norm2**0.5 for case, norm2 in sorted(found.items())}


def write_document(document: dict[str, Any], target: str, files: SideFiles) -> None:
    """To a file, or to the standard output for "-"."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        files.write(target, lambda place: place.write_text(text, encoding="utf-8"))
