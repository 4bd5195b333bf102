"""Cost models: seconds per task, from models fitted on this machine or from measured times."""

from tilewise.cost.model import CostModel, estimate

__all__ = ["CostModel", "estimate"]
