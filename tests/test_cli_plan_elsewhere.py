"""`tilewise plan --machine`: how a planned run would go on another machine, or on this one."""

import json

import numpy as np
import pytest

from command_line import WATER, validator
from tilewise.config import available_cpus
from tilewise.hardware.machines import find_machine, shipped_machines
from tilewise.hardware.this_machine import this_machine

PLAN = ("plan", WATER, "--basis", "sto-3g")


def test_a_plan_says_how_it_would_run_on_a_machine(cli):
    outcome = cli.run(
        *PLAN, "--machine", "fusion", "--workers", "1:4", "--policy", "ie-nxtval", "--json", "-"
    )
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    validator("plan", "simulate").validate(document)
    assert document["machine"]["name"] == "fusion"
    assert [(row["policy"], row["workers"]) for row in document["simulations"]] == [
        ("ie-nxtval", 1), ("ie-nxtval", 2), ("ie-nxtval", 4),
    ]  # fmt: skip
    assert f"fusion: {find_machine('fusion').nodes} nodes of 8 cores" in outcome.err
    assert "efficiency" in outcome.err


def test_the_same_numbers_come_from_simulate(cli):
    options = ("--machine", "fusion", "--workers", "8", "--policy", "buckets", "--json", "-")
    planned = json.loads(cli.run(*PLAN, *options).out)["simulations"]
    simulated = json.loads(cli.run("simulate", *PLAN[1:], *options).out)["simulations"]
    assert planned == simulated


def test_a_plan_without_a_machine_has_no_simulation(cli):
    document = json.loads(cli.run(*PLAN, "--json", "-").out)
    validator("plan", "simulate").validate(document)
    assert not {"machine", "simulations"} & set(document)


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        (("--machine", "fusion"), find_machine("fusion").working),
        (("--machine", "fusion", "--threads", 3), 3),
        (("--machine", "pvm"), 1),
    ],
)
def test_without_a_number_of_workers_a_node_is_taken_or_the_threads(cli, options, workers):
    document = json.loads(cli.run(*PLAN, *options, "--json", "-").out)
    assert [row["workers"] for row in document["simulations"]] == [workers]


def test_this_machine_is_measured():
    model = this_machine()
    assert 1 <= model.crowding < 10 and 0 <= model.drift < 3 and 0 < model.stretch <= 1
    assert (model.name, model.nodes, model.cores) == ("here", 1, available_cpus())
    assert 0 < model.counter_shared == model.counter_service < 1e-3 and 0 < model.barrier < 0.1


def test_a_run_here_takes_about_what_the_plan_predicts(cli):
    document = json.loads(cli.run(*PLAN, "--machine", "here", "--threads", 1, "--json", "-").out)
    (row,) = document["simulations"]
    predicted = document["plan"]["predicted_iteration_seconds"]
    drift = document["machine"]["drift"]  # such a short iteration meets one speed of its core
    assert abs(np.log(row["seconds"] / predicted)) < 0.05 + 4 * drift


MISTAKES = {
    "workers of no machine": (("--workers", "8"), ("--workers 8: a machine is needed too",)),
    "too many workers": (("--machine", "pvm", "--workers", "8"), ("8 workers on machine pvm", "1 to 4")),
    "an unknown machine": (
        ("--machine", "fussion"),
        ("did you mean fusion?", *shipped_machines(), "here"),
    ),
    "words for workers": (("--machine", "pvm", "--workers", "all"), ("--workers all",)),
}


@pytest.mark.parametrize(("options", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_refused_with_what_would_be_right(cli, options, words):
    cli.run(*PLAN, *options).assert_refused(*words)
