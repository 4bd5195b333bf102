"""Cholesky vectors of the integrals: (mu nu|lambda sigma) = sum over L of B_L,mu nu B_L,lambda sigma.

Pivoted, a pair of shells at a time: the pair with the largest remaining diagonal element is chosen, its rows
are computed, and all of its pairs of functions that are large enough become pivots. No element of the
integrals is off by more than the threshold.
"""

from __future__ import annotations

import numpy as np

from tilewise.chem.transform import AoRows
from tilewise.errors import InputError

SPAN = 0.03
"""A pair of functions is a pivot if its diagonal is no smaller than this part of the largest one."""


def cholesky_vectors(diagonal: np.ndarray, first: np.ndarray, rows: AoRows, threshold: float) -> np.ndarray:
    """(vectors, pairs); `diagonal` is (mu nu|mu nu) for mu >= nu, `first` each shell's first function."""
    if not 0 < threshold < 1:
        raise InputError(f"Cholesky threshold {threshold:g}: it must lie between 0 and 1, such as 1e-6")
    left = diagonal.copy()
    shell_of = np.repeat(np.arange(len(first) - 1), np.diff(first))
    high, low = np.tril_indices(int(first[-1]))
    vectors = np.empty((256, len(left)))
    count = 0
    while len(left) and left.max() > threshold:
        top = int(left.argmax())
        m, n = int(shell_of[high[top]]), int(shell_of[low[top]])
        mu, nu = np.meshgrid(
            np.arange(first[m], first[m + 1]), np.arange(first[n], first[n + 1]), indexing="ij"
        )
        big, small = np.maximum(mu, nu).ravel(), np.minimum(mu, nu).ravel()
        pairs, where = np.unique(big * (big + 1) // 2 + small, return_index=True)
        block = rows(m, n, n + 1).dense(where)
        block -= vectors[:count, pairs].T @ vectors[:count]
        least = max(threshold, SPAN * left[top])
        while True:
            k = int(left[pairs].argmax())
            if left[pairs[k]] <= least:
                break
            vector = block[k] / np.sqrt(left[pairs[k]])
            block -= np.outer(vector[pairs], vector)
            left -= vector**2
            left[pairs[k]] = 0.0
            if count == len(vectors):
                vectors = np.concatenate([vectors, np.empty_like(vectors)])
            vectors[count] = vector
            count += 1
    return vectors[:count].copy()
