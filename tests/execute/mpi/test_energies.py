"""Every policy, pattern, store and kind of integrals on real ranks gives the energy of one rank."""

from pathlib import Path

import pytest

from ranks import run_module

SCRIPT = Path(__file__).with_name("energies_on_ranks.py")


@pytest.mark.parametrize("ranks", [3])
def test_all_ways_give_the_energy_of_one_rank(ranks):
    done = run_module(SCRIPT, ranks, seconds=900)
    assert done.returncode == 0, done.stderr
    assert "wrong" not in done.stdout, done.stdout
    assert "25 ways" in done.stdout, done.stdout
