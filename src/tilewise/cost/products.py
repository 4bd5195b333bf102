"""What a product's time is made of: of each of three kernels, the steps it takes and the words it moves.

The kernels are `dgemm` and the two of `src/native/narrow.cpp`; the native library says which one runs.

A word is "far" if it comes from memory rather than from the last-level cache; see `model.far_share`.
"""

from __future__ import annotations

import numpy as np

from tilewise import native

DGEMM = ("call", "steps", "a", "a transposed", "b", "b transposed", "c", "c again")
FEW_ROWS = ("call", "steps", "deep", "rest", "deep rest", "b", "c", "c again", "tall c")
NARROW = ("call", "wide", "middle", "thin", "odd", "a", "a transposed", "b", "c", "c again")
FEATURES = tuple(
    f"{kernel}: {feature}"
    for kernel, features in zip(native.KERNELS, (DGEMM, FEW_ROWS, NARROW), strict=True)
    for feature in (*features, "far")
)

DGEMM_DEPTH = 256  # summed elements after which dgemm goes over C again
DGEMM_ROWS, DGEMM_COLS = 4, 8  # of the tile of C that it keeps in registers
STRIP_ROWS, STRIP_COLS = 6, 8  # the same of the kernel for few rows
FEWEST_ROWS = 2  # a strip of fewer rows waits for its sums and takes as long as this many
PREFETCHED = 20  # rows of B or C, gone through side by side, that the processor fetches ahead
NARROW_ROWS, NARROW_DEPTH = 24, 256  # blocks of A in the kernel for few columns
PANEL_ROWS = (4, 6, 8)  # rows of A at a time, with panels of 12, 8 and 4 columns of B


def product_features(gemms: np.ndarray, far: float) -> np.ndarray:
    """(products, features); `far` is the share of the operands that comes from memory."""
    features = np.zeros((len(gemms), len(FEATURES)))
    kernel, first = native.product_kernels(gemms), 0
    for number, measure in enumerate((_dgemm, _few_rows, _narrow)):
        mine = np.flatnonzero(kernel == number)
        columns = measure(gemms.take(mine), far)
        features[mine, first : first + len(columns)] = np.stack(columns, axis=1)
        first += len(columns)
    return features


def _shapes(gemms: np.ndarray) -> list[np.ndarray]:
    return [gemms[key].astype(np.float64) for key in ("m", "n", "k")]


def _far(gemms: np.ndarray, far: float) -> np.ndarray:
    m, n, k = _shapes(gemms)
    return far * (m * k + k * n + 2 * m * n)


def _words_of_c(gemms: np.ndarray, slices: np.ndarray | float = 1.0) -> list[np.ndarray]:
    """Words of C that are gone over: by the first product that adds to a block, and by those that follow."""
    m, n, _ = _shapes(gemms)
    again = np.zeros(len(gemms), bool)
    again[1:] = (gemms["c"][1:] == gemms["c"][:-1]) & (gemms["c_offset"][1:] == gemms["c_offset"][:-1])
    return [m * n * ~again, m * n * (slices - ~again)]


def _dgemm(gemms: np.ndarray, far: float) -> list[np.ndarray]:
    """Both operands are packed, and C is gone over once per slice of the sum."""
    m, n, k = _shapes(gemms)
    flip_a, flip_b = gemms["transpose_a"] != 0, gemms["transpose_b"] != 0
    padded = np.ceil(m / DGEMM_ROWS) * DGEMM_ROWS * np.ceil(n / DGEMM_COLS) * DGEMM_COLS
    a, b, c = m * k, k * n, _words_of_c(gemms, np.maximum(1, np.ceil(k / DGEMM_DEPTH)))
    packed = [a * ~flip_a, a * flip_a, b * ~flip_b, b * flip_b]
    return [np.ones_like(m), padded * k, *packed, *c, _far(gemms, far)]


def _few_rows(gemms: np.ndarray, far: float) -> list[np.ndarray]:
    """Strips of up to six rows by eight columns, and the columns that are left one by one.

    A strip goes down the rows of B and C. Where they are many, each step waits for the memory.
    """
    m, n, k = _shapes(gemms)
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


def _narrow(gemms: np.ndarray, far: float) -> list[np.ndarray]:
    """Panels of twelve, eight or four columns; rows that do not fill a register tile go one by one."""
    m, n, k = _shapes(gemms)
    flip = gemms["transpose_a"] != 0
    whole = n // 12
    rest = n - 12 * whole
    counts = [whole + (rest > 8), (rest > 4) & (rest <= 8), (rest > 0) & (rest <= 4)]
    steps, odd = [], np.zeros_like(m)
    blocks, short = m // NARROW_ROWS, m % NARROW_ROWS
    for rows, panels in zip(PANEL_ROWS, counts, strict=True):
        steps.append(k * panels * (blocks * (NARROW_ROWS // rows) + short // rows))
        odd += k * panels * (blocks * (NARROW_ROWS % rows) + short % rows)
    a, c = m * k, _words_of_c(gemms, np.ceil(k / NARROW_DEPTH))
    return [np.ones_like(m), *steps, odd, a * ~flip, a * flip, k * n, *c, _far(gemms, far)]
