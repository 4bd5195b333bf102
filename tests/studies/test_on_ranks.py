"""Studies that run on real ranks: what they compute is right, and their messages are those counted before."""

import pytest

from tilewise.errors import TilewiseError
from tilewise.studies.ghosh_proxy_loops import LOOPS, simulated_seconds
from tilewise.studies.on_ranks import run_program


@pytest.mark.parametrize("ranks", [1, 3])
def test_loops_of_the_proxy_give_the_product_and_the_messages_of_their_pattern(ranks):
    found = run_program("proxy", ranks, size=48, block=12)
    n = 48 // 12
    expected = {
        "original": (2 * n**3, n**2),
        "inverted": (n**2 + n**3, n**3),
        "double-buffered": (n**2 + n**3, n**3),
    }
    for name in LOOPS:
        run = found[name]
        assert (run["gets"], run["adds"]) == expected[name]
        assert run["error"] < 1e-12
        assert simulated_seconds(name, 48, 12, ranks, found) > 0


@pytest.mark.parametrize(("molecule", "ranks"), [("water-2", 2), ("water-2", 4)])
def test_messages_of_each_pattern_are_those_that_the_inspector_counts(molecule, ranks):
    found = run_program("patterns", ranks, molecule=molecule, tile=20)
    assert set(found) == {"original", "inverted", "cache"}
    for run in found.values():
        assert {"gets": run["gets"], "adds": run["adds"]} == run["expected"]
        assert run["error"] < 1e-12


def test_each_number_of_a_flooded_counter_is_drawn_once():
    found = run_program("flood", 3, calls=50)
    assert [(run["callers"], run["drawn"]) for run in found] == [(1, 50), (2, 100), (3, 150)]


def test_what_goes_wrong_on_ranks_is_told():
    with pytest.raises(TilewiseError, match="flood on 2 ranks failed"):
        run_program("flood", 2, calls="many")


def test_a_study_without_ranks_says_which_have_them(cli):
    cli.run("study", "pvm-table1", "--run").assert_refused("pvm-table1", "ghosh-proxy", "pvm-table2")
