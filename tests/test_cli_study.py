"""`tilewise study`: what it prints, what it writes, what it refuses."""

import io
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from command_line import ROOT
from tilewise.cli.run_study import format_deviation, format_value, show
from tilewise.studies import Findings, Pair, Row, Study, Table, studies
from tilewise.studies.constants import all_constants

QUICK = "pvm-table2"


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((ROOT / "docs" / "study.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_the_list_names_every_study_with_its_paper(cli):
    outcome = cli.run("study", "list")
    assert outcome.code == 0
    assert all(name in outcome.out for name in studies)


def test_the_constants_of_all_studies_are_shown_as_a_table(cli):
    outcome = cli.run("study", "constants")
    assert outcome.code == 0
    heads, line, *rows = outcome.out.splitlines()
    assert heads.startswith("| constant | value |") and set(line) == set("|-")
    assert len(rows) == len(all_constants(studies.values()))


def test_a_table_shows_the_paper_beside_ours_and_every_assumption(cli):
    outcome = cli.run("study", QUICK)
    assert outcome.code == 0, outcome.err
    row = next(line for line in outcome.out.splitlines() if line.startswith("interleaved, 2-2-1-1"))
    paper, ours, deviation = row.split()[2:5]
    assert paper == "4016" and float(deviation) == pytest.approx(100 * (float(ours) / 4016 - 1), abs=0.1)
    assert all(f"- {text}" in outcome.out for text in studies[QUICK]().assumptions)


def test_wide_tables_are_neither_cut_nor_folded():
    numbers = tuple(Pair(1234567 + k, 7654321 + k) for k in range(9))
    table = Table("wide", ("a rather long label", *"abcdefghi"), (Row("label of the row", numbers),))
    out = io.StringIO()
    study = Study("s", "p", "w", lambda progress, seed: Findings((table,)))
    show(study, study(), 0.0, Console(file=out, width=60))
    (line,) = [line for line in out.getvalue().splitlines() if line.startswith("label of the row")]
    assert all(f" {value.paper} " in line and f" {value.ours} " in line for value in numbers)


def test_a_document_follows_the_schema_and_is_the_same_again(cli, validator):
    first, second = (json.loads(cli.run("study", QUICK, "--json", "-").out) for _ in range(2))
    validator.validate(first)
    assert first == second
    (study,) = first["studies"]
    assert study["name"] == QUICK and study["seed"] == 0
    value = study["tables"][0]["rows"][0]["values"][0]
    assert set(value) == {"paper", "ours", "deviation", "derived"}


def test_a_folder_gets_text_document_and_picture(cli, validator, tmp_path):
    assert cli.run("study", QUICK, "--out", "made/here").code == 0
    folder = tmp_path / "made" / "here"
    assert {path.name for path in folder.iterdir()} == {f"{QUICK}.{kind}" for kind in ("txt", "json", "png")}
    validator.validate(json.loads((folder / f"{QUICK}.json").read_text()))
    assert "interleaved, 2-2-1-1" in (folder / f"{QUICK}.txt").read_text()
    assert (folder / f"{QUICK}.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_has_the_format_of_its_name(cli, tmp_path):
    assert cli.run("study", QUICK, "--picture", "p.svg").code == 0
    assert "<svg" in (tmp_path / "p.svg").read_text()


MISTAKES = {
    "a made-up name": (
        ("pvm-table3",),
        ("unknown study 'pvm-table3'", "did you mean pvm-table", *studies, "all"),
    ),
    "a picture of all": (("all", "--picture", "p.png"), ("--picture p.png: it shows one study", "--out")),
    "a picture of no kind": ((QUICK, "--picture", "p.txt"), (".png, .svg, .pdf",)),
    "no folder": ((QUICK, "--json", "no/such.json"), ("--json", "no folder")),
    "a file for a folder": ((QUICK, "--out", "taken"), ("--out taken: it is a file",)),
    "a picture of a table": (
        ("ozog-table1", "--picture", "p.png"),
        ("ozog-table1 is a table, without a figure",),
    ),
    "a negative seed": ((QUICK, "--seed", "-1"), ("--seed",)),
}


@pytest.mark.parametrize(("arguments", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_refused_with_what_would_be_right(cli, tmp_path, arguments, words):
    (tmp_path / "taken").touch()
    cli.run("study", *arguments).assert_refused(*words)


@pytest.mark.parametrize(
    ("value", "text"),
    [(14280, "14280"), (2703.7, "2704"), (0.12345, "0.1235"), (12.0, "12"), ("C1", "C1"), (None, "")],
)
def test_numbers_are_shown_with_four_digits_and_counts_in_full(value, text):
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("deviation", "text"), [(0.0123, "+1.2 %"), (-0.5, "-50.0 %"), (0.0, "0"), (1.3, "x 2.3"), (None, "")]
)
def test_large_deviations_are_factors(deviation, text):
    assert format_deviation(deviation) == text


WRITTEN = [("--json", "l.json"), ("--json", "-"), ("--picture", "l.png"), ("--out", "l")]


@pytest.mark.parametrize("name", ["list", "constants"])
@pytest.mark.parametrize("options", WRITTEN)
def test_overviews_of_the_studies_are_not_written_to_files(cli, name, options):
    cli.run("study", name, *options).assert_refused(options[0], f"study {name} prints a text")
    assert not list(Path().iterdir())
