"""Policies, workers and tile sizes on the command line."""

import json
import re

import pytest

from command_line import GEOMETRIES, WATER
from tilewise import policies

SMALL = ("ccsd", WATER, "--basis", "sto-3g", "--no-checkpoint", "--threads", 2)
BENZENE = ("plan", GEOMETRIES / "benzene.xyz", "--basis", "cc-pvdz", "--frozen", "auto", "--symmetry", "C1")


@pytest.mark.parametrize(
    "policy", ["factoring(f=2, delta=0.5)", "buckets(size=1, steal=yes)", "nxtval", "hybrid(gain=1)"]
)
def test_a_policy_prints_what_it_decided_and_what_its_workers_counted(cli, tmp_path, policy):
    outcome = cli.run(*SMALL, "--policy", policy, "--json", "r.json")
    assert outcome.code == 0
    assert re.search(rf"^policy +{policy.split('(')[0]}: .*\d+ ", outcome.out, re.MULTILINE)
    workers = json.loads((tmp_path / "r.json").read_text())["workers"]
    assert sum(workers["counter_calls"]) > 2 and sum(workers["allocations"]) == 0
    assert f"{sum(workers['counter_calls'])} draws from counters" in outcome.out
    assert "0 allocations inside tasks" in outcome.out


@pytest.mark.parametrize(("policy", "lines"), [("hybrid", 2), ("dataflow", 1)])
def test_a_policy_that_learns_says_in_the_end_what_it_decided(cli, policy, lines):
    outcome = cli.run(*SMALL, "--policy", policy)
    assert outcome.code == 0
    assert len(re.findall(rf"^policy +{policy}: .* workers", outcome.out, re.MULTILINE)) == lines


def test_the_help_names_all_policies(cli):
    words = set(re.findall(r"[\w-]+", cli.run("ccsd", "--help").out))
    assert set(policies) <= words


def test_a_wrong_policy_is_refused_with_what_would_be_right(cli):
    cli.run(*SMALL, "--policy", "factorin").assert_refused(
        "unknown policy 'factorin': did you mean factoring?"
    )
    cli.run(*SMALL, "--policy", "factoring(g=1)").assert_refused(
        "it has delta=, probe=, taper=, most=, longest_first=, f="
    )
    cli.run(*SMALL, "--policy", "factoring(f=0.5)").assert_refused("f must be a number above 1")


def test_workers_are_bound_to_processors(cli):
    assert cli.run(*SMALL[:-1], 1, "--pin").code == 0
    cli.run(*SMALL[:-1], 4096, "--pin").assert_refused("4096 workers are to be bound to", "threads or fewer")


def test_larger_tiles_make_fewer_and_larger_tasks(cli, tmp_path):
    """As libtensor found: allocations 5.6 times fewer, parallelism 3.6 times less, 2.2 times the memory."""
    outcome = cli.run(*BENZENE, "--tile", 16, 32, "--json", "p.json")
    assert outcome.code == 0 and re.search(r"^tile +tasks +blocks +parallelism", outcome.out, re.MULTILINE)
    document = json.loads((tmp_path / "p.json").read_text())
    small, large = document["granularity"]
    assert (small["tile"], large["tile"], document["plan"]["tile"]) == (16, 32, 16)
    assert 2 < small["tasks"] / large["tasks"] < 8
    assert 2 < small["blocks"] / large["blocks"] < 10
    assert 2 < small["parallelism"] / large["parallelism"] < 6
    assert 1.5 < large["worker_bytes"] / small["worker_bytes"] < 4


@pytest.mark.parametrize("tiles", [("0",), ("16", "x"), ("sixteen",), ("16,",), ("9" * 5000,)])
def test_wrong_tiles_are_refused(cli, tiles):
    outcome = cli.run(*BENZENE, "--tile", *tiles)
    assert outcome.code == 2 and outcome.err.startswith("tilewise: ")
