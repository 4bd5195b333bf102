"""The amplitudes of a method as one flat vector, in parts that the tasks of an iteration are bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np

from tilewise.equations.program import Program, Update
from tilewise.errors import InputError
from tilewise.inspect.operations.update import gaps_of_states
from tilewise.tensor import Tensor
from tilewise.tensor.shard import Cells

SPIN_FUNCTIONS = {0: 2.0, 1: 1.0, -1: 3.0}
"""By parity: pairs symmetric in space are singlets, antisymmetric ones triplets; singles have two spins."""


class Bound(Protocol):
    """What amplitudes need of a runner: its tensors, and that others can be put in their place."""

    tensors: dict[str, np.ndarray]

    def bind(self, name: str, data: np.ndarray) -> None: ...


@dataclass
class Amplitudes:
    """All amplitudes that a program solves for, one after the other in the order of its steps."""

    program: Program
    vector: np.ndarray = field(init=False)
    _updates: tuple[Update, ...] = field(init=False)
    _ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._updates = self.program.updates
        lengths = (self.program.layouts[op.amplitude].size for op in self._updates)
        self._ends = list(accumulate(lengths, initial=0))
        self.vector = np.zeros(self._ends[-1])

    def parts(self, vector: np.ndarray) -> list[np.ndarray]:
        """A vector of this length, cut into those of each amplitude."""
        return [vector[first:end] for first, end in pairwise(self._ends)]

    @property
    def n_settled(self) -> int:
        """How many numbers at the beginning are of amplitudes whose new values others are made of."""
        return self._ends[len(self.program.seen_at_once)]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The amplitudes by name; they share the memory of the vector."""
        layouts = self.program.layouts
        parts = zip(self._updates, self.parts(self.vector), strict=True)
        return {op.amplitude: Tensor(layouts[op.amplitude], part, op.amplitude) for op, part in parts}

    def bind(self, runner: Bound) -> None:
        """Lets the tasks read the amplitudes."""
        for name, tensor in self.tensors.items():
            runner.bind(name, tensor.data)

    @property
    def pieces(self) -> list[slice]:
        """The cells of all amplitudes in the vector."""
        found = []
        for op, end in zip(self._updates, self._ends, strict=False):
            bounds = Cells.of(self.program.layouts[op.amplitude]).bounds.tolist()
            found += [slice(end + a, end + b) for a, b in pairwise(bounds)]
        return found

    def ordered_sum(self, partial: np.ndarray) -> np.ndarray:
        """Sums of (rows, pieces) over all pieces."""
        return partial.sum(axis=1)

    def publish(self, runner: Bound) -> None:
        """The vector has changed: the tasks read it where it is."""

    def bind_step(self, runner: Bound, new: np.ndarray, step: np.ndarray) -> None:
        """Lets the tasks write the next amplitudes and their difference to these two vectors."""
        for op, fresh, change in zip(self._updates, self.parts(new), self.parts(step), strict=True):
            runner.bind(op.new, fresh)
            runner.bind(op.step, change)

    def take_step(self, runner: Bound, new: np.ndarray) -> None:
        """The tasks have written the next amplitudes: they are where they belong."""

    def norm(self, scalars: Mapping[str, float]) -> float:
        """The norm of all residuals together, from the scalars of an iteration."""
        return float(np.sqrt(sum(scalars[op.norm2] for op in self._updates)))

    def weights(self, runner: Bound, spin_orbitals: bool) -> np.ndarray:
        """What each element's square counts, such that the norm of a step is its second-order energy."""
        found = [np.zeros(0)]
        for op in self.program.updates:
            layout = self.program.layouts[op.amplitude]
            spins = [1.0 if spin_orbitals else SPIN_FUNCTIONS[parity] for _, _, parity in layout.labels]
            gaps = np.abs(gaps_of_states(layout, runner.tensors[op.gaps]))
            found.append(gaps * np.repeat(spins, layout.nrows * layout.ncols))
        return np.concatenate(found)

    def first_order(self, runner: Bound, start: Mapping[str, str]) -> np.ndarray:
        """A vector: the named amplitudes are a tensor over the gaps, t = K / D, and all others zero."""
        found = np.zeros(len(self.vector))
        for op, part in zip(self._updates, self.parts(found), strict=True):
            if op.amplitude in start:
                source = start[op.amplitude]
                if self.program.layouts[source] != self.program.layouts[op.amplitude]:
                    raise InputError(
                        f"{op.amplitude} cannot start as {source}: other letters of it are upper and lower"
                    )
                gaps = gaps_of_states(self.program.layouts[op.amplitude], runner.tensors[op.gaps])
                # What is not finite ends the first iteration.
                with np.errstate(divide="ignore", invalid="ignore"):
                    part[:] = runner.tensors[source] / gaps
        return found

    def start_from(self, saved: Mapping[str, Tensor]) -> None:
        """Takes amplitudes of the same layouts."""
        for name, tensor in self.tensors.items():
            tensor.data[:] = saved[name].data
