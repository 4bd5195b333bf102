"""Single product records: every kernel that a shape can go to, against numpy, with guarded borders."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_spaces import SEEDS
from registers import LANES, at_most
from tilewise import Layout, Space
from tilewise.equations import Contract
from tilewise.execute import Runner
from tilewise.inspect import PanelRule, Panels, TaskGraph
from tilewise.inspect.operations.gemm import GEMM
from tilewise.inspect.records import KINDS, TASK
from tilewise.schedule import Schedule

GUARD = 12345.0


def one_product(sizes, record):
    """A graph of one task with one product, on buffers A, B and C of the given lengths."""
    panels = {
        name: Panels(Layout.parse("i|", {"i": Space.spatial(name, [size])}), PanelRule())
        for name, size in zip("ABC", sizes, strict=True)
    }
    gemm = np.zeros(1, GEMM)
    for field, value in record.items():
        gemm[field] = value
    tasks = np.zeros(1, TASK)
    tasks["kind"], tasks["count"] = KINDS.index("gemm"), 1
    operation = Contract("C = A B", "C", False, 1.0, "A", "B", False, False)
    graph = TaskGraph.bare(tasks, {"gemm": gemm}, (operation,))
    return replace(graph, buffers=("A", "B", "C"), panels=panels, scratch=1)


def check_product(m, n, k, transpose_a, transpose_b, alpha, beta, seed, extra=(0, 0, 0)):
    rng = np.random.default_rng(seed)
    shapes = [(k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n), (m, n)]
    offsets = rng.integers(0, 5, 3)
    buffers, views = {}, []
    for name, (rows, cols), offset, more in zip("ABC", shapes, offsets, extra, strict=True):
        ld = max(1, cols + more)
        data = np.full(offset + rows * ld + 3, GUARD)
        view = data[offset : offset + rows * ld].reshape(rows, ld)[:, :cols]
        view[...] = rng.standard_normal(view.shape)
        buffers[name] = data
        views.append((view, ld))
    (a, lda), (b, ldb), (c, ldc) = views
    product = alpha * (a.T if transpose_a else a) @ (b.T if transpose_b else b)
    expected = product + beta * c if beta else product
    if not beta:
        c[...] = np.nan  # must not be read
    record = {
        "a": 0, "b": 1, "c": 2, "m": m, "n": n, "k": k, "lda": lda, "ldb": ldb, "ldc": ldc,
        "transpose_a": transpose_a, "transpose_b": transpose_b, "alpha": alpha, "beta": beta,
        "a_offset": offsets[0], "b_offset": offsets[1], "c_offset": offsets[2],
    }  # fmt: skip
    graph = one_product([len(x) for x in buffers.values()], record)
    outside = np.ones(len(buffers["C"]), bool)
    rows = offsets[2] + ldc * np.arange(m)
    outside[(rows[:, None] + np.arange(n)).ravel()] = False
    for executor in ("threads", "serial"):
        own = {name: data.copy() for name, data in buffers.items()}
        Runner(graph, Schedule("test", 1, (), np.zeros(1)), own, executor).run()
        found = own["C"][offsets[2] : offsets[2] + m * ldc].reshape(m, ldc)[:, :n]
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        assert np.abs(found - expected).max(initial=0.0) <= 1e-12 * scale
        assert (own["C"][outside] == GUARD).all(), "the product wrote outside of its rectangle"


SIZES = st.one_of(st.integers(1, 30), st.sampled_from([63, 64, 65, 127, 128, 129, 140, 255, 256, 257, 300]))


@settings(max_examples=120)
@given(
    SIZES, SIZES, SIZES, st.booleans(), st.booleans(), st.sampled_from([1.0, -0.5]),
    st.sampled_from([0.0, 1.0, 2.0]), SEEDS, st.tuples(*[st.integers(0, 3)] * 3), st.sampled_from(LANES),
)  # fmt: skip
def test_products_of_any_shape(m, n, k, transpose_a, transpose_b, alpha, beta, seed, extra, lanes):
    with at_most(lanes):
        check_product(m, n, k, transpose_a, transpose_b, alpha, beta, seed, extra)


@pytest.mark.parametrize("m", [1, 5, 6, 7, 8, 12, 13, 24, 25, 64, 70])
@pytest.mark.parametrize("n", [1, 4, 7, 8, 9, 11, 12, 13, 16, 17, 24, 25, 128, 129, 144, 145, 300])
def test_the_shapes_at_which_kernels_change(m, n, register_lanes):
    for k in (1, 15, 16, 17, 255, 256, 257, 513):
        check_product(m, n, k, False, False, 1.0, 0.0, m + n + k)
        check_product(m, n, k, k % 2 == 0, False, -2.0, 1.0, m + n + k, (1, 2, 3))


@pytest.mark.parametrize("beta", [0.0, 1.0, 0.5])
def test_a_product_over_nothing_scales_its_target(beta):
    check_product(3, 4, 0, False, False, 1.0, beta, 1)
