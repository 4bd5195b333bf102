"""Columns: native ones against the twin, under every policy, stored, direct and half of each."""

from dataclasses import replace

import numpy as np
import pytest

import tilewise
from ci.cases import AMIDOGEN, NITROGEN, WATER, made, mean_field
from tilewise.ci import twins
from tilewise.ci.columns import Columns, element_bytes
from tilewise.schedule import policies, policy_named


def water(**options):
    return tilewise.CI(mean_field(WATER, "sto-3g"), threads=1, **options)


CASES = {
    "singles and doubles": lambda: water(rank=2),
    "another irrep and spin": lambda: water(rank=3, irrep="B1", spin=2),
    "two references": lambda: water(rank=1, reference=["2222200", "2222020"]),
    "without symmetry": lambda: water(rank=2, symmetry="C1"),
    "open shell": lambda: tilewise.CI(mean_field(AMIDOGEN, "sto-3g", 1), rank=2, threads=1),
    "an atom": lambda: tilewise.CI.atom(
        "C", basis="sto-3g", reference="1s2 2s2 2p2", rank=None, m_l=0, m_s=0, threads=1
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_columns_are_those_of_the_twin(name):
    calculation = CASES[name]()
    columns, operator, _ = made(calculation)
    counts = columns.count()[:, 0]
    stored = {column: (rows, values) for column, rows, values in columns.stored_columns(0)}
    assert sorted(stored) == list(range(len(calculation.determinants)))
    some = np.linspace(0, len(stored) - 1, min(len(stored), 25)).astype(int)
    for j in some.tolist():
        rows, values = twins.column(calculation.determinants, calculation.numbers, operator, j)
        order = np.argsort(stored[j][0])
        assert len(rows) <= counts[j]
        kept = np.abs(values) > 1e-13
        assert np.array_equal(stored[j][0][order][np.abs(stored[j][1][order]) > 1e-13], rows[kept])
        np.testing.assert_allclose(
            stored[j][1][order][np.abs(stored[j][1][order]) > 1e-13], values[kept], atol=1e-12
        )
        diagonal = twins.element(
            calculation.numbers,
            operator,
            *[tuple(x[0].tolist() for x in calculation.determinants.occupied(np.array([j])))] * 2,
        )
        assert columns.diagonal[j] == pytest.approx(diagonal, abs=1e-11)


def test_a_list_of_determinants_has_the_same_elements():
    calculation = water(rank=2)
    columns, operator, _ = made(calculation)
    full = columns.dense()
    chosen = np.arange(0, len(full), 2)[::-1].copy()
    part, rows = calculation.determinants.part(chosen)
    few = Columns(part, calculation.numbers, 1, columns.policy)
    few.use(operator)
    few.build(few.count()[:, 0], np.ones(len(part)), 1 << 28)
    np.testing.assert_allclose(few.dense(), full[np.ix_(rows, rows)], atol=1e-13)
    x = np.random.default_rng(1).normal(size=(1, len(part)))
    few.use(operator)  # nothing is stored: the product makes all columns
    np.testing.assert_allclose(few.multiply(x), x @ full[np.ix_(rows, rows)], atol=1e-11)


@pytest.mark.parametrize("policy", [*policies, "factoring(f=3, delta=0.001)", "chunk(delta=0.0001)"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_policy_makes_every_column_once(policy, workers):
    calculation = tilewise.CI(mean_field(NITROGEN, "sto-3g"), rank=2, threads=1)
    columns, _, built = made(calculation, workers, policy)
    found = sorted(column for w in range(workers) for column, _, _ in columns.stored_columns(w))
    assert found == list(range(len(calculation.determinants)))
    by_trace = {column: w for w in range(workers) for column, _, _ in columns.stored_columns(w)}
    assert [by_trace[j] for j in found] == built.trace["worker"].tolist()  # it stays with who made it
    x = np.random.default_rng(2).normal(size=(2, len(found)))
    np.testing.assert_allclose(columns.multiply(x), x @ columns.dense(), atol=1e-11)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("vectors", [1, 3])
def test_stored_and_direct_columns_give_one_product(share, vectors):
    calculation = tilewise.CI(mean_field(NITROGEN, "sto-3g"), rank=4, threads=1)
    columns, _, _ = made(calculation, 2, "factoring")
    full = columns.dense()
    all_bytes = element_bytes(len(full)) * int(columns.elements.sum())
    short, _, built = made(calculation, 2, "factoring", budget=int(share * all_bytes))
    lists = 24 * len(full)  # of columns, 8 bytes each, which grow by doubling, and of pieces of them
    assert short.bytes <= int(share * all_bytes) + lists
    assert (short.n_direct == len(full)) == (share == 0.0)
    assert 0 < short.n_direct == int((~built.stored).sum())
    x = np.random.default_rng(3).normal(size=(vectors, len(full)))
    np.testing.assert_allclose(short.multiply(x), x @ full, atol=1e-10)


def test_rows_beyond_two_bytes_are_kept():
    calculation = tilewise.CI(mean_field(WATER, "6-31g"), rank=None, frozen=1, symmetry="C1", threads=1)
    n = len(calculation.determinants)
    assert [element_bytes(x) for x in (1 << 16, n, 1 << 24, (1 << 24) + 1)] == [10, 11, 11, 12]
    columns = Columns(calculation.determinants, calculation.numbers, 2, policy_named("block"))
    columns.use(calculation.problem.hamiltonian(calculation.numbers))
    some, x = np.arange(0, n, 2000), np.random.default_rng(6).normal(size=(1, n))
    columns.own(some, some, np.ones(n))
    direct = columns.multiply(x)
    built = columns.make(some, columns.count(some)[:, 0], np.ones(len(some)), 1 << 28)
    assert built.stored.all() and max(rows.max() for _, rows, _ in columns.stored_columns(0)) > 1 << 16
    columns.own(some, some[:0], np.ones(n))
    np.testing.assert_allclose(columns.multiply(x), direct, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("workers", [1, 3])
def test_spins_are_those_of_the_twin(name, workers):
    calculation = CASES[name]()
    columns, _, _ = made(calculation, workers)
    x = np.random.default_rng(4).normal(size=(2, len(calculation.determinants)))
    expected = [twins.spin_squared(calculation.determinants, own) for own in x]
    np.testing.assert_allclose(columns.spin_squared(x), expected, rtol=1e-12)


def test_spins_of_a_list_of_determinants_are_those_of_the_twin():
    calculation = water(rank=3)
    operator = calculation.problem.hamiltonian(calculation.numbers)
    part, _ = calculation.determinants.part(np.arange(0, len(calculation.determinants), 3))
    few = Columns(part, calculation.numbers, 1, policy_named("block"))
    few.use(operator)
    x = np.random.default_rng(5).normal(size=(1, len(part)))
    np.testing.assert_allclose(few.spin_squared(x), [twins.spin_squared(part, x[0])], rtol=1e-12)


def test_spins_of_all_states_are_whole():
    columns, _, _ = made(water(rank=None))
    _, states = np.linalg.eigh(columns.dense())
    squares = columns.spin_squared(np.ascontiguousarray(states.T))
    s = 0.5 * (np.sqrt(1 + 4 * np.abs(squares)) - 1)
    np.testing.assert_allclose(s, np.round(s), atol=1e-6)


def test_another_operator_leaves_the_one_in_use():
    columns, operator, _ = made(water(rank=2))
    full = columns.dense()
    x = np.random.default_rng(6).normal(size=(2, len(full)))
    other = replace(operator, constant=operator.constant + 1.0)
    found = columns.expectation(other, x)
    np.testing.assert_allclose(found, np.einsum("ki,ij,kj->k", x, full + np.eye(len(full)), x), rtol=1e-11)
    np.testing.assert_allclose(columns.multiply(x), x @ full, atol=1e-11)
