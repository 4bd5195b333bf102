"""The inspector: from a program to a graph of tasks, on metadata alone."""

from tilewise.inspect.counting import dense_flops, operation_flops
from tilewise.inspect.dependencies import Graph, Traffic
from tilewise.inspect.graph import TaskGraph, inspect
from tilewise.inspect.panels import PanelRule, Panels
from tilewise.inspect.tile_graph import inspect_routines
from tilewise.inspect.tile_tasks import TileGraph

__all__ = [
    "Graph",
    "PanelRule",
    "Panels",
    "TaskGraph",
    "TileGraph",
    "Traffic",
    "dense_flops",
    "inspect",
    "inspect_routines",
    "operation_flops",
]
