"""Matrix products: C[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C, row-major; k = 0 scales C alone.

A product's time is made of the steps that its kernel takes and the words that it moves. The kernels are
`dgemm` and those of `src/native/few_rows.cpp` and `streamed.cpp`; the native core says which one runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tilewise.core import core
from tilewise.inspect.operations.kind import WORD, Kind, Spans, Work, finite
from tilewise.inspect.records import ACCUMULATE, ASSIGN, F8, I8, READ, Table

if TYPE_CHECKING:
    from tilewise.inspect.graph import TaskGraph

GEMM = np.dtype(
    [(name, I8) for name in ("a", "b", "c", "transpose_a", "transpose_b", "m", "n", "k")]
    + [(name, I8) for name in ("a_offset", "lda", "b_offset", "ldb", "c_offset", "ldc")]
    + [("alpha", F8), ("beta", F8)]
)

KERNELS: tuple[str, ...] = core.kernels
"""What computes a product, in the order of the numbers that `product_kernels` gives."""

DGEMM = ("call", "steps", "a", "a transposed", "b", "b transposed", "c", "c again")
FEW_ROWS = ("call", "steps", "deep", "rest", "deep rest", "b", "c", "c again", "tall c")
STREAMED = ("call", "wide", "middle", "thin", "odd", "a", "a transposed", "b", "c", "c again")
FEATURES = tuple(
    f"{kernel}: {feature}"
    for kernel, features in zip(KERNELS, (DGEMM, FEW_ROWS, STREAMED), strict=True)
    for feature in (*features, "far")
)

DGEMM_DEPTH = 256  # summed elements after which dgemm goes over C again
DGEMM_ROWS, DGEMM_COLS = 4, 8  # of the tile of C that it keeps in registers
STRIP_ROWS, STRIP_COLS = core.strip_rows, core.strip_cols  # the same of the kernel for few rows
FEWEST_ROWS = 2  # a strip of fewer rows waits for its sums and takes as long as this many
PREFETCHED = 20  # rows of B or C, gone through side by side, that the processor fetches ahead
STREAMED_ROWS, STREAMED_DEPTH = core.streamed_rows, core.streamed_depth  # of A that is streamed, at a time
VECTORS = (3, 2, 1)  # of C in a tile of that kernel, in a panel of B as wide


class Gemm(Kind):
    """Matrix products."""

    name: ClassVar[str] = "gemm"
    record: ClassVar[np.dtype] = GEMM
    buffers: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    part: ClassVar[str] = "gemm"
    features: ClassVar[tuple[str, ...]] = FEATURES

    def flops(self, graph: TaskGraph) -> np.ndarray:
        g = graph.records["gemm"]
        return 2.0 * g["m"] * g["n"] * g["k"]

    def bytes(self, graph: TaskGraph) -> np.ndarray:
        g = graph.records["gemm"]
        return 8.0 * (g["m"] * g["k"] + g["k"] * g["n"] + 2 * g["m"] * g["n"])

    def moved(self, graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
        """Nothing of what lies in the worker's arena; results of one task at one place count once."""
        g, arena = graph.records["gemm"], len(graph.buffers)
        m, n, k = shapes(g)
        got = WORD * (m * k * (g["a"] != arena) + k * n * (g["b"] != arena))
        return got, WORD * m * n * (_first_of_result(graph) & (g["c"] != arena))

    def operands(self, graph: TaskGraph) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        g = graph.records["gemm"]
        return [(g[x], g[f"{x}_offset"], g["k"] * g[size]) for x, size in (("a", "m"), ("b", "n"))]

    def counted(self, graph: TaskGraph, far: float) -> np.ndarray:
        return product_features(graph.records["gemm"], far)

    def spans(self, graph: TaskGraph) -> Iterator[Spans]:
        """Products that sum nothing (k = 0) read nothing; beta = 0 assigns."""
        g = graph.records["gemm"]
        every, first = np.arange(len(g)), g["c_offset"]
        access = np.where(g["beta"] == 0, ASSIGN, ACCUMULATE)
        end = _end(g, "c", g["m"], g["n"])
        yield Spans("gemm", "c_offset", "c", every, every, g["c"], first, end, access)
        some = np.flatnonzero(g["k"] > 0)
        g = g[some]
        for key, rows, cols in (("a", g["m"], g["k"]), ("b", g["k"], g["n"])):
            flip = g[f"transpose_{key}"] != 0
            rows, cols = np.where(flip, cols, rows), np.where(flip, rows, cols)
            offset = f"{key}_offset"
            end = _end(g, key, rows, cols)
            yield Spans("gemm", offset, key, some, some, g[key], g[offset], end, READ)

    def twin(self, work: Work, record: np.void) -> float:
        g = record
        m, n, k = int(g["m"]), int(g["n"]), int(g["k"])
        c = work.matrix(g["c"], g["c_offset"], m, n, g["ldc"])
        if k == 0:
            c[...] = g["beta"] * c if g["beta"] else 0.0
            return finite(c)
        shape_a, shape_b = ((k, m) if g["transpose_a"] else (m, k)), ((n, k) if g["transpose_b"] else (k, n))
        a = work.matrix(g["a"], g["a_offset"], *shape_a, g["lda"])
        b = work.matrix(g["b"], g["b_offset"], *shape_b, g["ldb"])
        product = g["alpha"] * ((a.T if g["transpose_a"] else a) @ (b.T if g["transpose_b"] else b))
        c[...] = product + g["beta"] * c if g["beta"] else product
        return finite(c)


def _end(g: np.ndarray, operand: str, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """The place behind the last element of an operand."""
    end: np.ndarray = g[f"{operand}_offset"] + (rows - 1) * g[f"ld{operand}"] + cols
    return end


def _first_of_result(graph: TaskGraph) -> np.ndarray:
    """Of each product: whether its task has not written to the same place before."""
    g = graph.records["gemm"]
    place = np.stack([graph.owners("gemm"), g["c"], g["c_offset"]], axis=1)
    first = np.zeros(len(g), bool)
    first[np.unique(place, axis=0, return_index=True)[1]] = True
    return first


def kernels_of(gemms: Table) -> np.ndarray:
    """The kernel that each product goes to, as the native executor decides."""
    numbers = np.zeros(len(gemms), np.int64)
    core.product_kernels(np.ascontiguousarray(gemms).view(np.uint8), numbers)
    return numbers


def product_kernels(gemms: Table) -> np.ndarray:
    """The twin of the native function: kernels of our own, where the processor has what they need."""
    found = np.full(len(gemms), KERNELS.index("dgemm"))
    lanes = core.register_lanes()
    if lanes > 1:
        m, n, k = (gemms[key] for key in ("m", "n", "k"))
        plain = gemms["transpose_b"] == 0
        enough = (m >= core.streamed_least_rows) & (k >= core.streamed_least_depth)
        found[plain & enough & ((n <= core.narrow_limit) | (lanes == 8))] = KERNELS.index("streamed")
        few = (m <= core.few_rows_limit) | (k <= core.short_sum_limit)
        found[plain & few & (n >= core.strip_cols)] = KERNELS.index("few rows")
    return found


# Features


def product_features(gemms: Table, far: float) -> np.ndarray:
    """(products, features); `far` is the share of the operands that comes from memory."""
    features = np.zeros((len(gemms), len(FEATURES)))
    kernel, first = kernels_of(gemms), 0
    for number, measure in enumerate((_dgemm, _few_rows, _streamed)):
        mine = np.flatnonzero(kernel == number)
        columns = measure(gemms.take(mine), far)
        features[mine, first : first + len(columns)] = np.stack(columns, axis=1)
        first += len(columns)
    return features


def shapes(gemms: Table) -> list[np.ndarray]:
    return [gemms[key].astype(np.float64) for key in ("m", "n", "k")]


def _far(gemms: Table, far: float) -> np.ndarray:
    m, n, k = shapes(gemms)
    return far * (m * k + k * n + 2 * m * n)


def _words_of_c(gemms: Table, slices: np.ndarray | float = 1.0) -> list[np.ndarray]:
    """Words of C that are gone over: by the first product that adds to a block, and by those that follow."""
    m, n, _ = shapes(gemms)
    again = np.zeros(len(gemms), bool)
    again[1:] = (gemms["c"][1:] == gemms["c"][:-1]) & (gemms["c_offset"][1:] == gemms["c_offset"][:-1])
    return [m * n * ~again, m * n * (slices - ~again)]


def _dgemm(gemms: Table, far: float) -> list[np.ndarray]:
    """Both operands are packed, and C is gone over once per slice of the sum."""
    m, n, k = shapes(gemms)
    flip_a, flip_b = gemms["transpose_a"] != 0, gemms["transpose_b"] != 0
    padded = np.ceil(m / DGEMM_ROWS) * DGEMM_ROWS * np.ceil(n / DGEMM_COLS) * DGEMM_COLS
    a, b, c = m * k, k * n, _words_of_c(gemms, np.maximum(1, np.ceil(k / DGEMM_DEPTH)))
    packed = [a * ~flip_a, a * flip_a, b * ~flip_b, b * flip_b]
    return [np.ones_like(m), padded * k, *packed, *c, _far(gemms, far)]


def _few_rows(gemms: Table, far: float) -> list[np.ndarray]:
    """Strips of up to six rows by eight columns, and the columns that are left one by one.

    A strip goes down the rows of B and C. Where they are many, each step waits for the memory.
    """
    m, n, k = shapes(gemms)
    strips, rest = n // STRIP_COLS, n % STRIP_COLS
    last = m % STRIP_ROWS
    rows = m - last + np.where(last > 0, np.maximum(last, FEWEST_ROWS), 0)
    deep, tall = k > PREFETCHED, m > PREFETCHED
    first = np.minimum(m, STRIP_ROWS) * k * strips * deep
    single = m * k * rest
    return [
        np.ones_like(m),
        rows * k * strips,
        first,
        single * ~deep,
        single * deep,
        k * n,
        *_words_of_c(gemms),
        m * n * tall,
        _far(gemms, far),
    ]


def _streamed(gemms: Table, far: float) -> list[np.ndarray]:
    """Panels of three vectors or less; rows that do not fill a tile go one by one."""
    m, n, k = shapes(gemms)
    lanes = max(4, core.register_lanes())
    flip = gemms["transpose_a"] != 0
    whole, rest = n // (3 * lanes), n % (3 * lanes)
    counts = [whole + (rest > 2 * lanes), (rest > lanes) & (rest <= 2 * lanes), (rest > 0) & (rest <= lanes)]
    steps, odd = [], np.zeros_like(m)
    blocks, short = m // STREAMED_ROWS, m % STREAMED_ROWS
    for vectors, panels in zip(VECTORS, counts, strict=True):
        rows = core.tile_rows[lanes == 8][vectors - 1]
        steps.append(k * panels * (blocks * (STREAMED_ROWS // rows) + short // rows))
        odd += k * panels * (blocks * (STREAMED_ROWS % rows) + short % rows)
    a, c = m * k * np.ceil(n / core.streamed_cols), _words_of_c(gemms, np.ceil(k / STREAMED_DEPTH))
    return [np.ones_like(m), *steps, odd, a * ~flip, a * flip, k * n, *c, _far(gemms, far)]
