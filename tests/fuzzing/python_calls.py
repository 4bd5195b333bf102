"""Arguments of the functions and classes that `import tilewise` offers: right ones and wrong ones."""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import tilewise
from fuzzing.case import Case, Problem, Verdict, kind
from fuzzing.commands import INTERNAL, TOLERANCE
from fuzzing.mutations import WILD_WORDS, damaged_text
from fuzzing.options import POLICIES
from fuzzing.world import World
from tilewise.errors import TilewiseError

WILD_ARGUMENTS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1.5, 0.0, 1e-6, -1e-3, float("nan"), float("inf"), 10**25, "", "x", "1",
    "auto", "\n", b"x", [], [0], [0, 0], (1,), {}, {"a": 1}, {0}, 1j, np.int64(1), np.float64(2.5),
    np.array([0, 1]), np.array("x"), np.bool_(True), Path("nowhere"), range(2), Ellipsis, "é", [0, [1]],
    np.array([]), [None], np.array(1.5),
)  # fmt: skip
GOOD_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "frozen": (None, 0, [], ()),
    "symmetry": ("auto", "C1", "c1"),
    "df": (False,),
    "cholesky": (None,),
    "threads": (None, 1, 2, np.int64(1)),
    "policy": (*POLICIES, tilewise.policies["lpt"]),
    "pin": (False,),
    "tile": (None, 1, 3, 16, np.int32(4)),
    "memory": (None, "1GB", 1500, "900MB", 1e3),
    "on_the_fly": (None, False),
    "conv_tol": (1e-8, 1e-9),
    "conv_tol_residual": (1e-8, 1e-9),
    "max_cycle": (50, 60),
    "level_shift": (0.0, 0, 0.02),
    "diis_space": (8, 3),
    "executor": ("threads", "serial"),
    "checkpoint": (None, "kept.h5", Path("kept.h5")),
    "restart": (None,),
    "deterministic": (False, True),
    "trace": (None, "trace.json"),
    "machine": ("laptop", "fusion", "pvm", tilewise.MachineModel("m", 2, 2)),
    "workers": (None, 1, 2, np.int64(2)),
    "method": ("ccsd",),
    "seed": (0, 1, np.int32(2)),
    "budget": (None, 10**9),
    "in_use": (None, 0, 10**8),
    "plan": (None,),
}
"""What changes no energy."""
LIKELY_NUMBERS = (0, 1, 2, 7, 0.0, 1e-6, 0.5, 2.0, 1e3, 1e12, True, False, (1.0, 2.0, 0.5, 1.0))
NOT_TRIED = ("mf", "outline", "source", "callback", "progress", "settings")


@dataclass(frozen=True)
class CallCase(Case):
    """`function(*arguments, **named)`; `judge` looks at what comes back."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    judge: Callable[[Any], Problem | None] = lambda _: None
    valid: bool = False
    """If it is, an error is a problem."""

    def run(self, world: World) -> Verdict:
        before = Path().absolute()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                result = self.function(*self.arguments, **self.named)
                return Verdict("done", self.judge(result))
        except TilewiseError as error:
            return Verdict("refused", self._judged(error))
        except BaseException as error:
            return Verdict("traceback", Problem.of_error(error))
        finally:
            assert Path().absolute() == before

    def _judged(self, error: TilewiseError) -> Problem | None:
        text = str(error)
        if self.valid:
            return Problem("refused although valid", self.name, text)
        if not text.strip() or ("\n" in text and not self._has_line_ends):
            return Problem("not one sentence", self.name, repr(text[-300:]))
        if found := INTERNAL.search(text):
            return Problem("internal words", f"{self.name}: {found[0]}", text)
        return None

    @property
    def _has_line_ends(self) -> bool:
        given = (*self.arguments, *self.named.values())
        return any("\n" in value for value in given if isinstance(value, str))

    def smaller(self) -> Iterator[Case]:
        for key in self.named:
            yield replace(self, named={k: v for k, v in self.named.items() if k != key})

    def __str__(self) -> str:
        given = [_shown(a) for a in self.arguments] + [f"{key}={_shown(v)}" for key, v in self.named.items()]
        return f"{self.name}({', '.join(given)})"


def _shown(value: Any) -> str:
    return f"<{type(value).__name__}>" if type(value).__module__.startswith("pyscf") else repr(value)[:300]


def names_of(function: Callable[..., Any]) -> list[str]:
    """The arguments that may be given, from the function itself."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", *NOT_TRIED)]


@kind("CCSD called right", 12)
def ccsd_right(rng: random.Random, world: World) -> Case:
    name, energy = _system(rng, world)
    tight = {"conv_tol_residual": 1e-8}
    names = sorted(set(names_of(tilewise.CCSD)) & set(GOOD_ARGUMENTS))
    named = tight | {key: rng.choice(GOOD_ARGUMENTS[key]) for key in rng.sample(names, rng.randint(1, 6))}
    return CallCase(
        "CCSD.run",
        _run_ccsd,
        (_source(rng, world, name, named),),
        named,
        lambda done: _energy(done, energy),
        valid=True,
    )


@kind("CCSD called wrong", 50)
def ccsd_wrong(rng: random.Random, world: World) -> Case:
    """Wrong types and values are refused; what is taken, and changes nothing, gives the right energy."""
    name, energy = _system(rng, world)
    named = _named(rng, names_of(tilewise.CCSD))
    source = _source(rng, world, name, named) if rng.random() < 0.95 else rng.choice(WILD_ARGUMENTS)
    changing = {
        "frozen",
        "df",
        "cholesky",
        "max_cycle",
        "conv_tol",
        "conv_tol_residual",
        "on_the_fly",
        "level_shift",
        "diis_space",
    }
    known = None if changing & set(named) else energy
    return CallCase("CCSD.run", _run_ccsd, (source,), named, lambda done: _energy(done, known))


@kind("plan called wrong", 40)
def plan_wrong(rng: random.Random, world: World) -> Case:
    name, _ = _system(rng, world)
    mean_field = world.mean_field(name)
    source = rng.choice((mean_field, mean_field.mol, rng.choice(WILD_ARGUMENTS)))
    names = [*names_of(tilewise.plan), *names_of(_plan_outline())]
    return CallCase("plan", _planned, (_described(rng, source),), _named(rng, names))


@kind("simulate called wrong", 20)
def simulate_wrong(rng: random.Random, world: World) -> Case:
    name, _ = _system(rng, world)
    source = world.mean_field(name) if rng.random() < 0.9 else rng.choice(WILD_ARGUMENTS)
    source = _described(rng, source)
    return CallCase("simulate", _simulated, (source,), _named(rng, names_of(_simulate_method())))


@kind("machines made wrong", 10)
def machine_wrong(rng: random.Random, world: World) -> Case:
    """A MachineModel with odd values is refused, or a run on it can be simulated."""
    names = rng.sample(names_of(tilewise.MachineModel), rng.randint(1, 6))
    values = {key: rng.choice(WILD_ARGUMENTS if rng.random() < 0.2 else LIKELY_NUMBERS) for key in names}
    named = {"name": "m", "nodes": 2, "cores": 2} | values
    return CallCase("MachineModel", _run_on, (world.mean_field("h2"),), named)


@kind("functions called with texts", 40)
def texts(rng: random.Random, world: World) -> Case:
    """Names of policies, machines, orbitals and methods."""
    from tilewise.config import parse_memory
    from tilewise.schedule.policies import policy_named

    functions: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
        "policy_named": (policy_named, POLICIES),
        "find_machine": (tilewise.find_machine, ("laptop", "fusion.toml", "pvm")),
        "orbitals_named": (tilewise.orbitals_named, ("water-3", "beta-carotene", "uracil", "n2-aug-cc-pvtz")),
        "tce_routines": (tilewise.tce_routines, ("ccsd", "ccsdt")),
        "parse_memory": (parse_memory, ("8GB", "500 MB", "2GiB", "1e3kB")),
    }
    name = rng.choice(sorted(functions))
    function, good = functions[name]
    how = rng.random()
    if how < 0.7:
        value: Any = damaged_text(rng, rng.choice(good), 1).decode("utf-8", "surrogateescape")
    elif how < 0.85:
        value = rng.choice(WILD_WORDS)
    else:
        value = rng.choice(WILD_ARGUMENTS)
    return CallCase(name, function, (value,), {})


@kind("read_fcidump called wrong", 15)
def read_fcidump_wrong(rng: random.Random, world: World) -> Case:
    path: Any = world.file("lih.dump") if rng.random() < 0.8 else rng.choice(WILD_ARGUMENTS)
    return CallCase("read_fcidump", tilewise.read_fcidump, (path,), _named(rng, ["frozen", "symmetry"]))


def _system(rng: random.Random, world: World) -> tuple[str, float]:
    name = rng.choice(("h2", "lih"))
    return name, world.energy(name)


def _source(rng: random.Random, world: World, name: str, named: dict[str, Any]) -> Any:
    if rng.random() < 0.4 and ("frozen" not in named or rng.random() < 0.1):
        return tilewise.read_fcidump(world.file(f"{name}.dump"))
    return world.mean_field(name)


def _described(rng: random.Random, source: Any) -> Any:
    """The same, or the Reference or the Outline of a mean field."""
    if not hasattr(source, "mo_coeff") or rng.random() < 0.5:
        return source
    reference = tilewise.CCSD(source).reference
    return reference if rng.random() < 0.5 else reference.outline


def _named(rng: random.Random, names: list[str]) -> dict[str, Any]:
    return {
        key: rng.choice(WILD_ARGUMENTS)
        if rng.random() < 0.6
        else rng.choice(GOOD_ARGUMENTS.get(key, (None,)))
        for key in rng.sample(names, min(len(names), rng.randint(1, 3)))
    }


def _run_ccsd(source: Any, **named: Any) -> Any:
    return tilewise.CCSD(source, **named).run()


def _plan_outline() -> Callable[..., Any]:
    from tilewise.methods.plan import plan_outline

    return plan_outline


def _simulate_method() -> Callable[..., Any]:
    from tilewise.simulation import _simulate_method

    return _simulate_method


def _simulated(source: Any, **named: Any) -> str:
    return repr(tilewise.simulate(source, **named).makespan)


def _run_on(source: Any, **named: Any) -> str:
    return _simulated(source, machine=tilewise.MachineModel(**named), workers=2)


def _planned(source: Any, **named: Any) -> str:
    return str(tilewise.plan(source, **named))


def _energy(done: Any, expected: float | None) -> Problem | None:
    if done.converged and not np.isfinite(done.e_tot):
        return Problem("changed energy", "it is not finite", str(done.e_tot))
    if expected is not None and done.converged and abs(done.e_tot - expected) > TOLERANCE:
        return Problem("changed energy", "of a valid call", f"{done.e_tot:.10f}, PySCF has {expected:.10f}")
    return None
