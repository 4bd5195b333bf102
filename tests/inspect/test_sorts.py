"""Records of sorts: every one belongs to one block, and what does not fit is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_spaces import RULES, worlds
from tilewise import Layout, Space
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


PLACES = Panels(
    Layout.parse("i|a", {"i": Space.spatial("o", [2, 1]), "a": Space.spatial("v", [3, 4])}), PanelRule()
).places


@pytest.mark.parametrize(
    ("letters", "factor", "sums", "coefficients", "message"),
    [
        ("iab", ("x", "ia", 0, 0), "", [1.0], "letters of a sort do not fit its layout"),
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
