"""The inspector: from a program to a graph of tasks, on metadata alone."""

from tilewise.inspect.counting import dense_flops, operation_flops
from tilewise.inspect.graph import TaskGraph, inspect
from tilewise.inspect.panels import PanelRule, Panels

__all__ = ["PanelRule", "Panels", "TaskGraph", "dense_flops", "inspect", "operation_flops"]
