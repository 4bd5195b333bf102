"""The Tensor Contraction Engine: its routines over tiles, inspected, and as a method that runs.

The routines are data. Their tasks over tiles can be counted and simulated (`inspect_routines`); in the
language of our equations they run (`TCE_CCSD`).
"""

from tilewise.methods.method import Method
from tilewise.tce import costs  # noqa: F401  (registers what tasks over tiles cost)
from tilewise.tce.inspector import inspect_routines
from tilewise.tce.routines import tce_routines
from tilewise.tce.tasks import TileGraph
from tilewise.tce.text import equation_text

TCE_CCSD = Method(
    "tce-ccsd",
    equation_text(tce_routines("ccsd")),
    start={"t2": "v_pphh"},
    results={"t1": "t1", "t2": "t2"},
    spin_orbitals=True,
)
"""CCSD over spin orbitals, by the routines of the TCE one after the other."""

__all__ = ["TCE_CCSD", "TileGraph", "equation_text", "inspect_routines", "tce_routines"]
