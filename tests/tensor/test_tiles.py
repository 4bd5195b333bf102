"""Spaces and their tiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_spaces import space_of
from tilewise import Space
from tilewise.errors import InputError

ANY_SPACE = st.tuples(st.sampled_from([1, 2, 4, 8]), st.booleans()).flatmap(
    lambda kind: space_of("x", *kind, largest=40)
)


@given(ANY_SPACE)
def test_each_spin_and_irrep_is_cut_into_ceil_n_by_tile_near_equal_tiles(space):
    tiles = space.tiles
    for spin, row in zip(space.spins, space.counts, strict=True):
        for irrep, n in enumerate(row):
            sizes = tiles.size[(tiles.spin == spin) & (tiles.irrep == irrep)]
            assert len(sizes) == -(-n // space.tile)
            assert sizes.sum() == n
            assert not len(sizes) or (sizes.max() <= space.tile and sizes.max() - sizes.min() <= 1)


@given(ANY_SPACE)
def test_tiles_cover_the_orbitals_in_order_of_spin_then_irrep(space):
    tiles = space.tiles
    assert np.array_equal(tiles.start, np.cumsum(tiles.size) - tiles.size)
    assert tiles.size.sum() == space.size and (tiles.size > 0).all()
    order = [(space.spins.index(s), h) for s, h in zip(tiles.spin, tiles.irrep, strict=True)]
    assert order == sorted(order)
    assert np.array_equal(space.irreps, np.repeat(tiles.irrep, tiles.size))
    assert np.array_equal(space.tile_of, np.repeat(np.arange(len(tiles)), tiles.size))


def test_a_known_space():
    space = Space.spin_orbital("o", alpha=[5, 0], beta=[2, 1], tile=3)
    assert space.size == 8 and space.order == 2
    assert space.tiles.spin.tolist() == [1, 1, -1, -1]
    assert space.tiles.irrep.tolist() == [0, 0, 0, 1]
    assert space.tiles.start.tolist() == [0, 2, 5, 7]
    assert space.tiles.size.tolist() == [2, 3, 2, 1]
    assert space.tiled(1).tiles.size.tolist() == [1] * 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Space.spatial("o", [1, 2, 3]), "space o: 3 irreps given; abelian groups have 1, 2, 4 or 8"),
        (lambda: Space.spatial("o", [1, -2]), "count=-2: count must be a whole number from 0 up"),
        (lambda: Space("o", ((1, -2),)), "space o: negative orbital count"),
        (lambda: Space.spatial("o", [1], tile=0), "tile=0: tile must be a whole number from 1 up"),
        (lambda: Space.spin_orbital("o", [1, 2], [1]), "space o: counts must have one row per spin"),
        (lambda: Space("o", ((1,),), (1, -1)), "space o: counts must have one row per spin"),
        (lambda: Space.spatial("o", []), "space o: 0 irreps given"),
    ],
)
def test_wrong_spaces_are_refused_with_a_reason(make, message):
    with pytest.raises(InputError, match=message):
        make()
