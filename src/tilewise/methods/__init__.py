"""Methods: equations plus an amplitude loop. They know nothing of threads or schedules."""

from tilewise.methods.ccsd import CCSD
from tilewise.methods.plan import Plan, plan

__all__ = ["CCSD", "Plan", "plan"]
