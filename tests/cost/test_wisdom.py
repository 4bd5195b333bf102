"""Wisdom: kept per machine, and ignored with a note whenever it cannot be used."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.cost import CostModel, wisdom
from tilewise.cost.model import PARTS
from tilewise.inspect import PanelRule
from tilewise.methods.plan import plan

MODEL = CostModel(**{part: dict.fromkeys(names, 1e-9) for part, names in PARTS.items()})
OTHER = CostModel(**{part: dict.fromkeys(names, 2e-9) for part, names in PARTS.items()})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(wisdom, "_measured", {})
    return tmp_path / "cache"


@pytest.fixture
def measured(monkeypatch):
    """Counts calibrations, which take no time."""
    calls = []
    monkeypatch.setattr(wisdom, "calibrate", lambda: calls.append(1) or MODEL)
    return calls


def test_nothing_is_known_at_first_and_that_is_no_news():
    assert wisdom.load() == (wisdom.Wisdom(), "")


def test_what_is_stored_is_loaded():
    known = wisdom.Wisdom(MODEL, {"some": PanelRule(96, 1024)})
    assert wisdom.store(known) == ""
    assert wisdom.load() == (known, "")


def test_model_and_panels_are_kept_side_by_side():
    assert wisdom.keep_model(MODEL) == wisdom.keep_panels("some", PanelRule(5, 7)) == ""
    assert wisdom.keep_model(OTHER) == wisdom.keep_panels("more", PanelRule(6, 8)) == ""
    assert wisdom.load()[0] == wisdom.Wisdom(OTHER, {"some": PanelRule(5, 7), "more": PanelRule(6, 8)})


def test_kernels_are_measured_once(measured):
    assert [wisdom.load_or_calibrate() for _ in range(3)] == [(MODEL, "")] * 3
    assert len(measured) == 1


def entry(**changes):
    return {
        "format": wisdom.FORMAT,
        "machines": {wisdom.machine_key(): wisdom.Wisdom(MODEL).to_dict() | changes},
    }


def without_a_coefficient():
    document = entry()
    del document["machines"][wisdom.machine_key()]["model"]["sort"]["written"]
    return document


DAMAGED = {
    "no JSON": lambda: "coefficients: many",
    "nothing": lambda: "",
    "no text": lambda: b"\xff\xfe\x00",
    "truncated": lambda: json.dumps(entry())[:-40],
    "a list": lambda: "[1, 2]",
    "no machines": lambda: {"format": wisdom.FORMAT, "machines": 5},
    "an entry that is a number": lambda: {"format": wisdom.FORMAT, "machines": {wisdom.machine_key(): 5}},
    "a missing coefficient": without_a_coefficient,
    "a negative coefficient": lambda: entry(
        model=MODEL.to_dict() | {"stream": dict.fromkeys(PARTS["stream"], -1.0)}
    ),
    "a coefficient of no machine": lambda: entry(
        model=MODEL.to_dict() | {"stream": dict.fromkeys(PARTS["stream"], 1e308)}
    ),
    "a coefficient that is a word": lambda: entry(
        model={part: dict.fromkeys(names, "x") for part, names in PARTS.items()}
    ),
    "panels without a width": lambda: entry(panels={"some": [96]}),
    "panels without rows": lambda: entry(panels={"some": [0, 7]}),
    "panels without an end": lambda: entry(panels={"some": [float("inf"), 7]}),
    "panels that are words": lambda: entry(panels={"some": "ab"}),
    "a list of panels": lambda: entry(panels=[1]),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_wisdom_is_ignored_with_a_note_and_replaced(folder, measured, content):
    folder.mkdir()
    data = content()
    text = data if isinstance(data, str | bytes) else json.dumps(data)
    wisdom.wisdom_file().write_bytes(text if isinstance(text, bytes) else text.encode())
    known, note = wisdom.load()
    assert known == wisdom.Wisdom() and "damaged" in note and str(wisdom.wisdom_file()) in note
    assert "damaged" in wisdom.load_or_calibrate()[1]
    assert wisdom.load() == (wisdom.Wisdom(MODEL), "")


@pytest.mark.parametrize("what", ["available_cpus", "blas_name", "_processor", "_versions"])
def test_wisdom_of_another_machine_or_version_is_not_used(monkeypatch, measured, what):
    wisdom.keep_model(OTHER)
    monkeypatch.setattr(wisdom, what, lambda *_: "another")
    known, note = wisdom.load()
    assert known == wisdom.Wisdom() and "another machine" in note
    assert wisdom.load_or_calibrate()[0] == MODEL


def test_both_machines_have_their_entry(monkeypatch, measured):
    wisdom.keep_model(OTHER)
    with monkeypatch.context() as other:
        other.setattr(wisdom, "_processor", lambda: "another")
        assert wisdom.load_or_calibrate()[0] == MODEL
    assert wisdom.load() == (wisdom.Wisdom(OTHER), "")
    assert len(json.loads(wisdom.wisdom_file().read_text())["machines"]) == 2


def test_a_file_of_another_format_is_not_used(folder, measured):
    folder.mkdir()
    wisdom.wisdom_file().write_text(json.dumps(entry() | {"format": wisdom.FORMAT + 1}))
    assert "another version" in wisdom.load()[1]
    assert wisdom.load_or_calibrate()[0] == MODEL and wisdom.load()[1] == ""


def test_a_folder_that_cannot_be_written_is_a_note_and_kernels_are_measured_once(folder, measured):
    folder.write_text("a file is in the way")
    model, note = wisdom.load_or_calibrate()
    assert model == MODEL and "cannot be written" in note
    assert wisdom.load_or_calibrate()[0] == MODEL and len(measured) == 1
    assert "cannot be written" in wisdom.keep_panels("some", PanelRule())


def test_writers_at_the_same_time_leave_a_whole_file(folder):
    def write(number):
        wisdom.keep_panels(f"class {number}", PanelRule(number + 1, 7))
        return wisdom.load()[1]

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(64))) == {""}
    known, note = wisdom.load()
    assert known.panels and not note
    assert [path.name for path in folder.iterdir()] == ["wisdom.json"]


def test_classes_hold_molecules_of_similar_size():
    assert wisdom.panel_key(4, 5, 19, 2) == wisdom.panel_key(4, 5, 20, 2)
    others = {wisdom.panel_key(8, 5, 19, 2), wisdom.panel_key(4, 10, 38, 2), wisdom.panel_key(4, 5, 19, 4)}
    assert len(others | {wisdom.panel_key(4, 5, 19, 2)}) == 4


def test_plans_take_the_panels_that_were_found_best(measured, tmp_path):
    water = tmp_path / "water.xyz"
    water.write_text("3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n")
    molecule = build_molecule(water, "6-31g", 0)
    before = plan(molecule, threads=1)
    assert before.rule == PanelRule()
    outline = before.outline
    key = wisdom.panel_key(outline.group.order, outline.n_occ, outline.n_vir, 1)
    wisdom.keep_panels(key, PanelRule(7, 9))
    assert plan(molecule, threads=1).rule == PanelRule(7, 9)
    assert plan(molecule, threads=2).rule == PanelRule()
    assert plan(molecule, threads=1, deterministic=True).rule == PanelRule()
    assert np.isfinite(plan(molecule, threads=1).task_seconds).all()
