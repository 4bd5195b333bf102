"""Block-diagonal tensors: compound indices, matricized layouts, and tensors on one flat buffer."""

from tilewise.tensor.compound import Compound
from tilewise.tensor.layout import Layout
from tilewise.tensor.tensor import Tensor

__all__ = ["Compound", "Layout", "Tensor"]
