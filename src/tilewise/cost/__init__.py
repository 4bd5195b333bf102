"""Cost models: seconds per task, fitted to short measurements on this machine and kept as wisdom."""

from tilewise.cost.model import CostModel, estimate
from tilewise.cost.wisdom import load_or_calibrate

__all__ = ["CostModel", "estimate", "load_or_calibrate"]
