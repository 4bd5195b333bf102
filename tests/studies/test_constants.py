"""What was fitted or chosen: each study lists it, and docs/studies.md shows all of it."""

from pathlib import Path

import pytest

import tilewise.studies
from command_line import ROOT
from tilewise.studies import Constant, Findings, Study, studies
from tilewise.studies.constants import all_constants, in_machine, in_module, markdown_table, quantity
from tilewise.studies.study import FITTED

DOCS = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
MODULES = sorted(Path(tilewise.studies.__file__).parent.glob("*.py"))
SPEED_OF_TESTS = 2.5e-5


def shown_rows(heading: str) -> list[str]:
    """Of the first table below a line of the docs, its heading left out."""
    lines = DOCS.splitlines()
    lines = lines[lines.index(heading) :]
    first = next(k for k, line in enumerate(lines) if line.startswith("|---"))
    last = next((k for k, line in enumerate(lines) if k > first and not line.startswith("|")), len(lines))
    return lines[first + 1 : last]


def test_the_docs_show_exactly_the_constants_of_all_studies():
    _, _, *wanted = markdown_table(all_constants(studies.values())).splitlines()
    shown = shown_rows("## Constants")
    missing = "\n".join(row for row in wanted if row not in shown)
    unknown = "\n".join(row for row in shown if row not in wanted)
    assert shown == wanted, (
        f"missing in docs/studies.md:\n{missing}\nnot of any study:\n{unknown}\n"
        "Put what `tilewise study constants` prints under the heading Constants."
    )


def test_the_docs_mark_each_study_as_it_marks_itself():
    marks = {}
    for row in shown_rows("# The papers' tables, repeated"):
        names, *_, mark = (cell.strip() for cell in row.strip("|").split("|"))
        marks.update({name.strip(" `"): mark for name in names.split(",")})
    wrong = {name: ", ".join(study.marks) for name, study in studies.items() if study.marks}
    wrong = {name: mark for name, mark in wrong.items() if marks.get(name) != mark}
    assert not wrong, f"last cells that these rows of the first table in docs/studies.md should have: {wrong}"


@pytest.mark.parametrize("study", studies.values(), ids=studies)
def test_a_study_is_marked_as_fitted_if_one_of_its_constants_was(study):
    assert (FITTED in study.marks) == any(
        constant.origin.startswith(FITTED) for constant in study.constants()
    )


@pytest.mark.parametrize("constant", all_constants(studies.values()), ids=lambda c: c.name)
def test_a_constant_stands_in_the_file_that_is_named(constant):
    assert constant.name.rpartition(".")[2] in (ROOT / constant.file).read_text(encoding="utf-8")


def test_a_constant_that_several_studies_use_is_listed_once():
    one, other = (Constant(name, "1", "a.py", "all", "chosen") for name in "ab")
    listed = [
        Study("s", "p", "w", lambda progress, seed: Findings(()), constants=lambda used=used: used)
        for used in ((one,), (other, one), (other,))
    ]
    assert all_constants(listed) == [one, other]


def test_values_are_read_from_where_they_are_set():
    found = in_module(__name__, "SPEED_OF_TESTS", "nothing", "chosen", "s")
    assert (found.name, found.value) == ("SPEED_OF_TESTS", "25 us")
    machine = in_machine("fusion", "reserved", "of 8 cores", "the workers", "chosen")
    assert machine.value == "1 of 8 cores" and machine.file == "src/tilewise/machines/fusion.toml"
    with pytest.raises(KeyError):
        in_machine("fusion", "counter.speed", "s", "nothing", "chosen")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.9, "", "0.9"),
        (352, "calls", "352 calls"),
        (1.24e-3, "s", "1.24 ms"),
        (2e-7, "s", "200 ns"),
        (2028.0, "", "2028.0"),
        (9e9, "flop/s", "9 Gflop/s"),
        (0.0, "s", "0 s"),
        ({"ccsd": "t2_8", "ccsdt": "t3_7"}, "", "t2_8 (ccsd), t3_7 (ccsdt)"),
        ((0.2, 0.4), "", "0.2, 0.4"),
    ],
)
def test_counts_are_shown_as_they_are_and_measures_with_a_prefix(value, unit, text):
    assert quantity(value, unit) == text
