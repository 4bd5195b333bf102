"""The two native steps of the integral transformation against their twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewise.chem.transform import COLUMNS, JOB, Orbitals
from tilewise.chem.transform_twins import half_transform, second_half
from tilewise.core import core

WORKERS = st.integers(1, 3)
SEEDS = st.integers(0, 1 << 16)


def random_orbitals(rng, n_basis, n_orbitals, n_irreps):
    """Functions of each irrep as combinations of a few basis functions, and orbitals of random irreps."""
    functions = np.array_split(np.linalg.qr(rng.standard_normal((n_basis, n_basis)))[0], n_irreps, axis=1)
    irreps = rng.integers(0, n_irreps, n_orbitals)
    coefficients = np.zeros((n_basis, n_orbitals))
    for k, irrep in enumerate(irreps):
        own = functions[irrep]
        coefficients[:, k] = own @ rng.standard_normal(own.shape[1])
    return Orbitals(coefficients, irreps, functions)


def fock_arguments(rng, n_basis, count, wanted):
    n, count = (n_basis, count) if wanted else (0, 0)
    density = rng.standard_normal((n, n))
    mu, nu = (rng.integers(0, max(n, 1), count) for _ in range(2))
    return {"density": density + density.T, "mu": mu, "nu": nu, "ket_weight": rng.random(count)}


@settings(max_examples=60)
@given(
    n_basis=st.integers(1, 9),
    n_orbitals=st.integers(1, 8),
    n_irreps=st.sampled_from([1, 2, 4]),
    count=st.integers(0, 20),
    form=st.sampled_from(["rows", "columns", "numbered"]),
    fock=st.booleans(),
    workers=WORKERS,
    seed=SEEDS,
)
def test_half_transform_is_its_twin(n_basis, n_orbitals, n_irreps, count, form, fock, workers, seed):
    rng = np.random.default_rng(seed)
    orbitals = random_orbitals(rng, n_basis, n_orbitals, n_irreps)
    pairs, all_pairs = n_basis * (n_basis + 1) // 2, n_orbitals * (n_orbitals + 1) // 2
    numbers = np.zeros(0, np.int64)
    if form == "numbered":
        kets, numbers = rng.standard_normal((1, pairs * (pairs + 1) // 2)), rng.integers(0, pairs, count)
        count = count or 1  # without numbers it is one row, of another length
        numbers = numbers if len(numbers) else np.zeros(1, np.int64)
    else:
        kets = rng.standard_normal((count, pairs))
        kets = kets if form == "rows" else np.asfortranarray(kets)
    column = np.where(rng.random(all_pairs) < 0.7, rng.permutation(all_pairs), -1)
    arguments = orbitals.arguments | fock_arguments(rng, n_basis, count, fock)
    arguments |= {"kets": kets, "numbers": numbers, "column": column, "row": rng.permutation(count)}
    arguments["step"] = np.full(all_pairs, all_pairs)
    results = []
    for function in (core.half_transform, half_transform):
        made = {
            "coulomb": np.zeros(len(arguments["mu"])),
            "exchange": np.zeros_like(arguments["density"]),
            "out": np.full(count * all_pairs, np.nan),
        }
        function(**arguments, **made, n_workers=workers)
        results.append(made)
    for name, value in results[0].items():
        assert np.allclose(value, results[1][name], rtol=1e-12, atol=1e-12, equal_nan=True), name


def random_columns(rng, n_sets, n_orbitals, symmetric):
    """Sets of columns with one or two jobs each; those of a symmetric tensor are written by rows."""
    columns, jobs, first = [], [], 0
    for _ in range(n_sets):
        width, (p, q) = int(rng.integers(1, 6)), rng.integers(0, n_orbitals, 2).tolist()
        own = [(p, n_orbitals - p, q, n_orbitals - q)]
        own += [(0, p, q, n_orbitals - q)] * (p > 0)
        place = (0, first, 1, 0, n_orbitals**2) if symmetric else (0, first, -1, 0, 0)
        columns.append((first, width, len(jobs), len(own), *place, 1))
        jobs += own
        first += width
    return np.array(columns, COLUMNS), np.array(jobs, JOB), first


@settings(max_examples=60)
@given(
    n_basis=st.integers(1, 5),
    n_orbitals=st.integers(1, 6),
    n_sets=st.integers(1, 4),
    symmetric=st.booleans(),
    workers=WORKERS,
    seed=SEEDS,
)
def test_second_half_is_its_twin(n_basis, n_orbitals, n_sets, symmetric, workers, seed):
    rng = np.random.default_rng(seed)
    first_row = np.cumsum([0, *rng.integers(1, 4, n_basis)])
    columns, jobs, n_columns = random_columns(rng, n_sets, n_orbitals, symmetric)
    places = np.arange(n_orbitals**2)
    # Of each (p, q) a row of a matrix with a column for each (rs), or a column of the symmetric tensor.
    arguments = {
        "first_row": first_row,
        "left": rng.standard_normal(n_orbitals * n_basis),
        "right": rng.standard_normal(n_orbitals * int(first_row[-1])),
        "column_scale": rng.random(n_columns),
        "columns": columns.view(np.int64).reshape(-1, 10),
        "jobs": jobs.view(np.int64).reshape(-1, 4),
        "buffer": np.zeros(n_orbitals**2, np.int64),
        "offset": places * n_columns,
        "factor": rng.choice([0.0, 0.5, 1.0], n_orbitals**2),
    }
    if symmetric:  # all (p, q) go to the tensor that is written by rows: of one p all q are wanted, or none
        wanted = np.repeat(rng.random(n_orbitals) < 0.7, n_orbitals)
        arguments |= {"buffer": np.ones(n_orbitals**2, np.int64), "offset": places}
        arguments["factor"] = np.where(wanted, rng.choice([0.5, 1.0], n_orbitals**2), 0.0)
    values = rng.standard_normal(n_columns * int(first_row[-1]))
    start = rng.standard_normal((2, n_columns * n_orbitals**2))
    results = []
    for function in (core.second_half, second_half):
        buffers = [start[0].copy(), start[1].copy()]
        function(**arguments, values=values.copy(), buffers=buffers, n_workers=workers)
        results.append(buffers)
    for native, twin in zip(*results, strict=True):
        assert np.allclose(native, twin, rtol=1e-12, atol=1e-12)


def test_tables_that_do_not_fit_are_refused():
    rng = np.random.default_rng(0)
    columns, jobs, n_columns = random_columns(rng, 1, 2, False)
    jobs["n_q"] += 1
    with pytest.raises(ValueError, match="do not fit"):
        core.second_half(
            first_row=np.array([0, 1]),
            left=np.ones(2),
            right=np.ones(2),
            column_scale=np.ones(n_columns),
            columns=columns.view(np.int64).reshape(-1, 10),
            jobs=jobs.view(np.int64).reshape(-1, 4),
            buffer=np.zeros(4, np.int64),
            offset=np.arange(4) * n_columns,
            factor=np.ones(4),
            values=np.ones(n_columns),
            buffers=[np.zeros(4 * n_columns)],
            n_workers=1,
        )
