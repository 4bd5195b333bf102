"""`tilewise.simulate`: a run on a machine that is not here, of a method on a molecule or of a graph."""

from __future__ import annotations

from typing import Any

from tilewise.arguments import MOST_SEED, whole_number
from tilewise.chem.reference import Outline
from tilewise.chem.sources import outline_of
from tilewise.errors import one_of
from tilewise.execute import simulated
from tilewise.execute.simulated import Simulation
from tilewise.hardware.machines import MachineModel, find_machine
from tilewise.inspect import Graph
from tilewise.methods.method import DEFAULT_METHOD, Method
from tilewise.methods.prediction import Predictor
from tilewise.methods.workload import OWN, Workload, workload_of
from tilewise.schedule import Policy, policy_named
from tilewise.schedule.policies import DEFAULT_POLICY
from tilewise.tce import workload as tce

EQUATIONS = (OWN, *tce.EQUATIONS)
"""What can be simulated, by name: our own method, or the TCE's routines."""


def workload(outline: Outline, equations: str = OWN, tile: int | None = None) -> Workload:
    """The tasks of an iteration of CCSD or of the TCE's routines, in tiles of at most `tile` orbitals."""
    if str(equations) not in EQUATIONS:
        raise one_of("equations", equations, EQUATIONS)
    if equations == OWN:
        return workload_of(outline, tile=tile)
    return tce.workload_of_routines(outline, equations, tile)


def simulate(source: Any, *arguments: Any, **settings: Any) -> Simulation:
    """Simulates one iteration.

    `simulate(mol, machine="fusion", workers=64)` takes a PySCF molecule, a mean field, a Reference or an
    Outline; settings are `machine` (a name, a file or a MachineModel), `workers` (by default a node's cores),
    `policy`, `method`, `frozen`, `symmetry`, `tile` and `seed`. Tiles and panels are those that suit the
    machine and the workers. `simulate(graph, schedule, seconds, machine)` takes a graph of tasks, as
    `execute.simulated.simulate` does.
    """
    if isinstance(source, Graph):
        return simulated.simulate(source, *arguments, **settings)
    return _simulate_method(source, *arguments, **settings)


def _simulate_method(
    source: Any,
    *,
    machine: str | MachineModel = "laptop",
    workers: int | None = None,
    policy: str | Policy = DEFAULT_POLICY,
    method: Method | str = DEFAULT_METHOD,
    frozen: Any = None,
    symmetry: str | bool | None = "auto",
    tile: int | None = None,
    seed: int = 0,
) -> Simulation:
    model = machine if isinstance(machine, MachineModel) else find_machine(machine)
    count = model.working if workers is None else whole_number("workers", workers)
    model.check(count)
    work = workload_of(outline_of(source, frozen, symmetry), method, tile)
    start = whole_number("seed", seed, least=0, most=MOST_SEED)
    predict = Predictor(work.graph_for(model, count), model, start)
    return predict(policy_named(policy), count).simulation
