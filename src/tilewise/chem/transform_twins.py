"""Twins of the two native steps of the integral transformation: slow, and written to be read.

They take the same arguments and write to the same places; the tests hold the native ones against them.
"""

from __future__ import annotations

import numpy as np

from tilewise.chem.transform import COLUMNS, JOB


def half_transform(
    *,
    first_entry: np.ndarray,
    entry: np.ndarray,
    weight: np.ndarray,
    plain: bool,
    first_function: np.ndarray,
    first_orbital: np.ndarray,
    position: np.ndarray,
    coefficients: np.ndarray,
    column: np.ndarray,
    step: np.ndarray,
    kets: np.ndarray,
    numbers: np.ndarray,
    density: np.ndarray,
    mu: np.ndarray,
    nu: np.ndarray,
    ket_weight: np.ndarray,
    coulomb: np.ndarray,
    exchange: np.ndarray,
    row: np.ndarray,
    out: np.ndarray,
    n_workers: int,
) -> None:
    """Step 1. For each ket M: the wanted elements of C^T M C, into its row of `out`.

    With a density D, ket (mu nu|..) of weight w adds its part of the Fock matrix: J is the sum of M D, and
    K_mu += w M D_nu, K_nu += w M D_mu.
    """
    n_basis = int(first_function[-1])
    adapted = np.eye(n_basis)
    if not plain:
        adapted = np.zeros((n_basis, n_basis))
        for function in range(n_basis):
            used = slice(first_entry[function], first_entry[function + 1])
            np.add.at(adapted[:, function], entry[used], weight[used])
    orbitals = _orbitals(adapted, first_function, first_orbital, position, coefficients)
    p, q = np.tril_indices(orbitals.shape[1])
    wanted = np.flatnonzero(column >= 0)
    for k, matrix in enumerate(_kets(kets, numbers, n_basis)):
        if density.size:
            coulomb[k] = (matrix * density).sum()
            exchange[mu[k]] += ket_weight[k] * matrix @ density[nu[k]]
            exchange[nu[k]] += ket_weight[k] * matrix @ density[mu[k]]
        transformed = (orbitals.T @ matrix @ orbitals)[p, q]
        out[column[wanted] + row[k] * step[wanted]] = transformed[wanted]


def _orbitals(
    adapted: np.ndarray,
    first_function: np.ndarray,
    first_orbital: np.ndarray,
    position: np.ndarray,
    coefficients: np.ndarray,
) -> np.ndarray:
    """Over basis functions, in the order of the active orbitals; `coefficients` are given irrep by irrep."""
    orbitals, used = np.zeros((len(adapted), int(first_orbital[-1]))), 0
    for irrep in range(len(first_function) - 1):
        functions = slice(first_function[irrep], first_function[irrep + 1])
        own = position[first_orbital[irrep] : first_orbital[irrep + 1]]
        shape = functions.stop - functions.start, len(own)
        block = coefficients[used : used + shape[0] * shape[1]].reshape(shape)
        orbitals[:, own] = adapted[:, functions] @ block
        used += block.size
    return orbitals


def _kets(kets: np.ndarray, numbers: np.ndarray, n_basis: int) -> list[np.ndarray]:
    """Symmetric matrices over basis functions: packed rows, or rows of one packed matrix of pairs."""
    rows = kets
    if len(numbers):
        pairs = n_basis * (n_basis + 1) // 2
        square = np.zeros((pairs, pairs))
        square[np.tril_indices(pairs)] = kets[0]
        rows = (square + np.tril(square, -1).T)[numbers]
    found = []
    for packed in rows:
        matrix = np.zeros((n_basis, n_basis))
        matrix[np.tril_indices(n_basis)] = packed
        found.append(matrix + np.tril(matrix, -1).T)
    return found


def second_half(
    *,
    values: np.ndarray,
    first_row: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    column_scale: np.ndarray,
    columns: np.ndarray,
    jobs: np.ndarray,
    buffer: np.ndarray,
    offset: np.ndarray,
    factor: np.ndarray,
    buffers: list[np.ndarray],
    n_workers: int,
) -> None:
    """Step 2. Z_pq = sum over mu and nu of C_mu,p (w C_nu,q) (mu nu|rs), added to the place of (pq).

    A tensor that is symmetric in its pairs is written by rows instead, one for each column (rs).
    """
    n_mu, n_rows = len(first_row) - 1, int(first_row[-1])
    n_orbitals = len(left) // n_mu
    places = [table.reshape(-1, n_orbitals, n_orbitals) for table in (buffer, offset, factor)]
    for c in np.ascontiguousarray(columns).view(COLUMNS)[:, 0]:
        first, width = int(c["first"]), int(c["count"])
        integrals = values[first * n_rows : (first + width) * n_rows].reshape(n_rows, width)
        half = np.zeros((n_mu, n_orbitals, width))
        for mu in range(n_mu):
            rows = slice(int(first_row[mu]), int(first_row[mu + 1]))
            own = right[rows.start * n_orbitals : rows.stop * n_orbitals].reshape(n_orbitals, -1)
            half[mu] = own @ integrals[rows]
        z = np.einsum("pm,mqx->pqx", left.reshape(n_orbitals, n_mu), half)
        z *= column_scale[first : first + width]
        if c["symmetric"] >= 0:
            start = int(c["sector_offset"] + c["target_column"] * c["row_length"])
            buffers[c["symmetric"]][start : start + width * int(c["row_length"])] = 0.0
        for job in np.ascontiguousarray(jobs).view(JOB)[c["first_job"] : c["first_job"] + c["n_jobs"], 0]:
            for p in range(job["first_p"], job["first_p"] + job["n_p"]):
                for q in range(job["first_q"], job["first_q"] + job["n_q"]):
                    target, at, times = (table[c["table"], p, q] for table in places)
                    if times != 0.0:
                        buffers[target][_elements(c, int(target), int(at))] += times * z[p, q]


def _elements(c: np.void, target: int, at: int) -> np.ndarray:
    """Where the results of one (p, q) go, for all columns of a set."""
    every = np.arange(int(c["count"]))
    if target == c["symmetric"]:
        return int(c["sector_offset"]) + (int(c["target_column"]) + every) * int(c["row_length"]) + at
    return at + int(c["target_column"]) + every
