"""The records that tasks are made of, as NumPy structured types.

They are passed to the native executor as they are; `src/native/records.hpp` has the same fields in
the same order (all eight bytes wide), and `execute.native` checks their sizes. Offsets and strides
count elements of float64 buffers; a buffer is a number in the program's list of tensors, and the one
behind the last is the arena of the worker that runs the task.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

I8, F8 = np.int64, np.float64
MAX_AXES = 6
MAX_SUMS = 2

# C[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C, row-major; k = 0 scales C alone.
GEMM = np.dtype(
    [(name, I8) for name in ("a", "b", "c", "transpose_a", "transpose_b", "m", "n", "k")]
    + [(name, I8) for name in ("a_offset", "lda", "b_offset", "ldb", "c_offset", "ldc")]
    + [("alpha", F8), ("beta", F8)]
)

# A block of a sort: `n_out` outputs and `n_read` reads over the same axes. The first
# `n_row_axes` axes make the rows of the outputs. Coefficients: (n_read, n_out) from first_coefficient.
SORT_BLOCK = np.dtype(
    [("n_axes", I8), ("n_row_axes", I8), ("extent", I8, (MAX_AXES,))]
    + [(name, I8) for name in ("first_out", "n_out", "first_read", "n_read", "first_coefficient")]
)

# Where a block goes. A triangle (+1 with, -1 without its diagonal) keeps the pairs p >= q of two
# equal axes; buffer -1: this output has no such block. A block on a diagonal, which is added to, has a
# stride for each axis; of all others the strides are 0.
SORT_OUT = np.dtype(
    [(name, I8) for name in ("buffer", "offset", "ld", "accumulate", "row_triangle", "col_triangle")]
    + [("stride", I8, (MAX_AXES,))]
)

# A product of views, summed over up to MAX_SUMS further axes.
SORT_READ = np.dtype([("first_view", I8), ("n_view", I8), ("n_sum", I8), ("sum_extent", I8, (MAX_SUMS,))])

# A block of a tensor as a strided view; axes are those of the block, then the summed ones. Up to two
# pairs of axes lie in a triangle of a packed tensor: their position is unit * triangle(p, q), with a
# factor sign for p < q and sqrt(2) (or 0) for p = q.
SORT_VIEW = np.dtype(
    [("buffer", I8), ("offset", I8), ("stride", I8, (MAX_AXES + MAX_SUMS,)), ("n_pair", I8)]
    + [(name, I8, (2,)) for name in ("p_axis", "q_axis", "unit", "sign")]
)

# new = amplitude + step, step = (residual - gap amplitude) / (gap - shift), with the shift of the run,
# gap(r, c) = energies[row_energy + r] + energies[col_energy + c].
UPDATE = np.dtype(
    [(name, I8) for name in ("amplitude", "residual", "new", "step", "offset", "rows", "cols", "ld")]
    + [(name, I8) for name in ("energies", "row_energy", "col_energy")]
)

# factor * sum of a * b over a rectangle.
DOT = np.dtype([(name, I8) for name in ("a", "b", "offset", "rows", "cols", "ld")] + [("factor", F8)])

# A task: records first .. first + count of its kind, and the panels that it accumulates into.
TASK = np.dtype(
    [(name, I8) for name in ("kind", "operation", "first", "count", "first_lock", "n_lock", "panel")]
)
# An access of a task to a panel of a tensor, both by their numbers; `kind` is READ, ASSIGN or ACCUMULATE.
ACCESS = np.dtype([(name, I8) for name in ("task", "tensor", "panel", "kind")])
READ, ASSIGN, ACCUMULATE = range(3)
"""What a task does to a panel; `src/native/dependencies.hpp` has the same numbers."""

# What a run leaves of each task: its worker, when it was taken, began and ended, in nanoseconds.
TRACE = np.dtype([(name, I8) for name in ("worker", "ready", "start", "end")])
# A part of a task that is a chain: records of one of the other kinds.
STEP = np.dtype([(name, I8) for name in ("kind", "first", "count")])

KINDS = ("gemm", "sort", "update", "dot", "chain")
RECORDS = {"gemm": GEMM, "sort": SORT_BLOCK, "update": UPDATE, "dot": DOT, "chain": STEP}
EXTRAS = {"out": SORT_OUT, "read": SORT_READ, "view": SORT_VIEW}


def concatenated(dtype: np.dtype, parts: Sequence[np.ndarray]) -> np.ndarray:
    """Records of one type, one after the other; NumPy's own concatenation compares types field by field."""
    return np.frombuffer(bytearray().join(parts), dtype)  # type: ignore[arg-type]
