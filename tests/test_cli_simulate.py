"""`tilewise simulate`: tables, documents, pictures and traces of runs on other machines."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from command_line import GEOMETRIES, ROOT, WATER
from tilewise import policies
from tilewise.cli.run_simulate import parse_policies, parse_workers
from tilewise.hardware.machines import find_machine, shipped_machines

FUSION = find_machine("fusion")
SMALL = ("simulate", WATER, "--basis", "sto-3g", "--machine", "fusion")


def test_a_table_has_a_row_for_each_policy_and_number_of_workers(cli):
    outcome = cli.run(*SMALL, "--policy", "ie-nxtval, factoring(f=2, delta=1e-5)", "--workers", "8:20")
    assert outcome.code == 0, outcome.err
    names = re.findall(r"^policy +(.*)$", outcome.out, re.MULTILINE)
    rows = re.findall(r"^ *(\d+) +\d+ +[\d.]+ m?s(?: +[\d.]+ %){5} *$", outcome.out, re.MULTILINE)
    assert names == ["ie-nxtval", "factoring(delta=1e-05)"] and rows == ["8", "16", "20"] * 2
    assert f"fusion: {FUSION.nodes} nodes of {FUSION.cores} cores" in outcome.out


def test_the_document_has_the_numbers_of_each_run(cli, tmp_path):
    options = ("--policy", "ie-nxtval,dataflow", "--workers", "1,64", "--json")
    assert cli.run(*SMALL, *options, "one.json").code == 0
    assert cli.run(*SMALL, *options, "two.json").code == 0
    assert cli.run(*SMALL, *options, "other.json", "--seed", 1).code == 0
    one, two, other = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("one", "two", "other"))
    schema = json.loads((ROOT / "docs" / "simulate.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(one)
    assert one == two and one["simulations"] != other["simulations"]
    assert one["machine"]["nodes"] == FUSION.nodes and one["basis"] == "sto-3g"
    assert [(row["policy"], row["workers"]) for row in one["simulations"]] == [
        ("ie-nxtval", 1), ("ie-nxtval", 64), ("dataflow", 1), ("dataflow", 64),
    ]  # fmt: skip
    for row in one["simulations"]:
        busy = 1 - row["imbalance"]
        assert busy + row["counters"] + row["communication"] + row["waiting"] == pytest.approx(1)
        assert 0 < row["efficiency"] <= 1.5 and row["seconds"] > 0 and row["tasks"] > 50
    alone, many = one["simulations"][:2]
    assert many["counter_calls"] > alone["counter_calls"] and many["counters"] > alone["counters"]


def test_a_machine_without_a_limit_has_a_document_too(cli):
    outcome = cli.run("simulate", WATER, "--basis", "sto-3g", "--workers", 2, "--json", "-")
    assert outcome.code == 0
    assert json.loads(outcome.out)["machine"]["bandwidth"] is None and "policy" in outcome.err


def test_a_picture_and_a_trace_that_the_report_can_show(cli, tmp_path):
    options = ("--policy", "lpt", "--workers", 4, "--picture", "p.png", "--trace", "t.json")
    assert cli.run(*SMALL, *options).code == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    report = cli.run("report", "t.json")
    assert report.code == 0 and "workers: 4" in report.out and "simulated" in report.out


def test_benzene_in_a_smaller_group_has_more_work(cli, tmp_path):
    times = []
    for group in ("D2h", "C1"):
        options = ("--basis", "sto-3g", "--frozen", "auto", "--symmetry", group, "--json", "r.json")
        assert cli.run("simulate", GEOMETRIES / "benzene.xyz", "--workers", 2, *options).code == 0
        document = json.loads((tmp_path / "r.json").read_text())
        assert document["group"] == group
        times.append(document["simulations"][0]["seconds"])
    assert times[1] > times[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8", [8]),
        ("8,16,64", [8, 16, 64]),
        ("8:2400", [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 2400]),
        ("4:16", [4, 8, 16]),
        ("3, 1:4, 2", [1, 2, 3, 4]),
    ],
)
def test_numbers_of_workers(text, expected):
    assert parse_workers(text) == expected


def test_policies_are_separated_by_commas_outside_of_parentheses():
    text = "ie-nxtval,factoring(f=4, delta=0.5) , buckets(size=2,steal=yes)"
    shown = [str(policy) for policy in parse_policies(text)]
    assert shown == ["ie-nxtval", "factoring(delta=0.5, f=4.0)", "buckets(size=2, steal=True)"]


MISTAKES = {
    "an unknown policy": (
        ("--policy", "lpt,bukets"),
        ("unknown policy 'bukets': did you mean buckets", *policies),
    ),
    "an empty policy": (("--policy", "lpt,"), ("unknown policy ''",)),
    "an unknown machine": (("--machine", "fission"), ("unknown machine 'fission'", *shipped_machines())),
    "no workers": (("--workers", "0"), ("--workers 0", "8:2400")),
    "a range that falls": (("--workers", "8:4"), ("--workers 8:4",)),
    "workers without end": (("--workers", "1:" + "9" * 5000), ("--workers 1:99",)),
    "words for workers": (("--workers", "many"), ("--workers many",)),
    "too many workers": (
        ("--workers", "8:4000"),
        ("4000 workers on machine fusion", f"from 1 to {FUSION.size}"),
    ),
    "no folder for the picture": (("--picture", "no/p.png"), ("--picture", "no folder")),
    "a picture of no kind": (("--picture", "p.txt"), ("--picture p.txt", ".png, .svg, .pdf")),
    "a trace of many runs": (
        ("--trace", "t.json", "--workers", "1,2"),
        ("--trace t.json", "it shows one run, but 2 are asked for"),
    ),
    "an unknown group": (("--symmetry", "D3h"), ("unknown point group 'D3h'",)),
}


@pytest.mark.parametrize(("options", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_refused_with_what_would_be_right(cli, options, words):
    usual = ("--policy", "lpt", "--workers", "2", "--machine", "fusion")
    outcome = cli.run("simulate", WATER, "--basis", "sto-3g", *usual, *options)
    outcome.assert_refused(*words)
    assert not list(Path().iterdir())


def test_a_made_up_molecule_gets_the_list_of_those_that_are_there(cli):
    cli.run("simulate", GEOMETRIES / "watr.xyz", "--workers", 2).assert_refused(
        "watr.xyz: no such file", *(path.name for path in GEOMETRIES.glob("*.xyz"))
    )


def test_a_broken_machine_file_names_its_line(cli, tmp_path):
    text = shipped_machines()["laptop"].read_text().replace("cores = 2", "cores = -2")
    (tmp_path / "mine.toml").write_text(text)
    cli.run("simulate", WATER, "--machine", "mine.toml", "--workers", 2).assert_refused(
        "mine.toml, line 4: cores = -2: a whole number from 1 up is expected"
    )


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        (("water-1", "--frozen", "auto", "--tile", "20"), 10),
        (("water-1", "--frozen", "auto", "--tile", "20", "--equations", "tce-ccsd"), 100),
        (("n2-aug-cc-pvtz", "--frozen", "auto", "--symmetry", "C1", "--equations", "tce-ccsdt"), 100),
    ],
)
def test_a_molecule_known_by_its_orbitals(cli, tmp_path, options, tasks):
    outcome = cli.run("simulate", *options, "--machine", "fusion", "--workers", 64, "--json", "o.json")
    assert outcome.code == 0, outcome.err
    document = json.loads((tmp_path / "o.json").read_text())
    assert document["molecule"] == options[0]
    assert document["simulations"][0]["tasks"] > tasks
    assert document["equations"] == (options[-1] if "--equations" in options else "tilewise")
    assert "orbital counts alone" in outcome.out


def test_routines_run_as_a_report_shows_them(cli):
    options = ("water-1", "--equations", "tce-ccsd", "--machine", "fusion", "--policy", "dataflow")
    assert cli.run("simulate", *options, "--workers", 16, "--trace", "t.json").code == 0
    report = cli.run("report", "t.json")
    assert report.code == 0, report.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("watr-3",), "unknown molecule 'watr-3': did you mean water-"),
        (("water-0",), "valid are water-1, water-2, ... water-n, benzene-aug-cc-pvtz"),
        (("water-3", "--basis", "cc-pvdz"), "water-3 is known by its orbitals alone, in aug-cc-pvdz"),
        (("water-3", "--charge", "1"), "--charge 1: water-3 is known by its orbitals alone"),
        (("water-3", "--frozen", "1"), "give 0, 3 or auto"),
        (("water-3", "--symmetry", "C2v"), "C2v"),
        (("water-3", "--equations", "tce-ccsdtq"), "valid are tilewise, tce-ccsd, tce-ccsdt"),
        (("water-3", "--equations", "tce-ccsd", "--tile", "0"), "tile"),
    ],
)
def test_wrong_molecules_and_equations(cli, options, said):
    outcome = cli.run("simulate", *options, "--machine", "fusion", "--workers", 8)
    assert outcome.code == 2 and said in outcome.err, outcome.err
