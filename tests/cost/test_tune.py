"""`tilewise tune`: what it prints, keeps and writes, with little to measure."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from command_line import ROOT, WATER, CommandLine
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.cost import score, wisdom
from tilewise.cost.calibrate import QUICK, random_shapes
from tilewise.cost.sample import products, program
from tilewise.inspect import PanelRule
from tilewise.methods.exploration import explore
from tilewise.methods.plan import plan


@pytest.fixture
def cli(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(wisdom, "_measured", {})
    monkeypatch.setattr(
        score, "thorough_experiments", lambda: [products(random_shapes(40, 1), 1 << 20), program(QUICK[1])]
    )
    monkeypatch.setattr(score, "HELD_OUT", QUICK[:1])
    return CommandLine()


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((ROOT / "docs" / "tune.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_kernels_are_scored_and_kept(cli, validator):
    outcome = cli.run("tune", "--json", "tune.json")
    assert outcome.code == 0, outcome.err
    assert "median error" in outcome.out and str(wisdom.wisdom_file()) in outcome.out
    assert wisdom.load()[0].model is not None
    document = json.loads(Path("tune.json").read_text())
    validator.validate(document)
    kinds = {row["kind"]: row for row in document["kernels"]}
    assert {"all products", "sort"} <= set(kinds)
    for row in kinds.values():
        assert row["kind"] in outcome.out and 0 <= row["median"] <= row["ninetieth"] and row["samples"] > 0


def test_json_on_the_standard_output_stands_alone(cli, validator):
    outcome = cli.run("tune", "--json", "-")
    validator.validate(json.loads(outcome.out))
    assert "median error" in outcome.err


def test_a_molecule_is_explored_and_its_panels_are_used(cli, validator):
    outcome = cli.run(
        "tune",
        "--molecule",
        WATER,
        "--basis",
        "6-31g",
        "--threads",
        1,
        "--json",
        "w.json",
        "--picture",
        "map.png",
    )
    assert outcome.code == 0, outcome.err
    assert "quantum 8" in outcome.out and "dataflow" in outcome.out and "from now on" in outcome.out
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads(Path("w.json").read_text())
    validator.validate(document)
    found = document["exploration"]
    assert (found["trials"][0]["height"], found["trials"][0]["width"]) == (
        PanelRule().height,
        PanelRule().width,
    )
    assert all(0 < value < 60 for trial in found["trials"] for value in trial["seconds"].values())
    kept = wisdom.load()[0].panels[found["class"]]
    assert (kept.height, kept.width) == (found["best"]["height"], found["best"]["width"])
    assert plan(build_molecule(WATER, "6-31g", 0), threads=1).rule == kept


def test_every_way_to_cut_the_tensors_is_tried_once():
    made = plan(build_molecule(WATER, "6-31g", 0), threads=2)
    found = explore(made, heights=(1, 8, 192, 5000), widths=(1, 4096, 9999), quanta=(1, 3), seconds=0.0)
    rules = [trial.rule for trial in found.trials]
    assert rules[0] == PanelRule() and len(set(rules)) == len(rules)
    assert PanelRule(192, 9999) not in rules and PanelRule(1, 1) in rules
    tasks = {trial.rule: trial.tasks for trial in found.trials}
    assert tasks[PanelRule(1, 1)] == max(tasks.values())
    assert {*found.trials[0].seconds} == {"ie-nxtval", "ie-nxtval(quantum=3)", "dataflow"}
    counted, quantum = found.best_quantum
    assert counted.at(quantum) == min(trial.at(q) for trial in found.trials for q in (1, 3))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--molecule", "nothing.xyz"), ("nothing.xyz", "no such file")),
        (("--basis", "cc-pvdz"), ("--basis cc-pvdz", "--molecule")),
        (("--picture", "map.png"), ("--picture map.png", "--molecule")),
        (("--molecule", WATER, "--picture", "map.doc"), ("map.doc", ".png")),
        (("--molecule", WATER, "--picture", "no/map.png"), ("no folder",)),
        (("--molecule", WATER, "--threads", 0), ("threads",)),
        (("--molecule", WATER, "--basis", "cc-pvdzz"), ("cc-pvdzz",)),
        (("--molecule", WATER, "--basis", "6-31g", "--memory", "1MB"), ("memory",)),
        (("--json", "no/tune.json"), ("no folder",)),
    ],
)
def test_wrong_input_is_refused(cli, arguments, words):
    cli.run("tune", *arguments).assert_refused(*words)


def test_a_run_tells_of_wisdom_that_it_cannot_use(cli):
    wisdom.wisdom_file().parent.mkdir()
    wisdom.wisdom_file().write_text("{")
    outcome = cli.run("plan", WATER, "--basis", "sto-3g")
    assert outcome.code == 0 and "note: " in outcome.out and "damaged" in outcome.out
    assert "damaged" not in cli.run("plan", WATER, "--basis", "sto-3g").out
