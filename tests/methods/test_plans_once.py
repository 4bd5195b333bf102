"""A plan is made once and handed on: `tilewise ccsd` does nothing twice that a plan knows."""

from collections import Counter
from importlib import import_module

import pytest

from command_line import WATER
from tilewise.cli import main

planning = import_module("tilewise.methods.plan")  # the folder has a function of that name


@pytest.fixture
def made(monkeypatch):
    """How often each step of planning is gone through."""
    counts: Counter[str] = Counter()

    def count(name):
        step = getattr(planning, name)

        def counted(*arguments, **settings):
            counts[name] += 1
            return step(*arguments, **settings)

        return counted

    for name in ("Plan", "plan_program", "inspect", "estimate"):
        monkeypatch.setattr(planning, name, count(name))
    return counts


def test_ccsd_plans_once(made, tmp_path, monkeypatch, capsys):
    """The program is planned once more without symmetry, to show what that would take."""
    monkeypatch.chdir(tmp_path)
    assert main(["ccsd", WATER, "--basis", "sto-3g", "--no-checkpoint", "--policy", "lpt"]) == 0
    assert "E(CCSD)" in capsys.readouterr().out
    assert made == {"Plan": 1, "plan_program": 2, "inspect": 1, "estimate": 1}
