"""Executors run a schedule: on native threads, with NumPy twins of all kernels, or in simulation."""

from tilewise.execute.executor import Executor, Job
from tilewise.execute.runner import Result, Runner
from tilewise.native import Outcome

__all__ = ["Executor", "Job", "Outcome", "Result", "Runner"]
