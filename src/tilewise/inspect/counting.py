"""Flops counted from layouts alone, without making tasks."""

from __future__ import annotations

import numpy as np

from tilewise.equations.program import Contract, FormedContract, Operation, Program, RowContract, RowInner
from tilewise.inspect.products import sector_products
from tilewise.tensor import Layout


def operation_flops(op: Operation, layouts: dict[str, Layout]) -> float:
    """Flops of the products of an operation in the sectors that symmetry leaves."""
    match op:
        case Contract():
            return _contract(op, layouts)
        case FormedContract():
            return _formed(op, layouts)
        case RowContract():
            return _row_contract(op, layouts)
        case RowInner():
            return _row_inner(op, layouts)
    return 0.0


def dense_flops(op: Operation, layouts: dict[str, Layout]) -> float:
    """Flops of the same products on dense tensors without packing."""
    match op:
        case Contract() | RowInner():
            a, b, c = (np.prod([float(n) for n in layouts[x].shape]) for x in (op.a, op.b, op.target))
            return 2.0 * float(np.sqrt(a * b * c))
        case FormedContract():
            v, target = layouts[op.vectors].shape, layouts[op.target].shape
            pairs, others = float(v[0]) * v[1], float(np.prod(target[2:]))
            return 2.0 * pairs * pairs * (v[2] + others)
        case RowContract():
            shapes = (layouts[x].shape for x in (op.matrix, op.operand, op.target))
            a, b, c = (np.prod([float(n) for n in shape]) for shape in shapes)
            return 2.0 * float(np.sqrt(a * b * c))
    return 0.0


def program_flops(program: Program) -> float:
    return sum(operation_flops(op, program.layouts) for op in program.operations)


def program_bytes(program: Program) -> int:
    """Bytes of all tensors that stay in memory during the iterations."""
    return sum(program.bytes_of(name) for name in program.layouts)


def _contract(op: Contract, layouts: dict[str, Layout]) -> float:
    sector, k, _, _ = sector_products(op, layouts)
    c = layouts[op.target]
    return 2.0 * float((c.nrows[sector].astype(float) * c.ncols[sector] * k).sum())


def _formed(op: FormedContract, layouts: dict[str, Layout]) -> float:
    """The product itself, and two integral blocks for each pair of tile tuples."""
    c, b, v = layouts[op.target], layouts[op.b], layouts[op.vectors]
    product = Contract("", op.target, False, 1.0, "A", op.b, False, False)
    total = _contract(product, {**layouts, "A": Layout(c.rows, b.rows)})
    depth = np.zeros(int(v.rows.labels[:, 0].max(initial=0)) + 1)
    depth[v.rows.labels[v.sector_pairs[:, 0], 0]] = v.ncols
    one, other = c.rows.tuples, b.rows.tuples
    (p, q), (r, s) = one.tiles[one.parity > 0].T, other.tiles[other.parity > 0].T
    irrep, size = c.rows.spaces[0].tiles.irrep, v.rows.tuples.size

    def count(high: np.ndarray, low: np.ndarray) -> np.ndarray:
        return size[v.rows.find([np.maximum(high, low), np.minimum(high, low)], 1)]

    same = (irrep[p] ^ irrep[q])[:, None] == (irrep[r] ^ irrep[s])
    i, j = np.nonzero(same)
    for x, y in ((r, s), (s, r)):
        work = depth[irrep[p[i]] ^ irrep[x[j]]] * count(p[i], x[j]) * count(q[i], y[j])
        total += 2.0 * float(work.sum())
    return total


def _row_contract(op: RowContract, layouts: dict[str, Layout]) -> float:
    """Each element of the target is a sum over the summed orbitals of one spin and irrep."""
    c, m = layouts[op.target], layouts[op.matrix]
    summed, kept = (m.rows, m.cols) if op.transpose else (m.cols, m.rows)
    size = _partners(kept, summed, m.sector_of.T if op.transpose else m.sector_of)
    states = np.concatenate(
        [[0.0], np.cumsum(c.rows.tuples.size * size[c.rows.tuples.tiles[:, op.target_position]])]
    )
    bounds = states[c.rows.tuple_range]
    per_sector = np.diff(bounds)
    return 2.0 * float((per_sector[c.sector_pairs[:, 0]] * c.ncols).sum())


def _partners(kept: object, summed: object, sector_of: np.ndarray) -> np.ndarray:
    """For each tile of a one-index group, how many orbitals of the other group it meets."""
    meets = (sector_of >= 0).astype(float) @ summed.sizes  # type: ignore[attr-defined]
    return meets[kept.tuples.sector][np.argsort(kept.tuples.tiles[:, 0])]  # type: ignore[attr-defined]


def _row_inner(op: RowInner, layouts: dict[str, Layout]) -> float:
    """Each stored element of A meets all orbitals y that the target pairs with its x."""
    a, c = layouts[op.a], layouts[op.target]
    size = _partners(c.rows, c.cols, c.sector_of)
    weighted = np.concatenate(
        [[0.0], np.cumsum(a.rows.tuples.size * size[a.rows.tuples.tiles[:, op.position_a]])]
    )
    per_sector = np.diff(weighted[a.rows.tuple_range])
    return 2.0 * float((per_sector[a.sector_pairs[:, 0]] * a.ncols).sum())
