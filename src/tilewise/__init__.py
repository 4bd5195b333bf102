"""Coupled-cluster calculations run as load-balanced block-sparse tensor contractions."""

from tilewise.contraction import contract
from tilewise.errors import TilewiseError
from tilewise.methods import CCSD, plan
from tilewise.schedule import policies
from tilewise.spaces import Space
from tilewise.tensor import Layout, Tensor

__all__ = ["CCSD", "Layout", "Space", "Tensor", "TilewiseError", "contract", "plan", "policies"]
