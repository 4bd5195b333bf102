"""The Tensor Contraction Engine: its routines in the language of our equations, and as a method that runs."""

from tilewise.equations.tce import tce_routines
from tilewise.methods.method import Method
from tilewise.tce.text import equation_text

TCE_CCSD = Method(
    "tce-ccsd",
    equation_text(tce_routines("ccsd")),
    start={"t2": "v_pphh"},
    results={"t1": "t1", "t2": "t2"},
    spin_orbitals=True,
)
"""CCSD over spin orbitals, by the routines of the TCE one after the other."""

__all__ = ["TCE_CCSD", "equation_text"]
