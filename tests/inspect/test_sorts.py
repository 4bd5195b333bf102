"""Records of sorts: every one belongs to one block, and what does not fit is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_spaces import RULES, worlds
from tilewise import Layout, Space, Tensor
from tilewise.core import core
from tilewise.equations import parse, plan_program
from tilewise.inspect import PanelRule
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.panels import Panels

SORTS = """
input v[ac+|bd+]
input T[ab+-|ij+-]
V[ab+-||cd+-] = v[ac|bd]
X[ai|bj] = 2 T[ab|ij] - T[ab|ji]
X[ai|bj] += T[ab|ij] + T[ba|ij]
d[a|b] = T[ab|ii]
X[ai|bi] += d[a|b]
"""


def numbers(first, count):
    return [
        k for start, n in zip(first.tolist(), count.tolist(), strict=True) for k in range(start, start + n)
    ]


@given(worlds(spin=False), st.sampled_from(RULES))
def test_every_record_belongs_to_one_block(world, rule):
    program = plan_program(parse(SORTS), world)
    records = inspect_operations(program, program.setup + program.operations, rule).records
    blocks, reads = records["sort"], records["read"]
    assert numbers(blocks["first_out"], blocks["n_out"]) == list(range(len(records["out"])))
    assert numbers(blocks["first_read"], blocks["n_read"]) == list(range(len(reads)))
    assert numbers(reads["first_view"], reads["n_view"]) == list(range(len(records["view"])))
    written = records["out"]["buffer"].reshape(-1) >= 0
    assert np.logical_or.reduceat(written, blocks["first_out"]).all() if len(blocks) else not len(written)


DIAGONAL = """
input A[ia|jb]
input E[a|b]
input F[i|j]
W[ia|jb] = A[ia|jb]
X[ia|jb] = A[ia|jb]
W[ia|ib] += E[a|b]
X[ia|ib] -= E[a|b]
W[ia|ja] += F[j|i]
X[ia|ja] -= F[j|i]
"""


@pytest.mark.parametrize(("letters", "dense"), [("iaib", "ab,ij->iajb"), ("iaja", "ji,ab->iajb")])
@given(world=worlds(spin=False), rule=st.sampled_from(RULES))
def test_a_sort_on_a_diagonal_writes_its_elements_once_and_touches_no_other_panel(
    letters, dense, world, rule
):
    program = plan_program(parse(DIAGONAL), world)
    (op,) = [op for op in program.operations if op.letters == letters]
    graph = inspect_operations(program, (op,), rule)
    layout, read = program.layouts["W"], program.layouts[op.reads[0]]
    written = np.zeros(layout.size)
    for block in graph.records["sort"]:
        shape = block["extent"][: block["n_axes"]]
        for out in graph.records["out"][block["first_out"] :][: block["n_out"]]:
            at = out["offset"] + np.tensordot(out["stride"][: len(shape)], np.indices(shape), axes=1)
            np.add.at(written, at, 1)
    unit = np.eye(layout.shape[letters.index(max(letters, key=letters.count))])
    expected = np.einsum(dense, Tensor(read, np.ones(read.size)).to_dense(), unit)
    assert np.array_equal(Tensor(layout, written).to_dense(), 2 * expected)  # once in W and in X
    panels, touched = graph.panels["W"], []
    for sector, row0, nrows, col0, ncols, *_ in zip(*panels.table.values(), strict=True):
        first = layout.offsets[sector] + row0 * layout.ncols[sector] + col0
        rows = first + layout.ncols[sector] * np.arange(nrows)
        touched.append(written[rows[:, None] + np.arange(ncols)].any())
    assert graph.tasks["panel"].tolist() == np.flatnonzero(touched).tolist()
    assert graph.tasks["n_lock"].tolist() == [2] * len(graph)


PLACES = Panels(
    Layout.parse("i|a", {"i": Space.spatial("o", [2, 1]), "a": Space.spatial("v", [3, 4])}), PanelRule()
).places


@pytest.mark.parametrize(
    ("letters", "factor", "sums", "coefficients", "message"),
    [
        ("iab", ("x", "ia", 0, 0), "", [1.0], "letters of a sort do not fit its layout"),
        ("ii", ("x", "ia", 0, 0), "a", [1.0], "a diagonal of a sort is assigned or packed"),
        ("ia", ("y", "ia", 0, 0), "", [1.0], "'y', which is not among its sources"),
        ("ia", ("x", "iaa", 0, 0), "", [1.0], "letters of a factor do not fit its layout"),
        ("ia", ("x", "ib", 0, 0), "", [1.0], "neither kept nor summed"),
        ("ia", ("x", "ia", 0, 0), "b", [1.0], "no factor of a sort has"),
        ("ia", ("x", "ia", 0, 0), "bcd", [1.0], "too many sums"),
        ("ia", ("x", "ia", 0, 0), "", [1.0, 1.0], "coefficients for other targets"),
    ],
)
def test_what_does_not_fit_the_layouts_is_refused(letters, factor, sums, coefficients, message):
    passes = [((0,), [(((factor,), sums), coefficients)])]
    with pytest.raises(ValueError, match=message):
        core.inspect_sort(
            PLACES, letters, (False, False), False, [0], [False], [("x", PLACES, 1)], passes, 64
        )
