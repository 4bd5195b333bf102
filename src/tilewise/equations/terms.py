"""Terms as data. Everything else (execution, flop counts, the dense oracle) derives from these."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewise.tensor.layout import Form

INTEGRAL = "eri"
"""Name of the factor (pq|rs), two-electron integrals in Mulliken order."""

FOCK = "fock"
"""Name of the factor that is the Fock matrix, less the orbital energies on its diagonal."""

VECTORS = "vectors"
"""Name of the factor v(pq|x) whose products, summed over x, are the integrals."""


@dataclass(frozen=True)
class Factor:
    """A tensor with a letter for each of its indices."""

    name: str
    indices: str

    def renamed(self, letters: dict[str, str]) -> Factor:
        return Factor(self.name, "".join(letters.get(c, c) for c in self.indices))

    def __str__(self) -> str:
        return f"{self.name}[{self.indices}]"


@dataclass(frozen=True)
class Term:
    """A coefficient times a product of factors, summed over the letters that the target lacks."""

    coefficient: float
    factors: tuple[Factor, ...]

    @property
    def letters(self) -> str:
        return "".join(dict.fromkeys("".join(f.indices for f in self.factors)))

    def __str__(self) -> str:
        return f"{self.coefficient:+g} " + " ".join(map(str, self.factors))


@dataclass(frozen=True)
class Statement:
    """target (+)= sum of terms. Where the target has an index twice, they are added on that diagonal."""

    target: Factor
    accumulate: bool
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.target} {'+=' if self.accumulate else '='} {' '.join(map(str, self.terms))}"


@dataclass(frozen=True)
class Solve:
    """A Jacobi step: amplitude += (residual - D amplitude) / (D - shift), D from orbital energies.

    `signs` tells how the orbital energy of each letter of the amplitude enters D. The step makes two tensors,
    `new` and `step`, and a scalar `norm2`, the squared norm of residual - D amplitude.
    """

    amplitude: Factor
    residual: Factor
    signs: dict[str, int]

    @property
    def new(self) -> str:
        """Name of the tensor of new amplitudes."""
        return f"{self.amplitude.name}.new"

    @property
    def step(self) -> str:
        """Name of the tensor by which the new amplitudes differ from the old ones."""
        return f"{self.amplitude.name}.step"

    @property
    def norm2(self) -> str:
        """Name of the scalar."""
        return f"{self.amplitude.name}.norm2"

    @property
    def gaps(self) -> str:
        """Name of the vector of orbital energies that make D."""
        return f"{self.amplitude.name}.gaps"

    def __str__(self) -> str:
        shifts = " ".join(f"{'+' if s > 0 else '-'} {c}" for c, s in self.signs.items())
        return f"solve {self.amplitude} : {self.residual} / ({shifts.lstrip('+ ')})"


@dataclass(frozen=True)
class Declaration:
    """How a tensor is stored, and where it comes from."""

    name: str
    form: Form
    kind: str  # "input", "constant", "intermediate" or "formed"
    definition: tuple[Term, ...] = ()  # of a constant, or of what was one
    line: int = field(default=0, compare=False)  # of the text


@dataclass(frozen=True)
class Equation:
    """A text of declarations and statements."""

    declarations: dict[str, Declaration]
    statements: tuple[Statement | Solve, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements))
