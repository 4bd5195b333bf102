"""The native steps of the integral transformation against their twins, and all of them against PySCF."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyscf import ao2mo, gto

from registers import LANES, at_most
from tilewise.chem import exchange, function_integrals
from tilewise.chem import transform as steps
from tilewise.chem import transform_twins as twins
from tilewise.chem.function_integrals import BasisIntegrals, Density
from tilewise.chem.orbital_pairs import ABOVE_R, FROM_R, Destination, OrbitalSet, Side
from tilewise.chem.pair_classes import Operations, PairClasses
from tilewise.chem.pyscf_functions import BasisFunctions
from tilewise.chem.pyscf_libcint import libcint_of
from tilewise.chem.pyscf_libcint_twins import Libcint
from tilewise.core import core


def random_operations(rng, n_generators):
    """A group of signed permutations: reflections take functions on a few places to each other.

    Functions in a plane of reflection are taken to themselves, or to minus themselves.
    """
    turns = [np.array([-1 if r >> k & 1 else 1 for k in range(3)]) for r in range(1 << n_generators)]
    places = sorted({tuple(atom * turn) for atom in rng.integers(-1, 2, (2, 3)) for turn in turns})
    odd = rng.integers(0, 2, (2, 3))  # of the two functions on each place, in three directions
    functions = [(place, k) for place in places for k in range(2)]
    image = [
        [functions.index((tuple(np.array(place) * turn), k)) for place, k in functions] for turn in turns
    ]
    sign = [[np.where(odd[k], turn, 1).prod() for _, k in functions] for turn in turns]
    return Operations(np.array(image), np.array(sign, float))


def symmetric_integrals(rng, operations):
    """A random matrix over pairs that the operations leave as it is, packed."""
    n = operations.n_functions
    pairs = n * (n + 1) // 2
    high, low = np.tril_indices(n)
    matrix = rng.standard_normal((pairs, pairs))
    matrix, total = matrix + matrix.T, np.zeros((pairs, pairs))
    for image, sign in zip(operations.image, operations.sign, strict=True):
        a, b = image[high], image[low]
        k = np.maximum(a, b) * (np.maximum(a, b) + 1) // 2 + np.minimum(a, b)
        s = sign[high] * sign[low]
        total += s[:, None] * s * matrix[np.ix_(k, k)]
    return total[np.tril_indices(pairs)]


def symmetric_matrix(rng, operations):
    """A totally symmetric one-electron operator over functions."""
    total = np.zeros((operations.n_functions,) * 2)
    for irrep in range(operations.count):
        functions = PairClasses(operations).adapted(irrep)
        values = rng.standard_normal((functions.shape[1],) * 2)
        total += functions @ (values + values.T) @ functions.T
    return total


def random_orbitals(rng, operations, n_kinds=3):
    """A few orbitals of each irrep that has functions, of random kinds."""
    classes, columns, irreps = PairClasses(operations), [], []
    for irrep in range(operations.count):
        functions = classes.adapted(irrep)
        count = int(rng.integers(0, functions.shape[1] + 1))
        columns.append(functions @ rng.standard_normal((functions.shape[1], count)))
        irreps += [irrep] * count
    irreps, order = np.array(irreps, np.int64), rng.permutation(len(irreps))
    kinds = rng.integers(0, n_kinds, len(irreps))
    return OrbitalSet(
        np.hstack(columns)[:, order], irreps[order], kinds, irreps[order], operations.count, n_kinds
    )


def dense(integrals, operations, left, right):
    """(pq|rs) over orbitals, by their numbers."""
    n = operations.n_functions
    whole = ao2mo.restore(1, integrals, n)
    a, b = left.coefficients, right.coefficients
    return np.einsum("mnls,mp,nq,lr,st->pqrt", whole, a, a, b, b, optimize=True)


class Twins:
    """The twins in the place of the native core."""

    slab_width = core.slab_width
    Scratch = twins.Scratch
    adapt_pairs = staticmethod(twins.adapt_pairs)
    first_half = staticmethod(twins.first_half)
    second_half = staticmethod(twins.second_half)
    exchange_half = staticmethod(twins.exchange_half)


@settings(max_examples=25, deadline=None)
@given(
    n_generators=st.integers(0, 3),
    two_sets=st.booleans(),
    small=st.booleans(),
    workers=st.integers(1, 3),
    seed=st.integers(0, 1 << 16),
    lanes=st.sampled_from(LANES),
)
def test_the_native_steps_are_their_twins_and_both_are_right(
    n_generators, two_sets, small, workers, seed, lanes
):
    with at_most(lanes):
        check_the_native_steps(n_generators, two_sets, small, workers, seed)


def check_the_native_steps(n_generators, two_sets, small, workers, seed):
    rng = np.random.default_rng(seed)
    operations = random_operations(rng, n_generators)
    integrals = symmetric_integrals(rng, operations)
    sets = [random_orbitals(rng, operations) for _ in range(1 + two_sets)]
    n = operations.n_functions
    total, hamiltonian = (symmetric_matrix(rng, operations) for _ in range(2))
    basis = BasisIntegrals(operations, integrals, np.arange(operations.count), Density(total, hamiltonian))
    results = []
    state = rng.bit_generator.state
    for native in (core, Twins):
        rng.bit_generator.state = state
        wanted, buffers = [], {}
        for left in range(len(sets)):
            for right in range(left, len(sets)):
                a, b = sets[left], sets[right]
                rows, cols = Side.nowhere(a), Side.nowhere(b)
                rows.offset[:] = np.where(rng.random(len(a.p)) < 0.8, len(b.p) * np.arange(len(a.p)), -1)
                cols.offset[:] = np.where(rng.random(len(b.p)) < 0.8, np.arange(len(b.p)), -1)
                rows.factor[:], cols.factor[:] = rng.uniform(0.5, 2, len(a.p)), rng.uniform(0.5, 2, len(b.p))
                buffer = buffers[left, right] = np.zeros(len(a.p) * len(b.p))
                wanted.append(Destination(buffer, rows, cols, left, right))
                if left == right:  # symmetric: made once, put into both places
                    same_rows = Side(np.arange(len(a.p)) * len(a.p), cols.factor)
                    same_cols = Side(np.arange(len(a.p)), cols.factor)
                    both = buffers[left, "symmetric"] = np.zeros(len(a.p) ** 2)
                    wanted.append(Destination(both, same_rows, same_cols, left, left, FROM_R))
                    wanted.append(Destination(both, same_cols, same_rows, left, left, ABOVE_R, True))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(steps, "core", native)
            patch.setattr(function_integrals, "core", native)
            patch.setattr(exchange, "core", native)
            if small:  # several batches
                patch.setattr(steps, "LEAST_HALF", 8 * 40)
            room = [np.zeros(4000) for _ in range(operations.count)]
            fields = steps.transform(basis, sets, wanted, workers, filled=(0, 2), room=room)
        results.append((buffers, fields))
        for to in wanted:
            a, b = sets[to.left_set], sets[to.right_set]
            if to.takes == ABOVE_R:
                continue
            exact = dense(integrals, operations, a, b)
            p, q, r, s = a.by_rank[a.p], a.by_rank[a.q], b.by_rank[b.p], b.by_rank[b.q]
            found = to.buffer.reshape(len(a.p), len(b.p))
            values = exact[p, q][:, r, s] * to.left.factor[:, None] * to.right.factor
            there = (to.left.offset >= 0)[:, None] & (to.right.offset >= 0)
            there &= a.pair_labels[:, None] == b.pair_labels
            assert np.allclose(found[there], values[there], rtol=1e-10, atol=1e-9)
            assert not found[~there].any()
        whole = ao2mo.restore(1, integrals, n)
        for orbitals, field in zip(sets, fields, strict=True):
            c, kinds = orbitals.coefficients, orbitals.kinds
            direct = c.T @ (hamiltonian + np.einsum("mnls,ls->mn", whole, total)) @ c
            same = orbitals.labels[:, None] == orbitals.labels
            active = np.flatnonzero(kinds != orbitals.frozen)
            assert np.allclose(field.direct, direct * same, rtol=1e-10, atol=1e-8)
            exact = dense(integrals, operations, orbitals, orbitals)
            for kind in (0, 2):
                expected = np.einsum("piqi->pq", exact[:, kinds == kind][:, :, :, kinds == kind])
                here = np.ix_(active, active)
                assert np.allclose(field.exchange[kind][here], (expected * same)[here], rtol=1e-10, atol=1e-8)
    for key, values in results[0][0].items():
        assert np.allclose(values, results[1][0][key], rtol=1e-10, atol=1e-10)


MOLECULES = {
    "water": ("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", "6-31g*", {}),
    "cartesian functions": (
        "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692",
        "cc-pvdz",
        {"cart": True},
    ),
    "nitrogen": ("N 0 0 0.55; N 0 0 -0.55", "cc-pvdz", {}),
    "neon": ("Ne 0 0 0", "cc-pvtz", {}),
    "a ghost": ("He 0 0 1; ghost-He 0 0 -1; ghost-He 0 1 0", "cc-pvdz", {}),
    "a core potential": ("H 0 0 0; I 0 0 1.6", "lanl2dz", {"ecp": {"I": "lanl2dz"}}),
    "ethylene": (
        "C 0 0 0.67; C 0 0 -0.67; H 0 0.92 1.24; H 0 -0.92 1.24; H 0 0.92 -1.24; H 0 -0.92 -1.24",
        "6-31g*",
        {},
    ),
    "hydrogen peroxide": ("O 0 0.7 0; O 0 -0.7 0; H 0.8 0.9 0.4; H -0.8 -0.9 0.4", "6-31g", {}),
}


@pytest.mark.parametrize("name", MOLECULES)
def test_integrals_of_shells_over_combinations_are_those_of_their_twin(name):
    atom, basis, options = MOLECULES[name]
    mol = gto.M(atom=atom, basis=basis, symmetry=True, verbose=0, **options)
    functions = BasisFunctions(mol, mol.nao)
    classes = PairClasses(functions.operations(functions.group)[0])
    assert classes.operations.count == functions.group.order
    for first, last in ((0, mol.nbas), (0, mol.nbas // 2), (mol.nbas // 2, mol.nbas)):
        rows = classes.rows_of_functions(int(mol.ao_loc[first]), int(mol.ao_loc[last]))
        start, end = (rows * (rows + 1) // 2).T
        native, twin = ([np.full(size, np.nan) for size in end - start] for _ in range(2))
        arguments = {"threshold": function_integrals.NEGLIGIBLE, "start": start, "n_workers": 2}
        arguments |= {"first_shell": first, "last_shell": last}
        tables = classes.tables | classes.of_functions
        core.adapt_quartets(**tables, libcint=libcint_of(mol), out=native, **arguments)
        twins.adapt_quartets(**tables, libcint=Libcint(mol), out=twin, **arguments)
        for a, b in zip(native, twin, strict=True):
            assert np.abs(a - b).max(initial=0.0) < 1e-11


@pytest.mark.parametrize(("length", "count"), [(1, 1), (128, 0), (129, 3), (2048, 2), (2300, 2)])
def test_products_with_a_packed_triangle_are_those_of_their_twin_on_any_number_of_workers(length, count):
    rng = np.random.default_rng(length)
    triangle, vectors = rng.standard_normal(length * (length + 1) // 2), rng.standard_normal((count, length))
    expected, found = np.empty((count, length)), np.full((count, length), np.nan)
    twins.triangle_products(triangle, vectors, expected, 1)
    for workers in (1, 2, 3):
        core.triangle_products(triangle, vectors, found, workers)
        assert np.allclose(found, expected, rtol=1e-12, atol=1e-11)


def test_products_with_a_triangle_of_another_size_are_refused():
    triangle, vectors = np.zeros(6), np.zeros((2, 3))
    with pytest.raises(ValueError, match="packed triangle"):
        core.triangle_products(triangle[:5], vectors, vectors.copy(), 1)
    with pytest.raises(ValueError, match="as many products as vectors"):
        core.triangle_products(triangle, vectors, np.zeros((1, 3)), 1)


def test_tables_that_do_not_fit_are_refused():
    operations = Operations.none(2)
    tables = PairClasses(operations).tables
    given = {"integrals": np.zeros(6), "n_pairs": 3, "n_workers": 1}
    core.adapt_pairs(**tables, **given, out=[np.zeros(6)])
    for wrong in ({"image": tables["image"] + 1}, {"place": tables["place"] + 1}, {"weight": np.ones(2)}):
        with pytest.raises(ValueError, match="does not fit"):
            core.adapt_pairs(**(tables | wrong), **given, out=[np.zeros(6)])
    with pytest.raises(ValueError, match="does not fit"):
        core.adapt_pairs(**tables, **(given | {"integrals": np.zeros(5)}), out=[np.zeros(6)])
