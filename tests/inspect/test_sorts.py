"""Records of sorts: every one belongs to one block, and what does not fit is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_spaces import LETTERS, RULES, worlds
from tilewise import Layout, Space, Tensor
from tilewise.core import core
from tilewise.equations import parse, plan_program
from tilewise.errors import TaskError
from tilewise.execute import Runner
from tilewise.inspect import PanelRule
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.panels import Panels
from tilewise.schedule import policy_named

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


LONG = """
input A[ia|jb]
input B[ia|jb]
W[ia|jb] = 2 A[ia|jb] - B[ia|jb]
X[ia|jb] = B[ia|jb]
W[ia|jb] += 3 B[ia|jb] - A[jb|ia]
X[ia|jb] += A[ia|jb] + 1/2 A[jb|ia]
"""


@pytest.fixture(scope="module", params=[4, 16], ids=lambda tile: f"tiles of {tile}")
def long_sorts(request):
    sizes = {"o": [9, 4], "v": [19, 16]}
    spaces = {name: Space.spatial(name, size, tile=request.param) for name, size in sizes.items()}
    program = plan_program(parse(LONG), {LETTERS[letter]: space for letter, space in spaces.items()})
    graph = inspect_operations(program, program.operations, PanelRule(192, 10_000))
    rng = np.random.default_rng(request.param)
    buffers = {name: rng.random(graph.length_of(name)) for name in graph.buffers}
    return program, graph, policy_named("lpt")(graph, np.ones(len(graph)), 2), buffers


def test_what_lies_as_the_result_does_is_added_in_runs_of_any_length(long_sorts):
    program, graph, schedule, buffers = long_sorts
    a, b = (Tensor(program.layouts[name], buffers[name]).to_dense() for name in "AB")
    Runner(graph, schedule, buffers).run()
    w, x = (Tensor(program.layouts[name], buffers[name]).to_dense() for name in "WX")
    exchanged = a.transpose(2, 3, 0, 1)
    assert np.abs(w - (2 * a + 2 * b - exchanged)).max() < 1e-14
    assert np.abs(x - (a + b + exchanged / 2)).max() < 1e-14


def test_what_is_not_finite_is_seen_wherever_it_stands(long_sorts):
    _, graph, schedule, buffers = long_sorts
    rng = np.random.default_rng(0)
    for value in (np.nan, np.inf, -np.inf, *rng.choice([np.nan, np.inf], 20)):
        wrong = {name: data.copy() for name, data in buffers.items()}
        wrong["B"][rng.integers(len(wrong["B"]))] = value
        with pytest.raises(TaskError, match="the result is not finite in operation"):
            Runner(graph, schedule, wrong).run()
    large = buffers | {"B": np.full_like(buffers["B"], 1e307)}
    Runner(graph, schedule, large).run()
