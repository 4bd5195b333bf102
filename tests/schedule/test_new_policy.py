"""The policy of docs/new-policy.md, as it stands there."""

import re
from pathlib import Path

import numpy as np
import pytest

import tilewise
from random_programs import bare_graph
from tilewise.errors import InputError
from tilewise.schedule import policies, policy_named
from tilewise.schedule.policies import _POLICIES

PAGE = Path(__file__).parents[2] / "docs" / "new-policy.md"


@pytest.fixture
def mixed():
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    assert len([line for line in code.splitlines() if line.strip()]) <= 30
    exec(code, {"__name__": "mixed"})
    yield policies["mixed"]
    del _POLICIES["mixed"]


def test_the_example_decides_as_it_says(mixed):
    graph = bare_graph([0] * 6, [])
    schedule = policy_named("mixed(share=0.6)")(graph, np.array([1.0, 5, 1, 1, 4, 1]), 2)
    schedule.check(graph)
    assert schedule.queues[0].tasks.tolist() == [1, 0, 2, 3, 4, 5]
    with pytest.raises(InputError, match=r"policy mixed\(share=2.0\): share must be between 0 and 1"):
        policy_named("mixed(share=2)")


def test_the_example_runs_a_contraction(mixed):
    space = tilewise.Space.spatial("o", [9, 4], 3)
    a, b = (tilewise.Tensor.random(tilewise.Layout.parse("ij|kl", {"ijkl": space}), seed) for seed in (1, 2))
    expected = np.einsum("ijkl,klmn->ijmn", a.to_dense(), b.to_dense())
    for policy in ("mixed", mixed):
        found = tilewise.contract("ijkl,klmn->ijmn", a, b, policy=policy, threads=2)
        assert np.allclose(found.to_dense(), expected, atol=1e-11)
