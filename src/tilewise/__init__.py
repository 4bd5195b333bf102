"""Coupled-cluster and CI calculations run as load-balanced block-sparse tensor contractions.

Names are loaded when they are first used, so that `tilewise --help` answers at once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewise.chem.fcidump import read_fcidump, write_fcidump
    from tilewise.ci.calculation import CI
    from tilewise.contraction import contract
    from tilewise.errors import TilewiseError
    from tilewise.hardware.machines import MachineModel, find_machine
    from tilewise.loop import parallel_for
    from tilewise.methods.ccsd import CCSD
    from tilewise.methods.method import Method
    from tilewise.methods.plan import plan
    from tilewise.methods.uccsd import UCCSD
    from tilewise.schedule.policies import policies
    from tilewise.simulation import simulate
    from tilewise.spaces import Space, orbitals_named
    from tilewise.tce import inspect_routines, tce_routines
    from tilewise.tensor import Layout, Tensor

__version__ = "0.1.0"

__all__ = [
    "CCSD",
    "CI",
    "UCCSD",
    "Layout",
    "MachineModel",
    "Method",
    "Space",
    "Tensor",
    "TilewiseError",
    "contract",
    "find_machine",
    "inspect_routines",
    "orbitals_named",
    "parallel_for",
    "plan",
    "policies",
    "read_fcidump",
    "simulate",
    "tce_routines",
    "write_fcidump",
]

_HOMES = {
    "CCSD": "methods",
    "CI": "ci",
    "Layout": "tensor",
    "MachineModel": "hardware.machines",
    "Method": "methods",
    "Space": "spaces",
    "Tensor": "tensor",
    "TilewiseError": "errors",
    "UCCSD": "methods",
    "contract": "contraction",
    "find_machine": "hardware.machines",
    "inspect_routines": "tce",
    "orbitals_named": "spaces",
    "parallel_for": "loop",
    "plan": "methods",
    "policies": "schedule.policies",
    "read_fcidump": "chem.fcidump",
    "simulate": "simulation",
    "tce_routines": "tce",
    "write_fcidump": "chem.fcidump",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tilewise' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f"tilewise.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _watch_errors() -> None:
    """Where a launcher has started several ranks, an error of one must end all."""
    from tilewise.config import launcher

    def end_all(*error: Any) -> None:
        from tilewise.execute.mpi.failure import end_all_ranks

        end_all_ranks(*error)

    if place := launcher():
        from tilewise.witness import call_witness

        call_witness(place.rank)
        sys.excepthook = end_all


_watch_errors()
