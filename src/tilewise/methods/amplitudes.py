"""The amplitudes of a method as one flat vector, in parts that the tasks of an iteration are bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tilewise.equations.program import Program
from tilewise.errors import InputError
from tilewise.execute import Runner
from tilewise.inspect.operations.update import gaps_of_states
from tilewise.tensor import Tensor


@dataclass
class Amplitudes:
    """All amplitudes that a program solves for, one after the other in the order of its steps."""

    program: Program
    vector: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.vector = np.zeros(sum(self._lengths))

    @property
    def _lengths(self) -> list[int]:
        return [self.program.layouts[op.amplitude].size for op in self.program.updates]

    def parts(self, vector: np.ndarray) -> list[np.ndarray]:
        """A vector of this length, cut into those of each amplitude."""
        return np.split(vector, np.cumsum(self._lengths)[:-1])

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The amplitudes by name; they share the memory of the vector."""
        layouts = self.program.layouts
        parts = zip(self.program.updates, self.parts(self.vector), strict=True)
        return {op.amplitude: Tensor(layouts[op.amplitude], part, op.amplitude) for op, part in parts}

    def bind(self, runner: Runner) -> None:
        """Lets the tasks read the amplitudes."""
        for name, tensor in self.tensors.items():
            runner.bind(name, tensor.data)

    def bind_step(self, runner: Runner, new: np.ndarray, step: np.ndarray) -> None:
        """Lets the tasks write the next amplitudes and their difference to these two vectors."""
        for op, fresh, change in zip(self.program.updates, self.parts(new), self.parts(step), strict=True):
            runner.bind(op.new, fresh)
            runner.bind(op.step, change)

    def norm(self, scalars: Mapping[str, float]) -> float:
        """The norm of all residuals together, from the scalars of an iteration."""
        return float(np.sqrt(sum(scalars[op.norm2] for op in self.program.updates)))

    def start_first_order(self, runner: Runner, start: Mapping[str, str]) -> None:
        """Sets the named amplitudes to a tensor over the gaps, t = K / D, and all others to zero."""
        self.vector[:] = 0.0
        tensors = self.tensors
        for op in self.program.updates:
            if op.amplitude in start:
                source = start[op.amplitude]
                if self.program.layouts[source] != self.program.layouts[op.amplitude]:
                    raise InputError(
                        f"{op.amplitude} cannot start as {source}: other letters of it are upper and lower"
                    )
                gaps = gaps_of_states(self.program.layouts[op.amplitude], runner.tensors[op.gaps])
                # What is not finite ends the first iteration.
                with np.errstate(divide="ignore", invalid="ignore"):
                    tensors[op.amplitude].data[:] = runner.tensors[source] / gaps

    def start_from(self, saved: Mapping[str, Tensor]) -> None:
        """Takes amplitudes of the same layouts."""
        for name, tensor in self.tensors.items():
            tensor.data[:] = saved[name].data
