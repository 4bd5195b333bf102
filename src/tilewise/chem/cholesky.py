"""Cholesky vectors of the integrals: (mu nu|lambda sigma) = sum over L of B_L,mu nu B_L,lambda sigma.

Pivoted, a pair of shells at a time: the pair with the largest remaining diagonal element is chosen, its rows
are computed, and all of its pairs of functions that are large enough become pivots. No element of the
integrals is off by more than the threshold.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewise.errors import InputError

AoRows = Callable[[int, int], np.ndarray]
"""rows(M, N): (mu nu|..) for mu in shell M and nu in shell N, a row for each, over all pairs of functions."""

SPAN = 0.03
"""A pair of functions is a pivot if its diagonal is no smaller than this part of the largest one."""


BLOCK = 256
"""Vectors that are kept together."""


def cholesky_vectors(
    diagonal: np.ndarray, first: np.ndarray, rows: AoRows, threshold: float
) -> list[np.ndarray]:
    """Blocks of (vectors, pairs); `diagonal` is (mu nu|mu nu) for mu >= nu, `first` each shell's function."""
    if not 0 < threshold < 1:
        raise InputError(f"Cholesky threshold {threshold:g}: it must lie between 0 and 1, such as 1e-6")
    left = diagonal.copy()
    shell_of = np.repeat(np.arange(len(first) - 1), np.diff(first))
    high, low = np.tril_indices(int(first[-1]))
    blocks: list[np.ndarray] = []
    count = BLOCK  # of the last block
    while len(left) and left.max() > threshold:
        top = int(left.argmax())
        m, n = int(shell_of[high[top]]), int(shell_of[low[top]])
        mu, nu = np.meshgrid(
            np.arange(first[m], first[m + 1]), np.arange(first[n], first[n + 1]), indexing="ij"
        )
        big, small = np.maximum(mu, nu).ravel(), np.minimum(mu, nu).ravel()
        pairs, where = np.unique(big * (big + 1) // 2 + small, return_index=True)
        rest = rows(m, n)[where]
        for k, block in enumerate(blocks):
            used = block[: count if k + 1 == len(blocks) else BLOCK]
            rest -= used[:, pairs].T @ used
        least = max(threshold, SPAN * left[top])
        while True:
            k = int(left[pairs].argmax())
            if left[pairs[k]] <= least:
                break
            vector = rest[k] / np.sqrt(left[pairs[k]])
            rest -= np.outer(vector[pairs], vector)
            left -= vector**2
            left[pairs[k]] = 0.0
            if count == BLOCK:
                blocks.append(np.empty((BLOCK, len(left))))
                count = 0
            blocks[-1][count] = vector
            count += 1
    if blocks:
        blocks[-1] = blocks[-1][:count].copy()
    return blocks
