"""Integrals over combinations of pairs of functions, X_h[K, L], whose rows several ranks share.

Each rank has the rows of some shells, a part of every packed triangle that it has computed itself. Where
the SCF has kept integrals, those ranks that have them serve the others. Columns are put together on all
ranks, some at a time; but ranks of one node write their rows to memory that all of them read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tilewise.chem.function_integrals import NEGLIGIBLE, BasisIntegrals
from tilewise.core import core
from tilewise.new_memory import empty

SLAB = 1 << 24
"""Bytes of columns that are put together at a time, about."""


class Peers(Protocol):
    """What the ranks of a world do together; every call is made by all of them, in the same order."""

    rank: int
    size: int

    def bcast(self, value: Any = None, root: int = 0) -> Any: ...

    def allgather(self, value: Any) -> list[Any]: ...

    def allreduce(self, values: np.ndarray, op: str = "sum") -> np.ndarray: ...

    def shared(self, length: int) -> np.ndarray | None: ...

    def give_back(self, shared: np.ndarray) -> None: ...


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Of each irrep a packed triangle, or a matrix, of which this rank has some rows."""

    parts: list[np.ndarray]
    cuts: np.ndarray
    """(ranks + 1, irreps): the first row of each rank, and the number of rows."""
    peers: Peers
    is_local: bool
    """Whether this rank, and every other one, has all of them."""
    shared: np.ndarray | None = None
    """The memory of all ranks that they are in, if they are."""

    @classmethod
    def of(
        cls, integrals: BasisIntegrals, peers: Peers, workers: int, on_one_node: bool = False
    ) -> SharedRows:
        """Rows of the integrals that were kept, or that each rank computes."""
        count = integrals.classes.n_classes
        nothing = [np.zeros(0)] * len(count)
        has = peers.allgather(isinstance(integrals.source, np.ndarray))
        ranks = np.arange(peers.size + 1)[:, None]
        if all(has):
            return cls(integrals.adapted(nothing, workers), np.where(ranks <= 0, 0, count), peers, True)
        sizes = count * (count + 1) // 2
        shared = peers.shared(int(sizes.sum())) if on_one_node else None
        room = nothing if shared is None else np.split(shared, np.cumsum(sizes)[:-1])
        if any(has):
            server, parts = has.index(True), nothing
            if peers.rank == server:
                parts = integrals.adapted(room, workers)
                _copy_triangles(parts, room)
            found = cls(parts, np.where(ranks <= server, 0, count), peers, False)
        else:
            found = cls._computed(integrals, peers, workers, room)
        if shared is None:
            return found
        peers.allgather(None)  # all have written their rows
        return replace(found, parts=room, is_local=True, shared=shared)

    def close(self) -> None:
        """They are needed no longer; collective."""
        if self.shared is not None:
            self.peers.give_back(self.shared)

    @classmethod
    def _computed(
        cls, integrals: BasisIntegrals, peers: Peers, workers: int, room: list[np.ndarray]
    ) -> SharedRows:
        """Each rank has about as many integrals; shells are not cut. They go to `room`, if there is some."""
        source, classes = integrals.source, integrals.classes
        assert not isinstance(source, np.ndarray)
        ends = np.append(0, np.cumsum(source.shell_sizes))
        work = np.array([(classes.rows_of_functions(0, int(end))[:, 1] ** 2).sum() for end in ends])
        shells = np.searchsorted(work, work[-1] * np.arange(peers.size + 1) / peers.size)
        cuts = np.array([classes.rows_of_functions(0, int(ends[s]))[:, 1] for s in shells])
        first, last = cuts[peers.rank], cuts[peers.rank + 1]
        start, end = first * (first + 1) // 2, last * (last + 1) // 2
        places = zip(room, start.tolist(), end.tolist(), strict=True)
        parts = [whole[s:e] if len(whole) else empty(e - s) for whole, s, e in places]
        core.adapt_quartets(
            **classes.tables,
            **classes.of_functions,
            libcint=source,
            threshold=NEGLIGIBLE,
            first_shell=int(shells[peers.rank]),
            last_shell=int(shells[peers.rank + 1]),
            start=start,
            out=parts,
            n_workers=workers,
        )
        return cls(parts, cuts, peers, False)

    def slabs(self, irrep: int) -> list[tuple[int, int]]:
        """Ranges of columns that are put together at a time; all of them if every rank has them."""
        n = int(self.cuts[-1, irrep])
        if self.is_local:
            return [(0, n)] if n else []
        step = max(1, SLAB // max(1, 8 * n * core.slab_width)) * core.slab_width
        return [(first, min(first + step, n)) for first in range(0, n, step)]

    def columns(self, irrep: int, first: int, last: int) -> np.ndarray:
        """Columns first:last as rows of a matrix; collective. What is local is given as it is."""
        if self.is_local:
            return self.parts[irrep]
        peers, cuts, n = self.peers, self.cuts[:, irrep], int(self.cuts[-1, irrep])
        out = empty((last - first) * n).reshape(last - first, n)
        for root in range(peers.size):
            begin, end = int(cuts[root]), int(cuts[root + 1])
            if begin == end or end <= first:
                continue
            mine = self._given(irrep, begin, end, first, last) if root == peers.rank else None
            _put(out, peers.bcast(mine, root), begin, end, first, last)
        return out

    def _given(self, irrep: int, begin: int, end: int, first: int, last: int) -> list[np.ndarray]:
        """What rows begin:end, which this rank has, have in the columns, and their own part of the rows."""
        part = self.parts[irrep]
        if part.ndim == 2:  # a matrix, all of it
            return [part[first:last].ravel()]
        base = begin * (begin + 1) // 2
        given = []
        own = np.arange(max(begin, first), min(end, last))
        given += [part[k * (k + 1) // 2 - base :][: k + 1] for k in own.tolist()]
        below = np.arange(max(begin, last), end)
        places = (below * (below + 1) // 2 - base)[:, None] + np.arange(first, last)
        return [np.concatenate(given) if given else np.zeros(0), part[places]]


def _copy_triangles(parts: list[np.ndarray], room: list[np.ndarray]) -> None:
    """Triangles, or the lower ones of matrices, to where there is room for them, unless they are there."""
    for part, to in zip(parts, room, strict=True):
        if not len(to) or np.may_share_memory(part, to):
            continue
        if part.ndim == 1:
            to[:] = part
            continue
        for k, row in enumerate(part):
            to[k * (k + 1) // 2 :][: k + 1] = row[: k + 1]


def _put(out: np.ndarray, given: list[np.ndarray], begin: int, end: int, first: int, last: int) -> None:
    """What a rank has given, to its place and across the diagonal."""
    if len(given) == 1:
        out[:] = given[0].reshape(out.shape)
        return
    rows, below = given
    at = 0
    for k in range(max(begin, first), min(end, last)):
        out[k - first, : k + 1] = rows[at : at + k + 1]
        out[: k - first, k] = rows[at + first : at + k]
        at += k + 1
    out[:, max(begin, last) : end] = below.T
