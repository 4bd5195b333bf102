"""The constants of one rank: of each tensor the cells that it holds, and of large ones nothing else.

Integrals over three or more virtual orbitals are never whole anywhere. Rows of them are made by one rank
each, a batch at a time, sent to those that need them for the cells that they hold, sorted into these, and let
go. All smaller integrals are put together on every rank, sorted there, and cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Reference
from tilewise.chem.shared_rows import Peers
from tilewise.equations.program import Program
from tilewise.equations.terms import FOCK, INTEGRAL, VECTORS, Equation
from tilewise.execute.once import run_setup
from tilewise.lazy import cached_property
from tilewise.methods.constant_sources import fock_constant, source_of, vector_rows
from tilewise.methods.row_makers import batches
from tilewise.methods.setup_streams import Held, Stream
from tilewise.new_memory import empty, written_zeros
from tilewise.schedule import Policy
from tilewise.tensor.shard import Cells, Shard

BATCH = 1 << 25
"""Bytes of rows of a large tensor that all ranks make at a time, about."""


class Ranks(Peers, Protocol):
    """A world."""

    def alltoallv(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]: ...


class Holdings(Protocol):
    """Who holds what."""

    @property
    def constants(self) -> tuple[str, ...]: ...

    def shard(self, name: str, rank: int) -> Shard: ...


@dataclass(frozen=True)
class AllConstants:
    """One rank that holds all that the iterations read."""

    program: Program

    @property
    def constants(self) -> tuple[str, ...]:
        read = {name for op in self.program.operations for name in op.reads}
        kinds = self.program.kinds
        return tuple(
            name for name in self.program.layouts if name in read and kinds[name] in ("constant", "derived")
        )

    def shard(self, name: str, rank: int) -> Shard:
        return Shard.whole(self.program.layouts[name])


@dataclass(frozen=True, eq=False)
class RankConstants:
    """Makes the constants of this rank; every step is collective."""

    program: Program
    """With the set-up, as it was before operations were split between ranks."""
    holdings: Holdings
    world: Ranks
    workers: int
    policy: Policy
    whole: dict[str, np.ndarray]
    """Constants that are not large, as they are made."""
    large: dict[str, np.ndarray]
    """This rank's cells of what is made of large ones."""
    on_one_node: bool
    """Whether ranks read integrals over basis functions from memory that all of them share."""

    @classmethod
    def of(
        cls,
        program: Program,
        holdings: Holdings,
        world: Ranks,
        workers: int,
        policy: Policy,
        on_one_node: bool = False,
    ) -> RankConstants:
        made = cls(program, holdings, world, workers, policy, {}, {}, on_one_node)
        for stream in made.streams:
            for name in stream.operation.outputs:
                if name not in made.large:
                    made.large[name] = written_zeros(made.held(name).size, workers)
        return made

    def is_large(self, name: str) -> bool:
        """Whether it grows with the third power of the virtual orbitals, or more."""
        return sum(space.name == "v" for space in self.program.layouts[name].spaces) > 2

    @cached_property
    def streams(self) -> list[Stream]:
        """Operations that read a large tensor."""
        found = []
        for op in self.program.setup:
            sources = [name for name in op.reads if self.is_large(name)]
            if sources:
                found.append(Stream(self.program, op, sources[0]))
        return found

    def held(self, name: str, rank: int | None = None) -> Shard:
        """What a rank, by default this one, holds of a constant during the set-up."""
        rank = self.world.rank if rank is None else rank
        known: dict[str, list[Shard]] = self.__dict__.setdefault("_shards", {})
        if name not in known:
            known[name] = [self._read(name, number) for number in range(self.world.size)]
            streams = self.streams_of(name)
            if streams and self.program.kinds[name] != "constant":
                known[name] = self._completed(known[name], streams)
        return known[name][rank]

    def _read(self, name: str, rank: int) -> Shard:
        """What a rank reads of a constant later on."""
        if name in self.holdings.constants:
            return self.holdings.shard(name, rank)
        return Shard(self.program.layouts[name], np.zeros(0, np.int64))

    def _completed(self, shards: list[Shard], streams: Sequence[Stream]) -> list[Shard]:
        """With cells that nobody reads later on but others are made of: each goes to one rank."""
        every = (stream.needed(self._held(rank)) for stream in streams for rank in range(len(shards)))
        missing = np.unique(np.concatenate(list(every)))
        for shard in shards:
            missing = np.setdiff1d(missing, shard.cells)
        shares = np.array_split(missing, len(shards))
        return [
            Shard(shard.layout, np.union1d(shard.cells, more))
            for shard, more in zip(shards, shares, strict=True)
        ]

    def _held(self, rank: int) -> Held:
        return lambda name: self.held(name, rank)

    def streams_of(self, name: str) -> list[Stream]:
        return [stream for stream in self.streams if stream.source == name]

    def needed(self, name: str, rank: int) -> np.ndarray:
        """Cells of a large tensor that a rank sorts into others, or holds itself."""
        known: dict[tuple[str, int], np.ndarray] = self.__dict__.setdefault("_needed", {})
        if (name, rank) not in known:
            cells = [stream.needed(self._held(rank)) for stream in self.streams_of(name)]
            known[name, rank] = np.unique(np.concatenate([self.held(name, rank).cells, *cells]))
        return known[name, rank]

    def share(self, name: str, made: Sequence[np.ndarray], values: np.ndarray) -> None:
        """Sends the cells that were made to those that need them, and takes what this rank needs; collective.

        `made` are the cells that each rank has made in this round, `values` those of this rank.
        """
        layout, world = self.program.layouts[name], self.world
        mine = Shard(layout, made[world.rank])
        parts = []
        for rank in range(world.size):
            wanted = np.intersect1d(made[world.rank], self.needed(name, rank))
            whole = rank == world.rank and len(wanted) == len(mine.cells)
            parts.append(values if whole else mine.part(values, Shard(layout, wanted)))
        needed = self.needed(name, world.rank)
        if world.size == 1:
            self.take(name, mine, values)
            return
        found = world.alltoallv(parts)
        batch = Shard(layout, np.intersect1d(np.concatenate(list(made)), needed))
        data = empty(batch.size)
        for cells, part in zip(made, found, strict=True):
            batch.put_part(data, Shard(layout, np.intersect1d(cells, needed)), part)
        self.take(name, batch, data)

    def take(self, name: str, batch: Shard, values: np.ndarray) -> None:
        """Sorts cells of a large tensor into what this rank holds."""
        own = self.held(name)
        both = Shard(own.layout, np.intersect1d(own.cells, batch.cells))
        if both.size:
            if name not in self.large:
                self.large[name] = written_zeros(own.size, self.workers)
            own.put_part(self.large[name], both, batch.part(values, both))
        for stream in self.streams_of(name):
            stream.add(self._held(self.world.rank), batch, values, self.large, self.workers)

    def share_made(self) -> None:
        """What is made of large tensors that were made in the set-up themselves, a batch at a time."""
        for stream in self.streams:
            name = stream.source
            if self.program.kinds[name] == "constant":
                continue
            layout, taken = self.program.layouts[name], np.zeros(0, np.int64)
            own = []
            for rank in range(self.world.size):  # the first that holds a cell gives it
                cells = np.setdiff1d(self.held(name, rank).cells, taken)
                taken = np.union1d(taken, cells)
                own.append(batches(cells, Cells.of(layout).sizes, BATCH / 8 / self.world.size))
            for k in range(max(map(len, own))):
                made = [each[k] if k < len(each) else np.zeros(0, np.int64) for each in own]
                mine = Shard(layout, made[self.world.rank])
                self.share(name, made, self.held(name).part(self.large[name], mine))

    def _cut(self, name: str) -> np.ndarray:
        held, read = self.held(name), self._read(name, self.world.rank)
        return self.large[name] if held.size == read.size else held.part(self.large[name], read)

    def finish(self) -> dict[str, np.ndarray]:
        """The cells of all constants that this rank holds, when the integrals are made."""
        self.share_made()
        some = tuple(op for op in self.program.setup if not any(map(self.is_large, op.reads)))
        buffers = dict(self.whole)
        run_setup(replace(self.program, setup=some), buffers, self.policy, self.workers)
        found = {}
        for name in self.holdings.constants:
            if name in self.large:
                found[name] = self._cut(name)
            elif name in buffers:
                shard = self.held(name)
                found[name] = buffers[name] if shard.is_whole else shard.take(buffers[name])
        return found


def rank_constants(
    equation: Equation,
    program: Program,
    reference: AnyReference,
    holdings: Holdings,
    world: Ranks,
    workers: int,
    policy: Policy,
    vectors: Any = None,
    ordered: bool = False,
    on_one_node: bool = False,
) -> dict[str, np.ndarray]:
    """This rank's cells of all constants of an equation that the iterations read.

    `ordered` gives the same bits for every number of ranks.
    """
    made = RankConstants.of(program, holdings, world, workers, policy, on_one_node)
    declared = {name: d for name, d in equation.declarations.items() if d.kind == "constant"}
    kinds = {name: d.definition[0].factors[0].name for name, d in declared.items()}
    plain = [name for name in declared if kinds[name] == INTEGRAL]
    fock = source_of(reference, vectors, ordered).fill(made, plain)
    rests = world.bcast(_fock_rests(reference, fock) if world.rank == 0 else None)
    for name, kind in kinds.items():
        if kind == FOCK:
            made.whole[name] = fock_constant(program.layouts[name], reference, rests)
        elif kind == VECTORS:
            made.large[name] = vector_rows(holdings.shard(name, world.rank), reference, vectors)
    return made.finish()


def _fock_rests(reference: AnyReference, fock: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """What the SCF has left besides the orbital energies, of each spin, or of both."""
    own = (reference,) if isinstance(reference, Reference) else reference.by_spin
    return [each.fock_rest(found) for each, found in zip(own, fock, strict=True)]
