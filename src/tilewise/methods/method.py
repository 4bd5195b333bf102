"""What a method is: a text of equations, and a few lines of data. `docs/new-method.md` adds one.

LCCD = Method("lccd", TEXT, start={"T": "K"}, results={"t2": "T"})
LCCD(mf, threads=2).run().e_tot
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Outline
from tilewise.equations import Equation, parse
from tilewise.equations.constants import with_plain_constants
from tilewise.equations.terms import Solve, Statement
from tilewise.errors import InputError, one_of
from tilewise.lazy import cached_property
from tilewise.spaces import Space

if TYPE_CHECKING:
    from tilewise.methods.solver import Solver

OCCUPIED, VIRTUAL, VECTORS = "ijklmnop", "abcdefgh", "x"
"""The letters of a text."""


@dataclass(frozen=True)
class Method:
    """Equations whose solution is an energy.

    Its amplitudes are the tensors of the text's `solve` lines, in their order. A method over spatial orbitals
    needs a closed-shell reference; one over spin orbitals treats it as two equal sets of orbitals, and open
    shells as they are.
    """

    name: str
    """In small letters, as checkpoints and the command line have it."""
    text: str
    """The equations, as docs/equations.md describes them."""
    start: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Amplitudes that begin as a tensor of the text over the gaps, t = K / D; all others begin as zero."""
    results: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Attributes of a solved method, such as t2, and the amplitudes that they are."""
    energy: str = "e"
    """The scalar that is the correlation energy of the amplitudes that came in."""
    thrifty: str | None = None
    """A text with the same solution whose integrals over four virtual orbitals are formed on the fly."""
    spin_orbitals: bool = False
    """Whether the letters of the text run over spin orbitals rather than spatial ones."""
    semicanonical: bool = False
    """Whether its text takes for granted that the Fock matrix is diagonal among the occupied and among the
    virtual orbitals: an ROHF is turned to semicanonical ones."""
    open_shell: str | None = None
    """Of a method for closed shells: the name of the one that takes its place for open shells."""

    def __post_init__(self) -> None:
        self._check(self.equation)
        if self.thrifty is not None:
            self._check(self.thrifty_equation)

    def __call__(self, mf: Any, **settings: Any) -> Solver:
        """The method on a mean field, ready to `run`; the settings are those of `Solver`."""
        from tilewise.methods.solver import Solver

        made: Solver = type(self.title, (Solver,), {"method": self})(mf, **settings)
        return made

    @property
    def title(self) -> str:
        """The name in capital letters."""
        return self.name.upper()

    @cached_property
    def equation(self) -> Equation:
        """The text, parsed."""
        return parse(self.text)

    @cached_property
    def thrifty_equation(self) -> Equation:
        """The text that forms integrals on the fly, parsed."""
        assert self.thrifty is not None
        return parse(self.thrifty)

    def equation_over(self, spaces: Mapping[str, Space], on_the_fly: bool = False) -> Equation:
        """The text, its constants made of plain ones."""
        chosen = self.thrifty_equation if on_the_fly else self.equation
        return with_plain_constants(chosen, spaces)

    @property
    def amplitudes(self) -> tuple[str, ...]:
        """The tensors that the text solves for, in its order."""
        return tuple(step.amplitude.name for step in _steps(self.equation))

    def spaces(self, outline: Outline, tile: int, vectors: tuple[int, ...] | None = None) -> dict[str, Space]:
        """Letters and the orbitals that they run over; vectors per irrep where integrals are decomposed."""
        alpha, beta = outline.by_spin
        spaces = {}
        for kind, (letters, name) in enumerate(((OCCUPIED, "o"), (VIRTUAL, "v"))):
            if self.spin_orbitals:
                spaces[letters] = Space.spin_orbital(name, alpha[kind], beta[kind], tile)
            else:
                spaces[letters] = Space.spatial(name, alpha[kind], tile)
        if vectors is not None:
            spaces[VECTORS] = Space.spatial("x", vectors, max(1, *vectors))
        return spaces

    def orbital_energies(self, reference: AnyReference) -> dict[str, np.ndarray]:
        """Energies of the orbitals of each space, by its name, in hartree."""
        sets = reference.by_spin if self.spin_orbitals else reference.by_spin[:1]
        return {
            "o": np.concatenate([own.occ_energies for own in sets]),
            "v": np.concatenate([own.vir_energies for own in sets]),
        }

    def suited_to(self, outline: Outline) -> Method:
        """This method, or the one that takes its place for an open shell."""
        if self.spin_orbitals or outline.beta is None:
            return self
        if self.open_shell is None:
            raise InputError(f"{self.name} treats closed shells alone: an RHF is needed, with spin 0")
        return method_named(self.open_shell)

    def _check(self, equation: Equation) -> None:
        """Refuses data that do not belong to the text."""
        steps = {step.amplitude.name: step for step in _steps(equation)}
        assigned = {s.target.name for s in equation.statements if isinstance(s, Statement)}
        declared = equation.declarations
        if not steps:
            raise InputError(f"method {self.name}: its text has no solve line, so nothing is solved for")
        if self.energy not in assigned:
            raise InputError(f"method {self.name}: its text makes no scalar {self.energy}[], its energy")
        for name in (*self.start, *self.results.values()):
            if name not in steps:
                raise InputError(
                    f"method {self.name}: {name} is no amplitude; the text solves for {', '.join(steps)}"
                )
        for name, source in self.start.items():
            if source not in declared or str(declared[source].form) != str(declared[name].form):
                raise InputError(
                    f"method {self.name}: {name} starts as {source}, which must be a tensor of the form "
                    f"[{declared[name].form}]"
                )


def _steps(equation: Equation) -> list[Solve]:
    return [statement for statement in equation.statements if isinstance(statement, Solve)]


DEFAULT_METHOD = "ccsd"
METHODS: dict[str, Method] = {}
"""Methods that are known by name."""


def register(method: Method) -> Method:
    """Makes a method known by its name."""
    METHODS[method.name] = method
    return method


def method_named(method: Method | str) -> Method:
    """A method, or the registered one of that name."""
    if isinstance(method, Method):
        return method
    if str(method) not in METHODS:
        _find_methods()
    if str(method) not in METHODS:
        raise one_of("method", method, METHODS)
    return METHODS[str(method)]


@cache
def _find_methods() -> None:
    """Imports all modules of this folder: those that hold a method register it."""
    folder = import_module("tilewise.methods")
    for module in pkgutil.iter_modules(folder.__path__, "tilewise.methods."):
        import_module(module.name)
