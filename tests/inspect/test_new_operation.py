"""The operation of docs/new-operation.md, as it stands there."""

import re

import pytest

from command_line import ROOT
from tilewise import policies
from tilewise.execute.once import run_once
from tilewise.inspect.operations import inspectors

CODE = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "new-operation.md").read_text(), re.DOTALL)


@pytest.fixture
def names():
    made: dict = {"__name__": "squares"}
    for code in CODE:
        exec(code, made)
    yield made
    del inspectors[made["SumOfSquares"]]


@pytest.mark.parametrize("executor", ["threads", "serial"])
@pytest.mark.parametrize("policy", policies)
def test_the_operation_of_the_page_runs_by_every_policy(names, policy, executor):
    chosen = {"policy": policies[policy], "workers": 3, "executor": executor}
    found = run_once(names["program"], {"A": names["A"]}, **chosen)
    assert abs(found["s"][0] - 2 * names["A"].norm() ** 2) < 1e-10
