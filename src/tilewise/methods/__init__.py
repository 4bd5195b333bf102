"""Methods: equations plus an amplitude loop. They know nothing of threads or schedules."""

from tilewise.config import find_pools
from tilewise.methods.ccsd import CCSD
from tilewise.methods.plan import Plan, plan

find_pools()

__all__ = ["CCSD", "Plan", "plan"]
