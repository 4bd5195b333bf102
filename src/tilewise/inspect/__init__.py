"""The inspector: from a program to a graph of tasks, on metadata alone."""

from tilewise.inspect.counting import dense_flops, operation_flops
from tilewise.inspect.dependencies import Graph, Traffic
from tilewise.inspect.graph import TaskGraph, inspect
from tilewise.inspect.panels import PanelRule, Panels

__all__ = [
    "Graph",
    "PanelRule",
    "Panels",
    "TaskGraph",
    "Traffic",
    "dense_flops",
    "inspect",
    "operation_flops",
]
