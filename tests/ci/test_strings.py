"""Strings and determinants: against all strings by brute force, and native lists against their twins."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewise.ci import twins
from tilewise.ci.determinants import Selection, listed
from tilewise.ci.orbitals import Orbitals, PairNumbers
from tilewise.errors import InputError


@st.composite
def problems(draw):
    """Orbitals in shells with labels of two kinds, references and electrons that fit."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=5))
    shell = np.repeat(np.arange(len(sizes)), sizes)
    n = len(shell)
    moduli = draw(st.sampled_from([(2, 2, 2), (0, 2)]))
    labels = np.array(
        [[draw(st.integers(0, 1) if m else st.integers(-2, 2)) for m in moduli] for _ in range(n)]
    )
    electrons = (draw(st.integers(0, min(3, n))), draw(st.integers(0, min(3, n))))
    references = []
    for _ in range(draw(st.integers(1, 2))):
        left, occupation = sum(electrons), []
        for size in sizes:
            occupation.append(min(left, 2 * size))
            left -= occupation[-1]
        references.append(draw(st.sampled_from([occupation, _spread(sum(electrons), sizes)])))
    orbitals = Orbitals(labels, moduli, shell, tuple(map(str, range(len(sizes)))))
    return orbitals, np.array(references), electrons, draw(st.integers(0, 3))


def _spread(count, sizes):
    """One electron after the other into each shell."""
    occupation = [0] * len(sizes)
    k = 0
    while count:
        if occupation[k % len(sizes)] < 2 * sizes[k % len(sizes)]:
            occupation[k % len(sizes)] += 1
            count -= 1
        k += 1
    return occupation


def by_definition(orbitals, references, electrons, rank, label):
    """Every pair of strings whose label fits and whose occupation is within the rank of a reference."""
    found = set()
    code = orbitals.codes(np.array(label))
    for alpha in combinations(range(len(orbitals)), electrons[0]):
        for beta in combinations(range(len(orbitals)), electrons[1]):
            both = [*alpha, *beta]
            total = orbitals.labels[both].sum(axis=0) if both else np.zeros(len(label), np.int64)
            occupation = np.bincount(orbitals.shell[both], minlength=references.shape[1]) if both else 0
            left = np.maximum(0, references - occupation).sum(axis=1).min()
            if left <= rank and orbitals.codes(orbitals.reduced(total)) == code:
                found.add((alpha, beta))
    return found


@given(problems(), st.data())
def test_a_selection_has_the_determinants_of_its_definition(problem, data):
    orbitals, references, electrons, rank = problem
    alpha = data.draw(st.permutations(range(len(orbitals))))[: electrons[0]]
    beta = data.draw(st.permutations(range(len(orbitals))))[: electrons[1]]
    label = (
        orbitals.reduced(orbitals.labels[[*alpha, *beta]].sum(axis=0))
        if sum(electrons)
        else np.zeros(len(orbitals.moduli), np.int64)
    )
    expected = by_definition(orbitals, references, electrons, rank, tuple(label.tolist()))
    selection = Selection(references, rank, electrons, tuple(label.tolist()))
    if not expected:
        with pytest.raises(InputError, match="no determinant"):
            selection.of(orbitals)
        return
    found = selection.of(orbitals)
    a, b = found.occupied(np.arange(len(found)))
    pairs = [(tuple(x), tuple(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert len(set(pairs)) == len(pairs) and set(pairs) == expected


@given(problems())
def test_lists_of_neighbours_are_those_of_the_twins(problem):
    orbitals, _, electrons, _ = problem
    numbers = PairNumbers.of(orbitals)
    every = np.array(list(combinations(range(len(orbitals)), electrons[0])), np.int64)
    strings = (
        listed(orbitals, every, np.zeros((len(every), 0), np.int64))[0].alpha
        if _one_label(orbitals, every)
        else None
    )
    if strings is None:
        return
    tables = strings.tables(numbers, 2)
    first, of_class, near = twins.near_lists(
        strings.occupied, strings.class_of, numbers.hop, strings.n_classes
    )
    place, far = twins.far_lists(strings.occupied, numbers.two)
    for name, expected in (
        ("near_first", first),
        ("near_class", of_class),
        ("near", near),
        ("far_place", place),
        ("far", far),
    ):
        assert np.array_equal(tables[name], expected), name


def _one_label(orbitals, rows):
    return len(np.unique(orbitals.codes(orbitals.label_of(rows)))) == 1


def test_a_list_of_determinants_is_refused_if_it_is_wrong():
    orbitals = Orbitals(np.zeros((4, 1), int), (2,), np.arange(4), ("1", "2", "3", "4"))
    alpha, beta = np.array([[0, 1], [0, 1]]), np.array([[0], [0]])
    with pytest.raises(InputError, match="listed twice"):
        listed(orbitals, alpha, beta)
    with pytest.raises(InputError, match="from 0 to 3"):
        listed(orbitals, np.array([[0, 4]]), np.array([[0]]))
    with pytest.raises(InputError, match="stands twice"):
        listed(orbitals, np.array([[1, 1]]), np.array([[0]]))
