"""Methods: equations as data, one solver for all of them, and the plan of a calculation."""

from tilewise.config import find_pools
from tilewise.methods.ccsd import CCSD
from tilewise.methods.method import Method
from tilewise.methods.plan import Plan, plan
from tilewise.methods.solver import Iteration, Solver
from tilewise.methods.uccsd import UCCSD

find_pools()

__all__ = ["CCSD", "UCCSD", "Iteration", "Method", "Plan", "Solver", "plan"]
