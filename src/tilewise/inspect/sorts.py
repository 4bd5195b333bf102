"""Sort records: which blocks of which tensors make each block of the targets.

1. Targets packed as pairs are projections, <pq+-| = (<pq| +- <qp|) / sqrt 2: every read is expanded
   into the exchanged reads that this asks for, and equal ones are merged.
2. Every output block is a tile tuple of the target (with both parities of an exchange pair at once,
   unless the pair stays packed in the reads: then it is one axis). Summed letters run over their tiles.
3. Every factor of a read is found as a stored block by its tiles; what symmetry makes zero is dropped.
   A packed factor gives a read per parity, a view with exchanged strides where the tiles are the
   other way round, and a triangle where both indices lie in one tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import Any

import numpy as np

from tilewise.equations.program import Sort
from tilewise.errors import InputError
from tilewise.inspect.panels import Panels
from tilewise.inspect.reads import Reads, Stored, parity_of
from tilewise.inspect.records import (
    MAX_AXES,
    MAX_SUMS,
    SORT_BLOCK,
    SORT_OUT,
    SORT_READ,
    SORT_VIEW,
    concatenated,
)
from tilewise.inspect.tasks import Found, Output, Touch, unique_pairs
from tilewise.tensor import Compound, Layout

CHUNK = 4096
"""Elements that a worker sorts at a time: a few such chunks fit its second-level cache."""


def inspect_sort(
    op: Sort, layouts: dict[str, Layout], buffers: dict[str, int], panels: dict[str, Panels]
) -> Found:
    grid = panels[op.targets[0]]
    parity = grid.table["parity"]
    if op.elementwise:
        return _elementwise(op, layouts, buffers, grid)
    if any(op.joined) or not parity.any():
        # A pair that stays packed has another length for each parity: one pass for each.
        versions: list[tuple[tuple[int, ...], np.ndarray]]
        versions = [((int(v),), np.flatnonzero(parity == v)) for v in np.unique(parity)]
    else:
        versions = [((1, -1), np.flatnonzero(parity == 1))]
    parts = [
        Pass(op, layouts, buffers, panels, version, chosen).found()
        for version, chosen in versions
        if len(chosen)
    ]
    return (
        _joined(parts) if parts else Pass(op, layouts, buffers, panels, (0,), np.zeros(0, np.int64)).found()
    )


def _elementwise(op: Sort, layouts: dict[str, Layout], buffers: dict[str, int], grid: Panels) -> Found:
    """Tensors of one layout in one order: a panel is one block of two axes."""
    layout, t = layouts[op.targets[0]], grid.table
    n, n_out, n_read = len(grid), len(op.targets), len(op.terms)
    ld = layout.ncols[t["sector"]]
    offset = layout.offsets[t["sector"]] + t["row0"] * ld + t["col0"]
    block = np.zeros(n, SORT_BLOCK)
    block["n_axes"], block["n_row_axes"] = 2, 1
    block["extent"][:, 0], block["extent"][:, 1] = t["nrows"], t["ncols"]
    block["first_out"], block["n_out"] = np.arange(n) * n_out, n_out
    block["first_read"], block["n_read"] = np.arange(n) * n_read, n_read
    block["first_coefficient"] = 0  # the same for all blocks
    out = np.zeros((n, n_out), SORT_OUT)
    out["offset"], out["ld"] = offset[:, None], ld[:, None]
    out["buffer"] = [buffers[name] for name in op.targets]
    out["accumulate"] = op.accumulate
    read = np.zeros((n, n_read), SORT_READ)
    read["first_view"], read["n_view"] = np.arange(n * n_read).reshape(n, n_read), 1
    view = np.zeros((n, n_read), SORT_VIEW)
    view["buffer"] = [buffers[r.factors[0].name] for r in op.terms]
    view["offset"] = offset[:, None]
    view["stride"][..., 0], view["stride"][..., 1] = ld[:, None], 1
    every = np.arange(n)
    found = Found("sort", every, block, every, all(op.accumulate))
    found.touches = [Touch.of(r.factors[0].name, every, every) for r in op.terms]
    found.outputs = [
        (name, every, every, bool(acc)) for name, acc in zip(op.targets, op.accumulate, strict=True)
    ]
    found.extras = {"out": out.ravel(), "read": read.ravel(), "view": view.ravel()}
    found.coefficients = np.array([r.coefficients for r in op.terms], np.float64).ravel()
    found.scratch = sort_scratch(block, n_out)
    return found


def sort_scratch(block: np.ndarray, n_out: int) -> int:
    """Doubles that a worker needs: an accumulator per output and two gathered views."""
    if not len(block):
        return 0
    first = np.where(block["n_axes"] > 0, block["extent"][:, 0], 1)
    rest = np.ones(len(block), np.int64)
    for axis in range(1, MAX_AXES):
        rest *= np.where(block["n_axes"] > axis, block["extent"][:, axis], 1)
    chunk = np.where(block["n_row_axes"] > 0, np.clip(CHUNK // rest, 1, first), first) * rest
    return int(chunk.max()) * (n_out + 2)


@dataclass
class Views:
    """One variant of a read: for some blocks, the stored blocks that it multiplies."""

    blocks: np.ndarray
    scale: np.ndarray
    views: list[np.ndarray]
    panels: list[np.ndarray]
    names: list[str]
    coefficients: np.ndarray
    sum_extents: list[np.ndarray]


class Pass:
    """The blocks of one set of parities."""

    def __init__(
        self,
        op: Sort,
        layouts: dict[str, Layout],
        buffers: dict[str, int],
        panels: dict[str, Panels],
        parities: tuple[int, ...],
        chosen: np.ndarray,
    ) -> None:
        self.op, self.layouts, self.buffers, self.panels = op, layouts, buffers, panels
        self.parities = parities
        self.known: dict[Any, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = {}
        self.layout, self.grid = layouts[op.targets[0]], panels[op.targets[0]]
        n = self.layout.rows.rank
        self.groups = (
            (op.letters[:n], self.layout.rows, op.joined[0]),
            (op.letters[n:], self.layout.cols, op.joined[1]),
        )
        ranges = [self.grid.tuples(k) for k in chosen]
        counts = [((r[1] - r[0]) * (r[3] - r[2])) for r in ranges]
        self.panel = np.repeat(chosen, counts)
        empty = [np.zeros(0, np.int64)]
        self.row = np.concatenate(empty + [np.repeat(np.arange(r[0], r[1]), r[3] - r[2]) for r in ranges])
        self.col = np.concatenate(empty + [np.tile(np.arange(r[2], r[3]), r[1] - r[0]) for r in ranges])
        self.tiles: dict[str, np.ndarray] = {}
        self.axis: dict[str, int] = {}
        self.extents: list[np.ndarray] = []
        self.n_row_axes = 0
        for side, (letters, compound, joined) in enumerate(self.groups):
            chosen_tuples = self.row if side == 0 else self.col
            table = compound.tuples
            for k, letter in enumerate(letters):
                self.tiles[letter] = table.tiles[chosen_tuples, k]
            if joined:
                self.axis[letters] = self.axis[letters[::-1]] = len(self.extents)
                self.extents.append(table.size[chosen_tuples])
            else:
                for letter, space in zip(letters, compound.spaces, strict=True):
                    self.axis[letter] = len(self.extents)
                    self.extents.append(space.tiles.size[self.tiles[letter]])
            if side == 0:
                self.n_row_axes = len(self.extents)

    def reads(self) -> Reads:
        """Step 1."""
        return Reads(self.op, self.layouts, self.parities, frozenset(self.axis))

    # Steps 2 and 3

    def variants(self) -> list[Views]:
        found = []
        for (factors, sums), coefficients in self.reads().by_parity().items():
            if len(sums) > MAX_SUMS:
                raise InputError(f"{self.op.text}: more than {MAX_SUMS} indices are summed without a product")
            spaces = {
                letter: self.layouts[f.name].spaces[k]
                for f in factors
                for k, letter in enumerate(f.indices)
                if letter in sums
            }
            # All blocks with the first choice of summed tiles, then all with the second, and so on.
            summed = list(product(*(range(len(spaces[letter].tiles)) for letter in sums)))
            tiles = {letter: np.tile(tile, len(summed)) for letter, tile in self.tiles.items()}
            for letter, tile in zip(sums, np.array(summed, np.int64).T, strict=True):
                tiles[letter] = np.repeat(tile, len(self.panel))
            choice = [self.factor_view(f, tiles, sums, len(summed)) for f in factors]
            valid = np.flatnonzero(np.logical_and.reduce([c[0] for c in choice]))
            if len(valid):
                found.append(
                    Views(
                        valid % len(self.panel),
                        np.prod([c[1][valid] for c in choice], axis=0),
                        [c[2][valid] for c in choice],
                        [c[3][valid] for c in choice],
                        [f.name for f in factors],
                        coefficients.ravel(),
                        [spaces[letter].tiles.size[tiles[letter][valid]] for letter in sums],
                    )
                )
        return found

    def factor_view(
        self, factor: Stored, tiles: dict[str, np.ndarray], sums: str, choices: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of one parity of a factor: (is it there, scale, view, panel) per block and choice of tiles to sum.

        Tensors of one layout differ in their buffers alone.
        """
        layout, count = self.layouts[factor.name], choices * len(self.panel)
        key = (layout, factor.indices, factor.row_parity, factor.col_parity, sums)
        if key in self.known:
            valid, scale, view, panel = self.known[key]
            view = view.copy()
            view["buffer"] = self.buffers[factor.name]
            return valid, scale, view, panel
        n = layout.rows.rank
        row = self.place(factor.indices[:n], layout.rows, factor.row_parity, tiles, sums, count)
        col = self.place(factor.indices[n:], layout.cols, factor.col_parity, tiles, sums, count)
        sector = layout.sector_of[layout.rows.tuples.sector[row.which], layout.cols.tuples.sector[col.which]]
        valid = (row.which >= 0) & (col.which >= 0) & (sector >= 0)
        view = np.zeros(len(valid), SORT_VIEW)
        view["buffer"] = self.buffers[factor.name]
        view["offset"], width = self.source(layout, sector, row.which, col.which)
        for place, unit in ((row, width), (col, np.ones_like(width))):
            for axis, stride in place.strides:
                view["stride"][:, axis] += stride * unit
            if place.pair is not None and place.triangle is not None:
                p, q, sign = place.pair
                inside = np.flatnonzero(place.triangle)
                slot = view["n_pair"][inside]
                view["p_axis"][inside, slot], view["q_axis"][inside, slot] = p, q
                view["unit"][inside, slot], view["sign"][inside, slot] = unit[inside], sign
                view["n_pair"][inside] += 1
        panel = np.full(len(valid), -1)
        panel[valid] = self.panels[factor.name].of_tuples(row.which[valid], col.which[valid])
        self.known[key] = valid, row.scale * col.scale, view, panel
        return self.known[key]

    def source(
        self, layout: Layout, sector: np.ndarray, row: np.ndarray, col: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Offset and row length of stored blocks, given by their tile tuples."""
        width = layout.ncols[sector]
        inside = layout.rows.tuples.offset[row] * width + layout.cols.tuples.offset[col]
        return layout.offsets[sector] + inside, width

    def destination(
        self, layout: Layout, sector: np.ndarray, row: np.ndarray, col: np.ndarray, version: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Offset and row length of blocks to write, and whether they are stored at all."""
        if not layout.half:
            return *self.source(layout, sector, row, col), np.ones(len(row), bool)
        bands = layout.bands
        row_band, col_band = bands.of_tuple[row], bands.of_tuple[col]
        width = bands.height[col_band]
        inside = (layout.rows.tuples.offset[row] - bands.first[row_band]) * width
        inside += layout.cols.tuples.offset[col] - bands.first[col_band]
        return bands.block(row_band, col_band) + inside, width, col_band <= row_band

    def place(
        self,
        letters: str,
        compound: Compound,
        parity: int,
        tiles: dict[str, np.ndarray],
        sums: str,
        count: int,
    ) -> _Place:
        """Where the group of a factor lies."""
        one = np.ones(count, np.int64)
        axes = {c: self.axis.get(c, MAX_AXES + sums.find(c)) for c in letters}
        chosen = [tiles[c] for c in letters]
        if not compound.packing:
            strides, unit = [], one
            for c, space, tile in zip(letters[::-1], compound.spaces[::-1], chosen[::-1], strict=True):
                strides.append((axes[c], unit))
                unit = unit * space.tiles.size[tile]
            which = compound.find(chosen, 0) if letters else np.zeros(count, np.int64)
            return _Place(which, strides, np.ones(count))
        p, q = letters[0], letters[1]
        swap = chosen[0] < chosen[1]
        high, low = np.where(swap, chosen[1], chosen[0]), np.where(swap, chosen[0], chosen[1])
        which = compound.find([high, low], parity)
        if letters in self.axis:  # the pair is one axis in the target too, which has one parity
            if parity not in [parity_of(compound, v) for v in self.parities]:
                which = np.full(count, -1)
            exchanged = letters not in (self.groups[0][0], self.groups[1][0])
            scale = np.full(count, float(parity) if exchanged else 1.0)
            return _Place(which, [(self.axis[letters], one)], scale)
        triangle = high == low
        low_size = compound.spaces[0].tiles.size[low]
        p_stride = np.where(triangle, 0, np.where(swap, one, low_size))
        q_stride = np.where(triangle, 0, np.where(swap, low_size, one))
        scale = sqrt(0.5) * np.where(swap, float(parity), 1.0)
        strides = [(axes[p], p_stride), (axes[q], q_stride)]
        return _Place(which, strides, scale, (axes[p], axes[q], parity), triangle)

    def found(self) -> Found:
        op, count = self.op, len(self.panel)
        n_out = len(op.targets) * len(self.parities)
        variants = self.variants()
        block_of = np.concatenate([np.zeros(0, np.int64), *(v.blocks for v in variants)])
        order = np.argsort(block_of, kind="stable")
        reads = np.zeros(len(block_of), SORT_READ)
        n_views = np.concatenate(
            [np.zeros(0, np.int64), *(np.full(len(v.blocks), len(v.views)) for v in variants)]
        )
        # Views lie in the order of the variants: all first factors, then all second ones, interleaved.
        views = concatenated(SORT_VIEW, [_interleaved(v.views) for v in variants])
        reads["n_view"] = n_views
        reads["first_view"] = np.cumsum(n_views) - n_views
        at = 0
        coefficients = np.zeros((len(block_of), n_out))
        for v in variants:
            part = slice(at, at + len(v.blocks))
            coefficients[part] = v.scale[:, None] * v.coefficients
            reads["n_sum"][part] = len(v.sum_extents)
            for k, extent in enumerate(v.sum_extents):
                reads["sum_extent"][part, k] = extent
            at += len(v.blocks)
        reads, coefficients, block_of = reads[order], coefficients[order], block_of[order]
        block = np.zeros(count, SORT_BLOCK)
        block["n_axes"], block["n_row_axes"] = len(self.extents), self.n_row_axes
        for axis, extent in enumerate(self.extents):
            block["extent"][:, axis] = extent
        block["first_read"] = np.searchsorted(block_of, np.arange(count))
        block["n_read"] = np.bincount(block_of, minlength=count) if count else 0
        block["first_out"], block["n_out"] = np.arange(count) * n_out, n_out
        block["first_coefficient"] = block["first_read"] * n_out
        outs, outputs = self.outs(n_out)
        keep = np.flatnonzero(block["n_read"] > 0) if all(op.accumulate) else np.arange(count)
        if self.layout.half:
            keep = np.flatnonzero((outs["buffer"] >= 0).any(axis=(1, 2)))
        result = Found("sort", self.panel[keep], block[keep], np.unique(self.panel[keep]), all(op.accumulate))
        result.outputs = [
            (name, t[sel], p[sel], acc) for name, t, p, acc in outputs for sel in [np.isin(t, result.tasks)]
        ]
        result.extras = {"out": outs.ravel(), "read": reads, "view": views}
        result.coefficients = coefficients.ravel()
        result.touches = [
            Touch.of(name, self.panel[v.blocks], panel)
            for v in variants
            for name, panel in zip(v.names, v.panels, strict=True)
        ]
        result.scratch = sort_scratch(result.records, n_out)
        return result

    def outs(self, n_out: int) -> tuple[np.ndarray, list[Output]]:
        layout, op = self.layout, self.op
        outs = np.zeros((len(self.panel), len(op.targets), len(self.parities)), SORT_OUT)
        outputs: list[Output] = []
        for v, version in enumerate(self.parities):
            tuples, triangles = [], []
            for (letters, compound, joined), first in zip(self.groups, (self.row, self.col), strict=True):
                parity = parity_of(compound, version)
                tiles = [compound.tuples.tiles[first, k] for k in range(compound.rank)]
                tuples.append(compound.find(tiles, parity) if letters else first)
                same = tiles[0] == tiles[1] if compound.packing and not joined else np.zeros(len(first), bool)
                triangles.append(np.where(same, parity, 0))
            rows, cols = layout.rows.tuples, layout.cols.tuples
            sector = layout.sector_of[rows.sector[tuples[0]], cols.sector[tuples[1]]]
            there = (tuples[0] >= 0) & (tuples[1] >= 0) & (sector >= 0)
            place, width, stored = self.destination(layout, sector, tuples[0], tuples[1], version)
            there &= stored
            panel = np.full(len(there), -1)
            panel[there] = self.grid.of_tuples(tuples[0][there], tuples[1][there])
            for k, (name, accumulate) in enumerate(zip(op.targets, op.accumulate, strict=True)):
                part = outs[:, k, v]
                part["buffer"] = np.where(there, self.buffers[name], -1)
                part["offset"], part["ld"] = place, width
                part["accumulate"] = accumulate
                part["row_triangle"], part["col_triangle"] = triangles
                outs[:, k, v] = part
                pairs = unique_pairs(self.panel[there], panel[there])
                outputs.append((name, pairs[0], pairs[1], bool(accumulate)))
        return outs, outputs


@dataclass
class _Place:
    """Where the index group of a factor lies, per block."""

    which: np.ndarray  # tile tuple
    strides: list[tuple[int, np.ndarray]]  # (axis, in units of one state of the group)
    scale: np.ndarray
    pair: tuple[int, int, int] | None = None  # (p axis, q axis, parity) of a packed pair
    triangle: np.ndarray | None = None  # where both lie in one tile


def _interleaved(views: list[np.ndarray]) -> np.ndarray:
    """The first of each, then the second of each, and so on."""
    whole = np.empty((len(views[0]), len(views)), SORT_VIEW)
    for k, part in enumerate(views):
        whole[:, k] = part
    return whole.ravel()


def _joined(parts: list[Found]) -> Found:
    """Passes of different parity as one operation: their tasks have different panels."""
    if len(parts) == 1:
        return parts[0]
    whole = parts[0]
    for part in parts[1:]:
        shift = {key: len(table) for key, table in whole.extras.items()}
        part.records["first_out"] += shift["out"]
        part.records["first_read"] += shift["read"]
        part.records["first_coefficient"] += len(whole.coefficients)
        part.extras["read"]["first_view"] += shift["view"]
        whole.extras = {key: concatenated(t.dtype, [t, part.extras[key]]) for key, t in whole.extras.items()}
        whole.coefficients = np.concatenate([whole.coefficients, part.coefficients])
        whole.panel = np.concatenate([whole.panel, part.panel])
        whole.records = concatenated(SORT_BLOCK, [whole.records, part.records])
        whole.tasks = np.concatenate([whole.tasks, part.tasks])
        whole.touches += part.touches
        whole.outputs += part.outputs
        whole.scratch = max(whole.scratch, part.scratch)
    order = np.argsort(whole.panel, kind="stable")
    whole.panel, whole.records, whole.tasks = whole.panel[order], whole.records[order], np.unique(whole.tasks)
    return whole
