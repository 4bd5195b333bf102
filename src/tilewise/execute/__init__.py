"""Executors: they run a schedule. Serial with NumPy twins of all kernels, or native threads."""

from tilewise.execute.machine import Machine, Result

__all__ = ["Machine", "Result"]
