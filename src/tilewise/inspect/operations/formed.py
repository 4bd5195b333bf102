"""Chains of a FormedContract: integrals from vectors, their exchange-parity form, the product with it.

A task makes a row panel of C, of both parities, or of the antisymmetric one alone where pairs are packed `-`
(spin orbitals). For each of its tile tuples (pq) and each tuple (rs)

1. (pr|qs) and (ps|qr) are products of vectors, into the worker's arena,
2. a sort makes A+-(pq|rs) of them, in the arena too,
3. C+-(pq|J) += A+-(pq|rs) B+-(rs|J).
"""

from __future__ import annotations

import numpy as np

from tilewise.equations.program import Contract, FormedContract, Read, Sort
from tilewise.equations.terms import Factor
from tilewise.errors import InputError
from tilewise.inspect.operations.chain import STEP
from tilewise.inspect.operations.contract import contract_flops
from tilewise.inspect.operations.gemm import GEMM
from tilewise.inspect.operations.inspector import Inspector, Layouts, Setting
from tilewise.inspect.operations.panel_products import sector_map
from tilewise.inspect.operations.sort_blocks import found_blocks
from tilewise.inspect.operations.sort_reads import ByParity, Reads, parity_of
from tilewise.inspect.panels import Panels
from tilewise.inspect.records import KINDS, Table
from tilewise.inspect.tasks import Found, Touch
from tilewise.tensor import Compound, Layout

VERSIONS = {"+-": (1, -1), "-": (0,)}
"""Of each packing of C the parities of its panels, as sorts name them."""


def inspect_formed(op: FormedContract, setting: Setting) -> Found:
    layouts, panels = setting.layouts, setting.panels
    c, b, v = layouts[op.target], layouts[op.b], layouts[op.vectors]
    packed = c.rows.packing == b.rows.packing and c.rows.packing in VERSIONS
    if not packed or v.rows.packing != "+" or v.cols.rank != 1:
        raise InputError(
            f"{op.text}: exchange (+-) or antisymmetric (-) pairs of C and B and packed pairs (+) of vectors "
            "are needed"
        )
    grid = panels[op.target]
    work = _Formed(op, _formed_layout(c, b), Layout(v.rows, v.rows), grid, setting.arena)
    blocks = work.blocks
    # The task of a block is named by the first panel of C with its rows.
    row_cut = work.grid.table["row_cut"][blocks.panel]
    first_of_cut = np.full(int(work.grid.table["row_cut"].max(initial=-1)) + 1, len(grid))
    np.minimum.at(first_of_cut, grid.table["row_cut"], np.arange(len(grid)))
    task = first_of_cut[row_cut]
    order = np.argsort(task, kind="stable")[: np.count_nonzero(task < len(grid))]  # C may lack some rows
    gemms, steps, owner = _chains(op, setting, work, order, task)
    tables = blocks.tables | {"chain": steps, "gemm": gemms, "sort": blocks.tables["sort"][order]}
    result = Found("chain", owner, tables, np.unique(owner), op.accumulate)
    result.scratch, result.arena = blocks.scratch, work.arena_size
    mates = grid.mates
    named = np.flatnonzero(grid.table["parity"] >= 0)
    tasks = first_of_cut[grid.table["row_cut"][named]]
    others = np.flatnonzero(mates[named] >= 0)
    outputs = np.append(named, mates[named][others]), np.append(tasks, tasks[others])
    result.outputs = [(op.target, outputs[1], outputs[0], op.accumulate)]
    every = np.arange(len(panels[op.b]))
    result.touches = [Touch.of(op.b, np.repeat(result.tasks, len(every)), np.tile(every, len(result.tasks)))]
    return result


def _formed_layout(c: Layout, b: Layout) -> Layout:
    """Of A(pq|rs), whose columns are the rows of B turned over."""
    lower = Compound(b.rows.spaces, tuple(-s for s in c.rows.signs), b.rows.packing)
    return Layout(c.rows, lower)


class _SymmetricReads(Reads):
    def canonical(self, name: str, indices: str) -> str:
        """(pq|rs) = (rs|pq)."""
        return min(indices, indices[2:] + indices[:2])


def sort_of_integrals(text: str, target: Layout, integrals: Layout) -> tuple[Sort, ByParity]:
    """A+-(pq|rs) as a sort, and its reads of integrals, which are named by their slots."""
    read = Read((Factor("I", "acbd"),), "", (1.0,))
    sort = Sort(text, ("A",), (False,), "abcd", (read,), False, (False, False))
    versions = VERSIONS[target.rows.packing]
    reads = _SymmetricReads(sort, {"A": target, "I": integrals}, versions).by_parity()
    if len(reads) > 2:
        raise InputError(f"{text}: more integrals than two make a block")
    return sort, [
        (((stored._replace(name=str(slot)),), sums), coefficients)
        for slot, (((stored,), sums), coefficients) in enumerate(reads)
    ]


class _Formed:
    """Sort blocks in the arena: of two integral blocks at the most, they make one of each parity."""

    def __init__(
        self, op: FormedContract, target: Layout, integrals: Layout, grid: Panels, arena: int
    ) -> None:
        self.grid = Panels(target, grid.rule)
        groups = (integrals.rows, target.rows, target.cols)  # pairs of unlike spins are in the target alone
        self.slot = max(int(group.tuples.size.max(initial=0)) for group in groups) ** 2
        self.versions = VERSIONS[target.rows.packing]
        self.arena_size = (2 + len(self.versions)) * self.slot
        sort, reads = sort_of_integrals(op.text, target, integrals)
        # Until all is found, a buffer is the slot of a read, and an offset the number of a pair of tuples.
        places = Panels(integrals, grid.rule).places.alone()
        sources = [(str(slot), places, slot) for slot in range(len(reads))]
        self.blocks = found_blocks(sort, self.grid.places.alone(), [arena], sources, [(self.versions, reads)])
        out, view = self.blocks.tables["out"].reshape(-1, len(self.versions)), self.blocks.tables["view"]
        row, col = np.divmod(out["offset"][:, 0], len(target.cols.tuples))
        self.tiles = target.rows.tuples.tiles[row].T, target.cols.tuples.tiles[col].T
        out["offset"] = (2 + np.arange(len(self.versions))) * self.slot
        block = np.repeat(np.arange(len(out)), self.blocks.tables["sort"]["n_read"])
        row, col = np.divmod(view["offset"], len(integrals.cols.tuples))
        chosen = [np.flatnonzero(view["buffer"] == slot) for slot in range(len(reads))]
        self.needed = [(block[k], row[k], col[k]) for k in chosen]  # blocks, and tuples of their integrals
        view["offset"], view["buffer"] = view["buffer"] * self.slot, arena


def _chains(
    op: FormedContract, setting: Setting, work: _Formed, order: np.ndarray, task: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(gemm records, steps, task of each step); steps of a block: products, its sort, products."""
    n, v, buffer = len(order), setting.layouts[op.vectors], setting.buffers[op.vectors]
    chunks, keys = [], []  # records with (position of their block, place within it)
    position = np.full(len(task), -1)
    position[order] = np.arange(n)
    for slot, (blocks, row, col) in enumerate(work.needed):
        chunks.append(_integrals(v, buffer, row, col, slot * work.slot, setting.arena))
        keys.append(position[blocks] * 4 + slot)
    for place in range(len(work.versions)):
        which, records = _products(op, setting, work, place, position)
        chunks.append(records)
        keys.append(position[which] * 4 + 2 + place)
    key = np.concatenate(keys)
    gemms = np.concatenate(chunks)
    rank = np.argsort(key, kind="stable")[np.count_nonzero(key < 0) :]
    gemms, key = gemms[rank], key[rank]
    steps: Table = np.zeros((n, 3), STEP)
    at = np.arange(n)
    low, middle, high = (np.searchsorted(key, 4 * at + x) for x in (0, 2, 4))
    steps["kind"] = [KINDS.index("gemm"), KINDS.index("sort"), KINDS.index("gemm")]
    steps["first"] = np.stack([low, at, middle], axis=1)
    steps["count"] = np.stack([middle - low, np.ones(n, np.int64), high - middle], axis=1)
    return gemms, steps.ravel(), np.repeat(task[order], 3)


def _integrals(v: Layout, buffer: int, row: np.ndarray, col: np.ndarray, at: int, arena: int) -> np.ndarray:
    """(pr|qs) = v(pr|x) v(qs|x) for tile tuples of pairs."""
    sector_of = np.full(len(v.rows.sizes), -1)
    sector_of[v.sector_pairs[:, 0]] = np.arange(len(v.sector_pairs))
    table = v.rows.tuples
    sector = sector_of[table.sector[row]]
    there = sector >= 0
    width = np.where(there, np.append(v.ncols, 0)[sector], 0)
    start = np.where(there, v.offsets[sector], 0)
    g: Table = np.zeros(len(row), GEMM)
    g["a"] = g["b"] = buffer
    g["c"], g["c_offset"], g["ldc"] = arena, at, table.size[col]
    g["m"], g["n"], g["k"] = table.size[row], table.size[col], width
    g["a_offset"], g["b_offset"] = start + table.offset[row] * width, start + table.offset[col] * width
    g["lda"], g["ldb"], g["transpose_b"], g["alpha"] = width, width, 1, 1.0
    return g


def _products(
    op: FormedContract, setting: Setting, work: _Formed, place: int, position: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(block of each record, records): C+-(pq|J) += A+-(pq|rs) B+-(rs|J), for the parity in this place."""
    parity = parity_of(setting.layouts[op.target].rows, work.versions[place])
    c, b, buffers = setting.layouts[op.target], setting.layouts[op.b], setting.buffers
    rows, cols = (group.find(list(t), parity) for group, t in zip((c.rows, b.rows), work.tiles, strict=True))
    to_c, to_b, to_j = c.rows.tuples.sector[rows], b.rows.tuples.sector[cols], sector_map(c.cols, b.cols)
    parts, which = [], []
    for s, (rs, cs) in enumerate(c.sector_pairs.tolist()):
        mine = np.flatnonzero((rows >= 0) & (to_c == rs))
        mine = mine[np.argsort(position[mine])]
        sb = b.sector_of[to_b[mine], to_j[cs]] if to_j[cs] >= 0 else np.full(len(mine), -1)
        there = (cols[mine] >= 0) & (sb >= 0)
        # The first block of each tuple of rows assigns; it must exist even if it adds nothing.
        first = np.zeros(len(mine), bool)
        first[np.unique(rows[mine], return_index=True)[1]] = True
        keep = np.flatnonzero(there | first)
        mine, sb, there, first = mine[keep], sb[keep], there[keep], first[keep]
        g: Table = np.zeros(len(mine), GEMM)
        g["c"], g["m"] = buffers[op.target], c.rows.tuples.size[rows[mine]]
        g["n"] = g["ldc"] = c.ncols[s]
        g["c_offset"] = c.offsets[s] + c.rows.tuples.offset[rows[mine]] * c.ncols[s]
        size = np.where(there, b.rows.tuples.size[cols[mine]], 0)
        width = np.where(there, np.append(b.ncols, 0)[sb], 0)
        g["a"], g["a_offset"], g["lda"] = setting.arena, (2 + place) * work.slot, size
        g["b"], g["ldb"], g["k"] = buffers[op.b], width, size
        g["b_offset"] = np.where(there, b.offsets[sb] + b.rows.tuples.offset[cols[mine]] * width, 0)
        g["alpha"], g["beta"] = op.alpha, np.where(first, float(op.accumulate), 1.0)
        parts.append(g)
        which.append(mine)
    return np.concatenate([np.zeros(0, np.int64), *which]), np.concatenate([np.zeros(0, GEMM), *parts])


# Flops


def _flops(op: FormedContract, layouts: Layouts) -> float:
    """The product itself, and two integral blocks for each pair of tile tuples."""
    c, b, v = layouts[op.target], layouts[op.b], layouts[op.vectors]
    product = Contract("", op.target, False, 1.0, "A", op.b, False, False)
    total = contract_flops(product, {**layouts, "A": _formed_layout(c, b)})
    depth = np.zeros(int(v.rows.labels[:, 0].max(initial=0)) + 1)
    depth[v.rows.labels[v.sector_pairs[:, 0], 0]] = v.ncols
    one, other = c.rows.tuples, b.rows.tuples
    first = c.rows.parities[0]
    (p, q), (r, s) = one.tiles[one.parity == first].T, other.tiles[other.parity == first].T
    tiles, size = c.rows.spaces[0].tiles, v.rows.tuples.size
    irrep, spin = tiles.irrep, tiles.spin

    def count(high: np.ndarray, low: np.ndarray) -> np.ndarray:
        found = v.rows.find([np.maximum(high, low), np.minimum(high, low)], 1)
        return np.where(found >= 0, size[found], 0)

    same = (irrep[p] ^ irrep[q])[:, None] == (irrep[r] ^ irrep[s])
    same &= (spin[p] + spin[q])[:, None] == spin[r] + spin[s]
    i, j = np.nonzero(same)
    for x, y in ((r, s), (s, r)):
        work = depth[irrep[p[i]] ^ irrep[x[j]]] * count(p[i], x[j]) * count(q[i], y[j])
        total += 2.0 * float(work.sum())
    return total


def _dense_flops(op: FormedContract, layouts: Layouts) -> float:
    v, target = layouts[op.vectors].shape, layouts[op.target].shape
    pairs, others = float(v[0]) * v[1], float(np.prod(target[2:]))
    return 2.0 * pairs * pairs * (v[2] + others)


INSPECTOR = Inspector(inspect_formed, _flops, _dense_flops)
