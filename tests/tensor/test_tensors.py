"""Tensors against dense arrays."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from random_spaces import (
    SEEDS,
    assert_close,
    brute_sectors,
    brute_states,
    form_of,
    layout_of,
    layouts,
    letters_of,
    projected,
    signs_of,
    worlds,
)
from tilewise import Layout, Space, Tensor
from tilewise.errors import InputError, SymmetryError


@given(layouts(), SEEDS)
def test_dense_arrays_are_kept_by_packing_and_unpacking(layout, seed):
    x = Tensor.random(layout, seed).to_dense()
    assert x.shape == layout.shape
    assert_close(Tensor.from_dense(x, layout).to_dense(), x)


@given(layouts(), SEEDS)
def test_the_buffer_is_kept_by_unpacking_and_packing(layout, seed):
    tensor = Tensor.random(layout, seed)
    assert_close(Tensor.from_dense(tensor.to_dense(), layout).data, tensor.data)


@given(layouts(), SEEDS)
def test_sectors_are_views_of_the_right_dense_pieces(layout, seed):
    tensor = Tensor.random(layout, seed)
    for label, expected, *_ in brute_sectors(layout, tensor.to_dense()):
        view = tensor.sector(label)
        assert_close(view, expected)
        assert np.shares_memory(view, tensor.data)
        view[...] = 0.0
    assert not tensor.data.any()


@given(layouts(max_rank=4), SEEDS)
def test_an_array_without_the_symmetry_is_refused_and_the_worst_element_named(layout, seed):
    x = np.random.default_rng(seed).standard_normal(layout.shape)
    kept = projected(layout, x)
    lost = np.abs(x - kept)
    if lost.max(initial=0.0) < 1e-10:
        assert_close(Tensor.from_dense(x, layout).to_dense(), x)
        return
    with pytest.raises(SymmetryError) as caught:
        Tensor.from_dense(x, layout, name="X")
    found = re.match(
        r"tensor X: element \((.*?)\) = (\S+) breaks the symmetry of its layout by (\S+); "
        r"a symmetric array has (\S+) there",
        str(caught.value),
    )
    where = tuple(int(k) for k in found[1].split(",") if k.strip())
    assert lost[where] == pytest.approx(lost.max())
    assert float(found[2]) == pytest.approx(x[where], rel=1e-4)
    assert float(found[3]) == pytest.approx(lost.max(), rel=1e-2)
    assert float(found[4]) == pytest.approx(kept[where], rel=1e-4, abs=1e-12)


@given(layouts(max_rank=4), SEEDS)
def test_one_small_wrong_element_is_enough(layout, seed):
    x = Tensor.random(layout, seed).to_dense()
    rng = np.random.default_rng(seed)
    assume(x.size)
    where = tuple(int(rng.integers(n)) for n in layout.shape)
    x[where] += 1e-6
    if np.abs(x - projected(layout, x)).max() > 1e-8:
        with pytest.raises(SymmetryError):
            Tensor.from_dense(x, layout)
    else:
        Tensor.from_dense(x, layout)


@given(layouts(), SEEDS)
def test_dot_and_norm_are_those_of_the_dense_arrays(layout, seed):
    a, b = Tensor.random(layout, seed), Tensor.random(layout, seed + 1)
    x, y = a.to_dense(), b.to_dense()
    scale = max(1.0, float(np.linalg.norm(x) * np.linalg.norm(y)))
    assert abs(a.dot(b) - (x * y).sum()) < 1e-12 * scale
    assert abs(a.norm() - np.linalg.norm(x)) < 1e-12 * scale


@given(layouts(), SEEDS)
def test_values_at_orbital_indices_are_the_dense_ones(layout, seed):
    tensor = Tensor.random(layout, seed)
    x = tensor.to_dense()
    assume(x.size)
    assert_close(tensor.at(*np.indices(layout.shape)), x)
    assert_close(tensor.at(*np.ix_(*(range(n) for n in layout.shape))), x)
    rng = np.random.default_rng(seed)
    where = tuple(int(rng.integers(n)) for n in layout.shape)
    assert_close(tensor.at(*where), x[where])


def test_values_at_an_antisymmetric_pair_of_one_orbital_are_zero():
    one = Space.spatial("o", [1])
    tensor = Tensor.zeros("ij-|ab", {"ij": one, "ab": Space.spatial("v", [2])})
    assert tensor.layout.size == 0
    assert not tensor.at(*np.indices((1, 1, 2, 2))).any()


def test_values_outside_of_a_space_are_refused():
    tensor = Tensor.random(Layout.parse("i|j", {"ij": Space.spatial("o", [3, 2], tile=2)}))
    for index in ((5, 0), (0, 5)):
        with pytest.raises(IndexError):
            tensor.at(*index)


def test_a_negative_orbital_counts_from_the_end_or_is_refused_but_is_never_another_element():
    tensor = Tensor.random(Layout.parse("i|j", {"ij": Space.spatial("o", [3, 2], tile=2)}))
    try:
        found = tensor.at(-1, 3)
    except IndexError:
        return
    assert found == tensor.to_dense()[-1, 3]


@st.composite
def _two_layouts(draw):
    rank = draw(st.integers(0, 6))
    world = draw(worlds((6, 6, 8, 6, 5, 4, 3)[rank]))
    letters = draw(letters_of(rank))
    signs = draw(signs_of(letters))
    other = "".join(draw(st.permutations(letters)))
    forms = [draw(form_of(order, world, signs)) for order in (letters, other)]
    axes = tuple(letters.index(c) for c in other)
    return *(layout_of(form, world, signs) for form in forms), axes


@given(_two_layouts(), SEEDS)
def test_relayout_is_a_transpose_projected_onto_the_new_packing(case, seed):
    first, second, axes = case
    tensor = Tensor.random(first, seed)
    dense = tensor.to_dense().transpose(axes)
    moved = tensor.relayout(second, axes)
    assert_close(moved.to_dense(), projected(second, dense))
    if not second.rows.packing and not second.cols.packing:
        assert_close(moved.to_dense(), dense)


def test_relayout_refuses_axes_and_spaces_that_do_not_fit():
    o, v = Space.spatial("o", [2]), Space.spatial("v", [3])
    tensor = Tensor.random(Layout.parse("i|a", {"i": o, "a": v}))
    with pytest.raises(InputError, match="are not a permutation of 2 indices"):
        tensor.relayout(tensor.layout, (0, 0))
    with pytest.raises(InputError, match="run over different spaces"):
        tensor.relayout(tensor.layout, (1, 0))


@settings(max_examples=40)
@given(layouts(max_rank=4), SEEDS)
def test_blocks_are_views_of_the_tiles(layout, seed):
    tensor = Tensor.random(layout, seed)
    sectors = {label: block for label, block, *_ in brute_sectors(layout, tensor.to_dense())}
    groups = [
        {
            (label, tiles): [
                k for k, (t, _) in enumerate([s[1:] for s in brute_states(c) if s[0] == label]) if t == tiles
            ]
            for label, tiles, _ in brute_states(c)
        }
        for c in (layout.rows, layout.cols)
    ]
    seen = np.zeros(layout.size, int)
    for ((h, s, p), rows), row_states in groups[0].items():
        for ((g, r, q), cols), col_states in groups[1].items():
            if h != g or s != -r or (p != q and p and q):
                continue
            view = tensor.block(rows + cols, parity=p or q)
            expected = sectors[h, s, p or q][np.ix_(row_states, col_states)]
            assert_close(view.reshape(expected.shape), expected)
            assert not view.size or np.shares_memory(view, tensor.data)
            if not layout.rows.packing and not layout.cols.packing:
                tiles = zip(layout.spaces, rows + cols, strict=True)
                where = [slice(sp.tiles.start[t], sp.tiles.start[t] + sp.tiles.size[t]) for sp, t in tiles]
                assert_close(view, tensor.to_dense()[tuple(where)])
            before = tensor.data.copy()
            view += 1.0
            seen += (tensor.data - before).round().astype(int)
    assert (seen == 1).all()


def test_a_block_that_symmetry_makes_zero_is_refused():
    o = Space.spatial("o", [2, 2])
    tensor = Tensor.random(Layout.parse("i|j", {"ij": o}), name="F")
    with pytest.raises(InputError, match=r"block \(0, 1\): symmetry makes it zero"):
        tensor.block((0, 1))
    with pytest.raises(InputError, match=r"block \(0,\): not a stored tile tuple of F"):
        tensor.block((0,))
    packed = Tensor.random(Layout.parse("ij-|kl-", {"ijkl": o}))
    with pytest.raises(InputError, match="not a stored tile tuple"):
        packed.block((0, 1, 1, 0))


def test_a_sector_is_named_by_as_much_of_its_label_as_is_unique():
    v = Space.spatial("v", [2, 1])
    tensor = Tensor.random(Layout.parse("ab+-|cd+-", {"abcd": v}), name="V")
    assert tensor.sector((0, 0, -1)).shape == (1, 1)
    with pytest.raises(InputError, match="tensor V: sector 0 is ambiguous; its sectors are"):
        tensor.sector(0)
    with pytest.raises(InputError, match="tensor V: sector 3 is not stored"):
        tensor.sector(3)
    assert Tensor.random(Layout.parse("a|b", {"ab": v})).sector(1).shape == (1, 1)


@given(layouts())
def test_wrong_buffers_are_refused(layout):
    n = layout.size
    wrong = [np.zeros(n + 1), np.zeros((n, 1)), np.zeros(n, np.float32), np.zeros(n, np.int64)]
    if n > 1:
        wrong.append(np.zeros(2 * n)[::2])
    for data in wrong:
        with pytest.raises(InputError, match=f"contiguous float64 vector of {n} elements"):
            Tensor(layout, data, "X")
    data = np.zeros(n)
    assert Tensor(layout, data).data is data


def test_dense_arrays_of_another_shape_and_dots_of_other_layouts_are_refused():
    o = Space.spatial("o", [2])
    tensor = Tensor.zeros("i|j", {"ij": o})
    with pytest.raises(InputError, match=r"dense array of shape \(3, 2\) for a layout of shape \(2, 2\)"):
        Tensor.from_dense(np.zeros((3, 2)), tensor.layout)
    with pytest.raises(InputError, match="different layouts"):
        tensor.dot(Tensor.zeros("ij|", {"ij": o}))


def test_a_promised_exchange_symmetry_gives_the_same_projection():
    v, o = Space.spatial("v", [3, 2], 2), Space.spatial("o", [2, 1], 2)
    layout = Layout.parse("ab+-|ij+-", {"ab": v, "ij": o})
    dense = Tensor.random(layout, 3).to_dense()
    for chunk in (1, 7, 1 << 22):
        full = Tensor.from_elements(layout, lambda *index: dense[index], chunk=chunk)
        half = Tensor.from_elements(layout, lambda *index: dense[index], exchange_symmetric=True, chunk=chunk)
        assert_close(full.data, half.data)
