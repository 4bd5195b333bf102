"""Davidson on matrices whose eigenvalues are known."""

import numpy as np
import pytest

from tilewise.methods.davidson import Preconditioner, davidson


def matrix(n, seed=1, coupling=0.05):
    rng = np.random.default_rng(seed)
    noise = coupling * rng.normal(size=(n, n))
    return noise + noise.T + np.diag(np.sort(rng.uniform(0, 10, n)))


@pytest.mark.parametrize("roots", [1, 3, 6])
def test_lowest_roots_of_a_symmetric_matrix(roots):
    a = matrix(300)
    found = davidson(lambda x: x @ a, Preconditioner.of_diagonal(np.diag(a)), roots, conv_tol=1e-11)
    assert found.converged and len(found.further) == 1
    np.testing.assert_allclose(found.energies, np.linalg.eigvalsh(a)[:roots], atol=1e-9)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(roots), atol=1e-8)


def test_lowest_roots_of_a_matrix_that_is_not_symmetric():
    rng = np.random.default_rng(2)
    turn = np.eye(200) + 0.01 * rng.normal(size=(200, 200))
    a = turn @ matrix(200) @ np.linalg.inv(turn)
    found = davidson(
        lambda x: x @ a.T, Preconditioner.of_diagonal(np.diag(a)), 3, is_symmetric=False, max_cycle=200
    )
    assert found.converged
    np.testing.assert_allclose(found.energies, np.sort(np.linalg.eigvals(a).real)[:3], atol=1e-8)


def test_a_dense_block_saves_products():
    a = matrix(400, coupling=0.1)
    rows = np.arange(60)
    plain = davidson(lambda x: x @ a, Preconditioner.of_diagonal(np.diag(a)), 1)
    helped = davidson(lambda x: x @ a, Preconditioner(np.diag(a), rows, a[:60, :60]), 1)
    assert helped.converged and helped.products < plain.products
    assert helped.energies[0] == pytest.approx(plain.energies[0], abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_tiny_matrices(n):
    a = matrix(n)
    for roots in range(1, n + 2):
        found = davidson(lambda x: x @ a, Preconditioner.of_diagonal(np.diag(a)), roots)
        np.testing.assert_allclose(found.energies, np.linalg.eigvalsh(a)[:roots], atol=1e-9)
        assert found.converged


def test_two_roots_that_lie_close_together_do_not_change_places():
    """The unit vector of the higher one has the lower diagonal element."""
    a = np.diag(np.arange(50.0))
    a[0, 0], a[1, 1] = 0.0, 0.02
    a[1, 2:] = a[2:, 1] = 0.02
    a[1, 1] += 1e-9
    found = davidson(lambda x: x @ a, Preconditioner.of_diagonal(np.diag(a)), 1)
    assert found.energies[0] == pytest.approx(np.linalg.eigvalsh(a)[0], abs=1e-9)


def test_roots_of_an_earlier_run_are_a_start():
    a = matrix(300)
    first = davidson(lambda x: x @ a, Preconditioner.of_diagonal(np.diag(a)), 2)
    again = davidson(lambda x: x @ a, Preconditioner.of_diagonal(np.diag(a)), 2, start=first.vectors)
    assert again.converged and again.products < first.products / 3


def test_what_is_not_reached_is_said():
    a = matrix(300)
    found = davidson(lambda x: x @ a, Preconditioner.of_diagonal(np.diag(a)), 2, max_cycle=3)
    assert not found.converged and found.cycles == 3
