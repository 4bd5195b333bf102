"""Compound indices and layouts against an enumeration of all their states."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given

from random_spaces import brute_basis, brute_sectors, brute_states, layouts
from tilewise import Layout, Space
from tilewise.errors import InputError
from tilewise.tensor import Compound
from tilewise.tensor.layout import Form


@given(layouts())
def test_states_are_ordered_by_label_then_tiles_then_element(layout):
    for compound in (layout.rows, layout.cols):
        expected = brute_states(compound)
        by_label = [(label, list(group)) for label, group in groupby(expected, key=lambda s: s[0])]
        assert [tuple(label) for label in compound.labels.tolist()] == [label for label, _ in by_label]
        assert compound.sizes.tolist() == [len(group) for _, group in by_label]
        for sector, (_, group) in enumerate(by_label):
            orbitals, parity = compound.states(sector)
            found = list(zip(*(o.tolist() for o in orbitals), strict=True)) if orbitals else [()]
            assert found == [next(iter(state)) for _, _, state in group]
            if compound.packing:
                signs = [list(state.values())[-1] for _, _, state in group]
                assert all(p > 0 or s < 0 for p, s in zip(parity.tolist(), signs, strict=True))


@given(layouts())
def test_tile_tuples_are_contiguous_and_found_by_their_tiles(layout):
    for compound in (layout.rows, layout.cols):
        table = compound.tuples
        expected = [(label, tiles) for label, tiles, _ in brute_states(compound)]
        runs = [(key, len(list(group))) for key, group in groupby(expected)]
        assert [tuple(t) for t in table.tiles.tolist()] == [tiles for (_, tiles), _ in runs]
        assert table.size.tolist() == [n for _, n in runs]
        for sector in range(len(compound.sizes)):
            mine = slice(compound.tuple_range[sector], compound.tuple_range[sector + 1])
            assert (table.sector[mine] == sector).all()
            assert np.array_equal(table.offset[mine], np.cumsum(table.size[mine]) - table.size[mine])
        found = compound.find(list(table.tiles.T), table.parity)
        assert np.array_equal(found, np.arange(len(table)))


@given(layouts())
def test_locate_gives_the_coefficients_of_every_orbital_tuple(layout):
    for compound in (layout.rows, layout.cols):
        basis = list(brute_basis(compound).values())
        shape = tuple(space.size for space in compound.spaces)
        if not compound.rank or 0 in shape:
            continue
        orbitals = [index.ravel() for index in np.indices(shape)]
        for parity in compound.parities:
            sector, position, coefficient = compound.locate(orbitals, parity)
            for k in np.flatnonzero(coefficient):
                assert basis[sector[k]][position[k], k] == pytest.approx(coefficient[k], abs=1e-15)
        total = sum(compound.locate(orbitals, parity)[2] ** 2 for parity in compound.parities)
        kept = sum((u**2).sum(axis=0) for u in basis) if basis else np.zeros(len(orbitals[0]))
        assert np.allclose(total, kept)


def test_a_packing_may_leave_out_all_pairs():
    compound = Layout.parse("|ab-", {"ab": Space.spatial("v", [1])}).cols
    _, _, coefficient = compound.locate([np.array([0]), np.array([0])], -1)
    assert coefficient.tolist() == [0.0]


@given(layouts())
def test_a_layout_stores_the_sectors_of_equal_label_and_nothing_else(layout):
    sectors = brute_sectors(layout, np.zeros(layout.shape))
    assert layout.labels == [label for label, *_ in sectors]
    assert list(zip(layout.nrows, layout.ncols, strict=True)) == [block.shape for _, block, *_ in sectors]
    assert layout.size == sum(block.size for _, block, *_ in sectors)
    assert layout.transposed.size == layout.size
    for number, (r, c) in enumerate(layout.sector_pairs):
        assert layout.sector_of[r, c] == number
    assert (layout.sector_of >= 0).sum() == len(sectors)


OCC, VIR = Space.spatial("o", [2, 1]), Space.spatial("v", [1, 2])


def test_exchange_parity_splits_a_sector_as_an_irrep_would():
    plain, packed = (Layout.parse(form, {"ab": VIR, "ij": OCC}) for form in ("ab|ij", "ab+-|ij+-"))
    assert plain.labels == [(0, 0, 0), (1, 0, 0)]
    assert packed.labels == [(0, 0, 1), (0, 0, -1), (1, 0, 1), (1, 0, -1)]
    assert (packed.nrows + 0).tolist() == [4, 1, 2, 2]
    assert Layout.parse("ab|ij+-", {"ab": VIR, "ij": OCC}).size == plain.size


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Layout.parse("ab*|ij", {"ab": VIR, "ij": OCC}), r"form 'ab\*\|ij': expected rows\|columns"),
        (lambda: Layout.parse("a|b|i", {"ab": VIR, "i": OCC}), r"expected rows\|columns"),
        (lambda: Layout.parse("ab|ik", {"ab": VIR, "ij": OCC}), "no space is given for index k"),
        (
            lambda: Layout.parse("ai+|jb", {"ab": VIR, "ij": OCC}),
            r"packing '\+' needs a pair of indices of one",
        ),
        (lambda: Layout.parse("abc-|ij", {"abc": VIR, "ij": OCC}), "packing '-' needs a pair"),
        (lambda: Layout.parse("abc|abcd", {"abcd": VIR}), "a tensor of rank 7: the limit is 6"),
        (lambda: Layout.parse("a|i", {"a": VIR, "i": OCC}, "+"), r"expected one \+ or - for each index"),
        (lambda: Layout.parse("a|i", {"a": VIR, "i": OCC}, "+0"), r"expected one \+ or - for each index"),
        (
            lambda: Layout.parse("a|i", {"a": VIR, "i": Space.spatial("o", [3])}),
            r"different groups \(\[1, 2\]",
        ),
        (lambda: Compound((VIR, VIR), (1, 1), "*"), r"packing '\*': valid are none, '\+', '-' and '\+-'"),
    ],
)
def test_wrong_layouts_are_refused_with_a_reason(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_an_upper_and_a_lower_spin_index_make_no_packed_pair():
    spin = Space.spin_orbital("s", [2], [1])
    with pytest.raises(InputError, match="needs a pair of indices of one space"):
        Layout.parse("pq-|rs", {"pqrs": spin}, "+-+-")
    # Two alpha orbitals make one antisymmetric pair (lower: 2 m_s = -2), one beta orbital makes none.
    assert Layout.parse("pq-|rs", {"pqrs": spin}, "--++").labels == [(0, -2, 0), (0, 0, 0)]


@pytest.mark.parametrize("text", ["ab+-|ij+-", "|", "a|", "|ij-", "abc|ijk", "ab+|i"])
def test_forms_print_as_they_are_read(text):
    assert str(Form.parse(text)) == text
