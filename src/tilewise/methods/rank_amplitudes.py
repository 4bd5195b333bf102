"""Amplitudes of one rank: the rows that are at home there, of all amplitudes that a program solves for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np

from tilewise.equations.program import Update
from tilewise.errors import InputError
from tilewise.execute.distribution import Distribution
from tilewise.execute.mpi.world import Request, World
from tilewise.inspect.operations.update import gaps_of_states
from tilewise.methods.amplitudes import SPIN_FUNCTIONS, Bound
from tilewise.methods.checkpoint import Streamed
from tilewise.new_memory import zeros
from tilewise.tensor import Tensor
from tilewise.tensor.shard import Shard

STRIP = 1 << 19
"""Elements of a checkpoint that go to rank 0 at a time."""
CHECKPOINT_TAG = 7


def _finish(request: Request) -> None:
    while not request.done():
        time.sleep(1e-4)


@dataclass
class RankAmplitudes:
    """What `Amplitudes` is to one rank, for the part of the amplitudes that this one is the home of."""

    distribution: Distribution
    world: World
    vector: np.ndarray = field(init=False)
    _updates: tuple[Update, ...] = field(init=False)
    _homes: list[Shard] = field(init=False)
    _ends: list[int] = field(init=False)
    _read: set[str] = field(init=False)

    def __post_init__(self) -> None:
        program = self.distribution.program
        self._updates = program.updates
        self._read = program.new_that_is_read
        self._homes = [self.distribution.home(op.amplitude, self.world.rank) for op in self._updates]
        self._ends = list(accumulate((home.size for home in self._homes), initial=0))
        self.vector = zeros(self._ends[-1])

    def parts(self, vector: np.ndarray) -> list[np.ndarray]:
        """A vector of this length, cut into those of each amplitude."""
        return [vector[first:end] for first, end in pairwise(self._ends)]

    @property
    def n_settled(self) -> int:
        """How many numbers at the beginning are of amplitudes whose new values others are made of."""
        return self._ends[len(self.distribution.program.seen_at_once)]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The whole amplitudes, on every rank. All ranks ask for them together."""
        found = {}
        for op, home, part in zip(self._updates, self._homes, self.parts(self.vector), strict=True):
            whole = zeros(home.layout.size)
            for rank, data in enumerate(self.world.allgather(part)):
                self.distribution.home(op.amplitude, rank).put(data, whole)
            found[op.amplitude] = Tensor(home.layout, whole, op.amplitude)
        return found

    def publish(self, runner: Bound) -> None:
        """Puts the vector where tasks, also those of other ranks, read it in the next run."""
        for op, home, part in zip(self._updates, self._homes, self.parts(self.vector), strict=True):
            shard = self.distribution.shard(op.amplitude, self.world.rank)
            shard.put_part(runner.tensors[op.amplitude], home, part)

    def bind_step(self, runner: Bound, new: np.ndarray, step: np.ndarray) -> None:
        """Lets the tasks write the next amplitudes and their difference to these two vectors.

        New amplitudes that tasks read, also those of other ranks, stay among the tensors; see `take_step`.
        """
        for op, fresh, change in zip(self._updates, self.parts(new), self.parts(step), strict=True):
            if op.new not in self._read:
                runner.bind(op.new, fresh)
            runner.bind(op.step, change)

    def take_step(self, runner: Bound, new: np.ndarray) -> None:
        """Copies the new amplitudes that tasks read to this vector."""
        for op, home, part in zip(self._updates, self._homes, self.parts(new), strict=True):
            if op.new in self._read:
                shard = self.distribution.shard(op.new, self.world.rank)
                part[:] = shard.part(runner.tensors[op.new], home)

    def norm(self, scalars: Mapping[str, float]) -> float:
        """The norm of all residuals together, from the scalars of an iteration."""
        return float(np.sqrt(sum(scalars[op.norm2] for op in self._updates)))

    def weights(self, runner: Bound, spin_orbitals: bool) -> np.ndarray:
        """What each element's square counts, such that the norm of a step is its second-order energy."""
        found = [np.zeros(0)]
        for op, home in zip(self._updates, self._homes, strict=True):
            layout = home.layout
            spins = [1.0 if spin_orbitals else SPIN_FUNCTIONS[parity] for _, _, parity in layout.labels]
            counts = np.repeat(spins, layout.nrows * layout.ncols)
            found.append(home.take(np.abs(gaps_of_states(layout, runner.tensors[op.gaps])) * counts))
        return np.concatenate(found)

    def first_order(self, runner: Bound, start: Mapping[str, str]) -> np.ndarray:
        """A vector: the named amplitudes are a tensor over the gaps, t = K / D, and all others zero."""
        found = np.zeros(len(self.vector))
        for op, home, part in zip(self._updates, self._homes, self.parts(found), strict=True):
            if op.amplitude not in start:
                continue
            source = start[op.amplitude]
            if self.distribution.program.layouts[source] != home.layout:
                raise InputError(
                    f"{op.amplitude} cannot start as {source}: other letters of it are upper and lower"
                )
            gaps = home.take(gaps_of_states(home.layout, runner.tensors[op.gaps]))
            shard = self.distribution.shard(source, self.world.rank)
            with np.errstate(divide="ignore", invalid="ignore"):  # ends the first iteration
                part[:] = shard.part(runner.tensors[source], home) / gaps
        return found

    def start_from(self, saved: Mapping[str, Tensor]) -> None:
        """Takes amplitudes of the same layouts, which rank 0 has, and sends each rank its own; collective."""
        world = self.world
        for op, part in zip(self._updates, self.parts(self.vector), strict=True):
            parts = [np.zeros(0)] * world.size
            if world.rank == 0:
                whole = saved[op.amplitude].data
                parts = [self.distribution.home(op.amplitude, rank).take(whole) for rank in range(world.size)]
            part[:] = world.alltoallv(parts)[0]

    # DIIS

    @property
    def pieces(self) -> list[slice]:
        """The cells of all amplitudes in the vector."""
        found = []
        for home, end in zip(self._homes, self._ends, strict=False):
            found += [slice(end + a, end + b) for a, b in pairwise(home.starts.tolist())]
        return found

    def ordered_sum(self, partial: np.ndarray) -> np.ndarray:
        """Sums of (rows, pieces) over all pieces of all ranks, in the order of storage; collective."""
        counts = [len(home.table) for home in self._homes]
        whole, end = np.zeros((len(partial), sum(counts))), np.cumsum([0, *counts])
        for rank, part in enumerate(self.world.allgather(partial)):
            homes = [self.distribution.home(op.amplitude, rank).cells for op in self._updates]
            place = np.concatenate([first + cells for first, cells in zip(end, homes, strict=False)])
            whole[:, place] = part
        return whole.sum(axis=1)

    # Checkpoints

    def streamed(self) -> dict[str, Streamed]:
        """On rank 0: the whole amplitudes, piece by piece as they come from their homes.

        All pieces must be asked for, in the order of the amplitudes, while all other ranks `give` theirs.
        """
        return {
            op.amplitude: Streamed(home.layout, self._gathered(op.amplitude, part))
            for op, home, part in zip(self._updates, self._homes, self.parts(self.vector), strict=True)
        }

    def give(self) -> None:
        """On all other ranks: sends what is at home there to rank 0, piece by piece."""
        for op, part in zip(self._updates, self.parts(self.vector), strict=True):
            for rank, first, last, start in self._strips(op.amplitude):
                if rank == self.world.rank:
                    data = part[start : start + last - first]
                    _finish(self.world.send_panel(0, CHECKPOINT_TAG, data))

    def _gathered(self, name: str, own: np.ndarray) -> Iterator[np.ndarray]:
        for rank, first, last, start in self._strips(name):
            if rank == 0:
                yield own[start : start + last - first]
            else:
                piece = np.empty(last - first)
                _finish(self.world.receive_panel(rank, CHECKPOINT_TAG, piece))
                yield piece

    def _strips(self, name: str) -> list[tuple[int, int, int, int]]:
        """Rank, first element and the one behind the last in the whole, and first at home, of all strips."""
        found = []
        for rank in range(self.world.size):
            for first, last, start in self.distribution.home(name, rank).runs.tolist():
                for begin in range(first, last, STRIP):
                    found.append((rank, begin, min(begin + STRIP, last), start + begin - first))
        return sorted(found, key=lambda strip: strip[1])
