"""Programs: lists of operations on named tensors, in the order in which they are written.

Operations are values. `reads`, `writes` (assigned whole) and `accumulates` (added to) say what each
touches; accumulations commute, so they make no order among themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile

from tilewise.equations.terms import Factor
from tilewise.lazy import cached_property
from tilewise.tensor import Layout


@dataclass(frozen=True)
class Operation:
    """What all operations have: a text for people, and what they touch."""

    text: str

    @property
    def outputs(self) -> dict[str, bool]:
        """Tensors that it writes; True where it accumulates."""
        raise NotImplementedError

    @property
    def reads(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def scalar(self) -> str:
        """The scalar that its tasks sum to, if any."""
        return ""

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Product(Operation):
    """A product of two tensors, times alpha, that one target becomes or is added to."""

    target: str
    accumulate: bool
    alpha: float

    @property
    def outputs(self) -> dict[str, bool]:
        return {self.target: self.accumulate}


@dataclass(frozen=True)
class Contract(Product):
    """C(I|J) (+)= alpha A(I|K) B(K|J), a matrix product per sector; operands may lie transposed."""

    a: str
    b: str
    transpose_a: bool
    transpose_b: bool

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class FormedContract(Product):
    """C(pq|J) (+)= alpha A(pq|rs) B(rs|J), with A(pq|rs) = sum over x of v(pr|x) v(qs|x) never stored.

    Pairs pq and rs are exchange pairs. Each task forms the blocks of A that it needs.
    """

    vectors: str
    b: str

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.vectors, self.b)


@dataclass(frozen=True)
class RowContract(Product):
    """C(x q|J) (+)= alpha sum_p m(x, p) B(p q|J): a one-index contraction on row blocks, without a sort.

    x stands at `target_position` of C's rows, p at `operand_position` of B's.
    """

    matrix: str
    operand: str
    transpose: bool  # the matrix is stored as m(p|x)
    target_position: int
    operand_position: int

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.matrix, self.operand)


@dataclass(frozen=True)
class RowInner(Product):
    """C(x|y) (+)= alpha sum_qJ A(x q|J) B(q y|J), with x and y at the given positions of their rows."""

    a: str
    b: str
    position_a: int
    position_b: int

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class Read:
    """A product of factors, summed over `sums`, with a coefficient for each target of its Sort."""

    factors: tuple[Factor, ...]
    sums: str
    coefficients: tuple[float, ...]


@dataclass(frozen=True)
class Sort(Operation):
    """Targets (+)= sums of permuted, packed, unpacked or multiplied tensors, in one pass.

    All targets have one layout and are indexed by `letters`; a letter that stands twice means the elements
    on that diagonal. An `elementwise` sort reads tensors of that same layout in that same order. `joined`
    says for the row and the column group whether its packed pair stays packed in all reads.
    """

    targets: tuple[str, ...]
    accumulate: tuple[bool, ...]
    letters: str
    terms: tuple[Read, ...]
    elementwise: bool
    joined: tuple[bool, bool]

    @cached_property
    def outputs(self) -> dict[str, bool]:
        return dict(zip(self.targets, self.accumulate, strict=True))

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f.name for read in self.terms for f in read.factors))


@dataclass(frozen=True)
class Dot(Operation):
    """A scalar += the sum of products of two tensors of one layout, with a factor for each parity."""

    target: str
    a: str
    b: str
    factors: tuple[float, float, float]  # for parity -1, 0, +1

    @property
    def scalar(self) -> str:
        return self.target

    @property
    def outputs(self) -> dict[str, bool]:
        return {}

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.a, self.b)


@dataclass(frozen=True)
class Update(Operation):
    """A Jacobi step on amplitudes, which makes the tensors `new` and `step` and the scalar `norm2` with the
    vector of orbital energies `gaps`; see `terms.Solve`."""

    amplitude: str
    residual: str
    new: str
    step: str
    norm2: str
    gaps: str
    row_signs: tuple[int, ...]
    col_signs: tuple[int, ...]

    @property
    def scalar(self) -> str:
        return self.norm2

    @property
    def outputs(self) -> dict[str, bool]:
        return {self.new: False, self.step: False}

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.amplitude, self.residual)


@dataclass
class Program:
    """Layouts of all tensors, operations done once (`setup`), and operations of every call."""

    layouts: dict[str, Layout] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)  # input, constant, derived or intermediate
    scalars: tuple[str, ...] = ()
    setup: tuple[Operation, ...] = ()
    operations: tuple[Operation, ...] = ()

    def bytes_of(self, name: str) -> int:
        return 8 * self.layouts[name].size

    @property
    def updates(self) -> tuple[Update, ...]:
        """The Jacobi steps, in the order of the text."""
        return tuple(op for op in self.operations if isinstance(op, Update))

    @property
    def new_that_is_read(self) -> set[str]:
        """New amplitudes that operations of the same call read."""
        return {op.new for op in self.updates} & {name for op in self.operations for name in op.reads}

    @property
    def seen_at_once(self) -> tuple[Update, ...]:
        """The first Jacobi steps, as long as operations of the same call read the new amplitudes."""
        read = self.new_that_is_read
        return tuple(takewhile(lambda op: op.new in read, self.updates))

    def needed_for(self, scalar: str) -> tuple[Operation, ...]:
        """The operations that a scalar depends on."""
        wanted: set[str] = set()
        chosen: list[Operation] = []
        for op in reversed(self.operations):
            if (isinstance(op, Dot) and op.target == scalar) or wanted & set(op.outputs):
                wanted |= set(op.reads)
                chosen.append(op)
        return tuple(reversed(chosen))

    def __str__(self) -> str:
        lines = [f"  once  {op.text}" for op in self.setup]
        lines += [f"  {op.kind:<12}{op.text}" for op in self.operations]
        return "\n".join(lines)
