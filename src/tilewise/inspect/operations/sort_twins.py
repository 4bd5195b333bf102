"""The twin of the native inspection of sorts: which blocks of which tensors make each block of the targets.

Slow, and written to be read: the tests hold the native function against it, and nothing else calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod, sqrt
from typing import Any

import numpy as np

from tilewise.inspect.operations.sort import (
    MAX_AXES,
    SORT_BLOCK,
    SORT_OUT,
    SORT_READ,
    SORT_VIEW,
    sort_chunks,
)
from tilewise.inspect.operations.sort_blocks import Passes
from tilewise.inspect.operations.sort_reads import ByParity, Stored, parity_of
from tilewise.inspect.panels import Panels
from tilewise.inspect.records import Table
from tilewise.tensor import Compound, Layout

Found = dict[Any, Any]
"""What has been met, in the order in which it was."""


@dataclass(frozen=True)
class Places:
    """Where the blocks of a tensor lie; if `alone`, each is a matrix of its own, and its offset a number."""

    panels: Panels
    alone: bool = False

    @property
    def layout(self) -> Layout:
        return self.panels.layout

    def sector(self, row: int, col: int) -> int:
        layout = self.layout
        return int(layout.sector_of[layout.rows.tuples.sector[row], layout.cols.tuples.sector[col]])

    def panel(self, row: int, col: int) -> int:
        return int(self.panels.of_tuples(np.array(row), np.array(col)))

    def source(self, row: int, col: int) -> tuple[int, int]:
        """Offset of a block of a whole tensor, and the distance of its rows."""
        layout, rows, cols = self.layout, self.layout.rows.tuples, self.layout.cols.tuples
        if self.alone:
            return row * len(cols) + col, int(cols.size[col])
        s = self.sector(row, col)
        width = int(layout.ncols[s])
        return int(layout.offsets[s] + rows.offset[row] * width + cols.offset[col]), width

    def destination(self, row: int, col: int) -> tuple[int, int]:
        """The same where the tensor may be stored by half."""
        if not self.layout.half:
            return self.source(row, col)
        bands, rows, cols = self.layout.bands, self.layout.rows.tuples, self.layout.cols.tuples
        r, c = bands.of_tuple[row], bands.of_tuple[col]
        width = int(bands.height[c])
        place = (rows.offset[row] - bands.first[r]) * width + cols.offset[col] - bands.first[c]
        return int(bands.block(r, c) + place), width

    def stored(self, row: int, col: int) -> bool:
        if row < 0 or col < 0 or self.sector(row, col) < 0:
            return False
        band = self.layout.bands.of_tuple if self.layout.half else None
        return band is None or bool(band[col] <= band[row])


Source = tuple[str, Places, int]
"""Name, places and buffer of a tensor that is read."""


@dataclass
class _Found:
    """Lists that become the tables of the result."""

    panel: list[int] = field(default_factory=list)
    blocks: list[np.ndarray] = field(default_factory=list)
    outs: list[np.ndarray] = field(default_factory=list)
    reads: list[np.ndarray] = field(default_factory=list)
    views: list[np.ndarray] = field(default_factory=list)
    coefficients: list[float] = field(default_factory=list)

    def result(self, touches: list[Found], outputs: list[Found], chunk: int) -> tuple[Any, ...]:
        """As the native function gives it."""
        tables = [
            np.array(rows, dtype)
            for rows, dtype in (
                (self.blocks, SORT_BLOCK),
                (self.outs, SORT_OUT),
                (self.reads, SORT_READ),
                (self.views, SORT_VIEW),
            )
        ]
        tasks = np.array(list(dict.fromkeys(self.panel)), np.int64)
        scratch = int((sort_chunks(tables[0], chunk) * (tables[0]["n_out"] + 2)).max(initial=0))
        pairs = [
            [np.array(list(found), np.int64).reshape(-1, 2) for found in sets] for sets in (touches, outputs)
        ]
        return np.array(self.panel, np.int64), tasks, *tables, np.array(self.coefficients), *pairs, scratch


def inspect_sort(
    places: Places,
    letters: str,
    joined: tuple[bool, bool],
    elementwise: bool,
    targets: Sequence[int],
    accumulate: Sequence[bool],
    sources: Sequence[Source],
    passes: Passes,
    chunk: int,
) -> tuple[Any, ...]:
    """(panels, tasks, blocks, outs, reads, views, coefficients, touches, outputs, scratch)."""
    if elementwise:
        return _elementwise(places, targets, accumulate, sources, passes[0][1], chunk)
    by_name = {source[0]: source for source in sources}
    return _Search(places, letters, joined, targets, accumulate, by_name, chunk).found(passes)


def _elementwise(
    places: Places,
    targets: Sequence[int],
    accumulate: Sequence[bool],
    sources: Sequence[Source],
    reads: ByParity,
    chunk: int,
) -> tuple[Any, ...]:
    """Tensors of one layout in one order: a panel is one block of two axes."""
    found, t, buffers = _Found(), places.panels.table, {name: buffer for name, _, buffer in sources}
    for panel in range(len(places.panels)):
        row, _, col, _ = places.panels.tuples(panel)
        offset, ld = places.source(row, col)
        block, read, view, out = (np.zeros((), d) for d in (SORT_BLOCK, SORT_READ, SORT_VIEW, SORT_OUT))
        block["n_axes"], block["n_row_axes"] = 2, 1
        block["extent"][:2] = t["nrows"][panel], t["ncols"][panel]
        block["first_out"], block["n_out"] = len(found.outs), len(targets)
        block["first_read"], block["n_read"] = len(found.reads), len(reads)
        for target, add in zip(targets, accumulate, strict=True):
            out["buffer"], out["offset"], out["ld"], out["accumulate"] = target, offset, ld, add
            found.outs.append(out.copy())
        for ((stored,), _), _ in reads:
            read["first_view"], read["n_view"] = len(found.views), 1
            view["buffer"], view["offset"], view["stride"][:2] = buffers[stored.name], offset, (ld, 1)
            found.reads.append(read.copy())
            found.views.append(view.copy())
        found.panel.append(panel)
        found.blocks.append(block)
    found.coefficients = [c for _, coefficients in reads for c in coefficients]
    every = {(panel, panel): None for panel in found.panel}
    return found.result([every] * len(sources), [every], chunk)


@dataclass
class _Search:
    """1. A block of a sort is a pair of tile tuples of the targets, of all parities of a pass at once.
    2. Summed letters run over their tiles. Every factor of a read is found as a stored block by the tiles of
       its letters; a read is there if all of them are.
    3. A packed factor is a view with exchanged strides where its tiles are the other way round, and a
       triangle where both lie in one tile. A pair that stays packed is one axis.
    4. A letter that the targets have twice is one axis: blocks off that diagonal are left out.
    """

    places: Places
    letters: str
    joined: tuple[bool, bool]
    targets: Sequence[int]
    accumulate: Sequence[bool]
    sources: dict[str, Source]
    chunk: int

    def __post_init__(self) -> None:
        self.lists = _Found()
        self.touches: dict[str, Found] = {name: {} for name in self.sources}
        self.groups = self.of_layout(self.letters, self.places.layout)
        self.axis: dict[str, int] = {}
        self.n_axes, self.n_row_axes = 0, 0
        for side, ((letters, _), joined) in enumerate(zip(self.groups, self.joined, strict=True)):
            for k, letter in enumerate(letters):
                if letter not in self.axis:
                    self.n_axes += not (joined and k > 0)
                    self.axis[letter] = self.n_axes - 1
            if side == 0:
                self.n_row_axes = self.n_axes

    @staticmethod
    def of_layout(letters: str, layout: Layout) -> tuple[tuple[str, Compound], tuple[str, Compound]]:
        n = layout.rows.rank
        return (letters[:n], layout.rows), (letters[n:], layout.cols)

    def found(self, passes: Passes) -> tuple[Any, ...]:
        outputs: list[Found] = [{} for _ in range(max((len(parities) for parities, _ in passes), default=0))]
        for panel, parity in enumerate(self.places.panels.table["parity"].tolist()):
            for parities, reads in passes:
                if parities[0] == parity:
                    self.add_task(panel, parities, reads, outputs)
        return self.lists.result([*self.touches.values()], outputs, self.chunk)

    def add_task(self, panel: int, parities: tuple[int, ...], reads: ByParity, outputs: list[Found]) -> None:
        row0, row1, col0, col1 = (int(x) for x in self.places.panels.tuples(panel))
        for row, col in product(range(row0, row1), range(col0, col1)):
            for version, other in self.add_block(panel, row, col, parities, reads):
                outputs[version][panel, other] = None

    def add_block(
        self, task: int, row: int, col: int, parities: tuple[int, ...], reads: ByParity
    ) -> list[tuple[int, int]]:
        """Adds a block; the panels that it writes, of each version."""
        (_, rows), (_, cols) = self.groups
        tiles = [*rows.tuples.tiles[row].tolist(), *cols.tuples.tiles[col].tolist()]
        tile = dict(zip(self.letters, tiles, strict=True))
        if [tile[letter] for letter in self.letters] != tiles:
            return []  # off the diagonal
        pairs = [
            tuple(int(group.find([tile[c] for c in own], parity_of(group, v))) for own, group in self.groups)
            for v in parities
        ]
        written = [(k, self.places.panel(*pair)) for k, pair in enumerate(pairs) if self.places.stored(*pair)]
        if not written:
            return []
        block: Table = np.zeros((), SORT_BLOCK)
        block["first_out"], block["n_out"] = len(self.lists.outs), len(self.targets) * len(parities)
        block["first_read"] = first_read = len(self.lists.reads)
        block["first_coefficient"] = len(self.lists.coefficients)
        for (factors, sums), coefficients in reads:
            for choice in product(*(self.tiles_of(letter, factors) for letter in sums)):
                chosen = tile | dict(zip(sums, choice, strict=True))
                self.add_read(task, block, factors, sums, chosen, coefficients, parities)
        block["n_read"] = len(self.lists.reads) - first_read
        if all(self.accumulate) and not block["n_read"]:
            return []
        block["n_axes"], block["n_row_axes"] = self.n_axes, self.n_row_axes
        for (own, group), number, joined in zip(self.groups, (row, col), self.joined, strict=True):
            for letter, space in zip(own, group.spaces, strict=True):
                size = group.tuples.size[number] if joined else space.tiles.size[tile[letter]]
                block["extent"][self.axis[letter]] = size
        self.add_outs(tile, parities, pairs)
        self.lists.panel.append(task)
        self.lists.blocks.append(block)
        return written

    def tiles_of(self, letter: str, factors: tuple[Stored, ...]) -> range:
        """All tiles of a summed letter."""
        factor = next(f for f in factors if letter in f.indices)
        return range(len(self.sources[factor.name][1].layout.spaces[factor.indices.index(letter)].tiles))

    def add_outs(self, tile: dict[str, int], parities: tuple[int, ...], pairs: list[Any]) -> None:
        for target, add in zip(self.targets, self.accumulate, strict=True):
            for version, pair in zip(parities, pairs, strict=True):
                out: Table = np.zeros((), SORT_OUT)
                out["buffer"], out["accumulate"] = -1, add
                if self.places.stored(*pair):
                    out["buffer"] = target
                    out["offset"], out["ld"] = self.places.destination(*pair)
                for key, (own, group), joined in zip(
                    ("row_triangle", "col_triangle"), self.groups, self.joined, strict=True
                ):
                    if group.packing and not joined and tile[own[0]] == tile[own[1]]:
                        out[key] = parity_of(group, version)
                if len(set(self.letters)) < len(self.letters):
                    self.add_out_strides(out, tile)
                self.lists.outs.append(out)

    def add_out_strides(self, out: np.ndarray, tile: dict[str, int]) -> None:
        for (own, group), unit in zip(self.groups, (int(out["ld"]), 1), strict=True):
            for letter, space in reversed(list(zip(own, group.spaces, strict=True))):
                out["stride"][self.axis[letter]] += unit
                unit *= int(space.tiles.size[tile[letter]])

    def add_read(
        self,
        task: int,
        block: np.ndarray,
        factors: tuple[Stored, ...],
        sums: str,
        tile: dict[str, int],
        coefficients: list[float],
        parities: tuple[int, ...],
    ) -> None:
        tuples = [self.tuples_of(factor, tile, parities) for factor in factors]
        if any(row < 0 or col < 0 for row, col in tuples):
            return
        if any(self.sources[f.name][1].sector(*pair) < 0 for f, pair in zip(factors, tuples, strict=True)):
            return
        axis = self.axis | {letter: MAX_AXES + k for k, letter in enumerate(sums)}
        views, scale = [], 1.0
        for factor, pair in zip(factors, tuples, strict=True):
            _, places, buffer = self.sources[factor.name]
            view: Table = np.zeros((), SORT_VIEW)
            offset, ld = places.source(*pair)
            view["buffer"], view["offset"] = buffer, offset
            scale *= prod(
                self.add_strides(view, own, group, parity, unit, tile, axis)
                for own, group, parity, unit in self.sides(factor, ld)
            )
            views.append(view)
            self.touches[factor.name][task, places.panel(*pair)] = None
        number = self.read_number(int(block["first_read"]), views, self.sum_extents(sums, tile, factors))
        first = int(block["first_coefficient"]) + (number - int(block["first_read"])) * len(coefficients)
        known = self.lists.coefficients
        known += [0.0] * (first + len(coefficients) - len(known))
        for k, coefficient in enumerate(coefficients):
            known[first + k] += scale * coefficient

    def sides(self, factor: Stored, ld: int) -> Iterator[tuple[str, Compound, int, int]]:
        """(letters, compound, parity, distance of neighbours) of the rows and of the columns."""
        layout = self.sources[factor.name][1].layout
        parities, units = (factor.row_parity, factor.col_parity), (ld, 1)
        for (own, group), parity, unit in zip(
            self.of_layout(factor.indices, layout), parities, units, strict=True
        ):
            yield own, group, parity, unit

    def tuples_of(self, factor: Stored, tile: dict[str, int], parities: tuple[int, ...]) -> tuple[int, int]:
        """Tuples of rows and columns of a factor, -1 for those that do not exist."""
        found = []
        for own, group, parity, _ in self.sides(factor, 0):
            chosen = [tile[letter] for letter in own]
            if parity and chosen[0] < chosen[1]:
                chosen.reverse()
            fits = not self.stays_packed(own, parity) or parity in [parity_of(group, v) for v in parities]
            found.append(int(group.find(chosen, parity)) if fits else -1)  # type: ignore[arg-type]
        return found[0], found[1]

    def stays_packed(self, own: str, parity: int) -> bool:
        if not parity or own[0] == own[1] or not set(own) <= set(self.axis):
            return False
        return self.axis[own[0]] == self.axis[own[1]]

    def add_strides(
        self,
        view: np.ndarray,
        own: str,
        group: Compound,
        parity: int,
        unit: int,
        tile: dict[str, int],
        axis: dict[str, int],
    ) -> float:
        """Adds the strides of one side of a factor; its scale."""
        size = [int(s.tiles.size[tile[letter]]) for letter, s in zip(own, group.spaces, strict=True)]
        if self.stays_packed(own, parity):
            view["stride"][axis[own[0]]] += unit
            return float(parity) if self.letters.index(own[0]) > self.letters.index(own[1]) else 1.0
        if not parity:
            for k in reversed(range(len(own))):
                view["stride"][axis[own[k]]] += unit * prod(size[k + 1 :])
            return 1.0
        p, q = (axis[letter] for letter in own)
        if tile[own[0]] == tile[own[1]]:
            pair = int(view["n_pair"])
            for key, value in (("p_axis", p), ("q_axis", q), ("unit", unit), ("sign", parity)):
                view[key][pair] = value
            view["n_pair"] += 1
            return sqrt(0.5)
        if tile[own[0]] > tile[own[1]]:
            view["stride"][p] += unit * size[1]
            view["stride"][q] += unit
            return sqrt(0.5)
        view["stride"][q] += unit * size[0]
        view["stride"][p] += unit
        return sqrt(0.5) * parity

    def sum_extents(self, sums: str, tile: dict[str, int], factors: tuple[Stored, ...]) -> list[int]:
        """Lengths of the summed axes."""
        found = []
        for letter in sums:
            factor = next(f for f in factors if letter in f.indices)
            space = self.sources[factor.name][1].layout.spaces[factor.indices.index(letter)]
            found.append(int(space.tiles.size[tile[letter]]))
        return found

    def read_number(self, first: int, views: list[np.ndarray], extents: list[int]) -> int:
        """A new read, or the number of one of the same block that reads the same without sums."""
        reads = self.lists.reads
        for number in range(first, len(reads)) if not extents else ():
            start, count = int(reads[number]["first_view"]), int(reads[number]["n_view"])
            known = self.lists.views[start : start + count]
            if not reads[number]["n_sum"] and [v.tobytes() for v in known] == [v.tobytes() for v in views]:
                return number
        read: Table = np.zeros((), SORT_READ)
        read["first_view"], read["n_view"], read["n_sum"] = len(self.lists.views), len(views), len(extents)
        read["sum_extent"][: len(extents)] = extents
        self.lists.views += views
        reads.append(read)
        return len(reads) - 1
