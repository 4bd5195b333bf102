"""Plans: what symmetry saves, and what is known before any integral is computed."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from ccsd_oracles import MOLECULES, mean_field
from pyscf import ao2mo, gto, scf

import tilewise
from tilewise.chem.pyscf_integrals import MeanFieldIntegrals
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.chem.reference import Reference
from tilewise.config import format_bytes
from tilewise.errors import InputError, MemoryBudgetError
from tilewise.hardware.model import MachineModel
from tilewise.inspect import PanelRule, inspect
from tilewise.methods.panels import rule_of_ranks
from tilewise.methods.prediction import Predictor

GEOMETRIES = Path(__file__).parents[2] / "examples" / "geometries"


@pytest.fixture
def no_two_electron_integrals(monkeypatch):
    """Whoever asks for electron repulsion integrals fails the test."""
    real = gto.Mole.intor

    def watched(self, name, *arguments, **options):
        if "int2e" in name:
            pytest.fail(f"{name} was computed")
        return real(self, name, *arguments, **options)

    def refused(*_, **__):
        pytest.fail("two-electron integrals were computed")

    monkeypatch.setattr(gto.Mole, "intor", watched)
    for home, name in (
        (scf.hf.SCF, "kernel"),
        (scf.hf.SCF, "get_jk"),
        (ao2mo, "full"),
        (ao2mo.incore, "full"),
    ):
        monkeypatch.setattr(home, name, refused)
    for name in [name for name in vars(MeanFieldIntegrals) if not name.startswith("_")]:
        if callable(getattr(MeanFieldIntegrals, name)):
            monkeypatch.setattr(MeanFieldIntegrals, name, refused)
    for name in ("eri", "basis_integrals", "one_electron"):
        monkeypatch.setattr(Reference, name, refused)


def test_symmetry_saves_what_it_should_for_benzene(no_two_electron_integrals):
    mol = build_molecule(GEOMETRIES / "benzene.xyz", "cc-pvdz")
    plan = tilewise.plan(mol, frozen=6)
    assert plan.outline.group.name == "D2h"
    assert (plan.outline.n_occ, plan.outline.n_vir) == (15, 93)
    flops, stored = plan.without_symmetry
    assert plan.flops <= flops / 40
    assert plan.stored_bytes <= stored / 7
    without = tilewise.plan(mol, frozen=6, symmetry="C1")
    assert (without.flops, without.stored_bytes) == plan.without_symmetry
    assert without.without_symmetry == plan.without_symmetry
    # Without symmetry: o^2 v^4 / 4 multiply-adds in the ladder, 4 1/2 o^3 v^3 in the other large products.
    o, v = 15, 93
    assert flops == pytest.approx(2 * (o**2 * v**4 / 4 + 4.5 * o**3 * v**3), rel=0.25)


@pytest.mark.parametrize(
    "name", ["water", "nitrogen", "methane", "hydrogen, minimal", "trans-difluoroethylene"]
)
def test_the_plan_of_a_molecule_is_that_of_its_mean_field(name):
    """No SCF is run for it: occupations are guessed."""
    mf = mean_field(name)
    guessed, known = tilewise.plan(mf.mol), tilewise.plan(mf)
    assert (guessed.outline.occ, guessed.outline.vir) == (known.outline.occ, known.outline.vir)
    assert (guessed.flops, guessed.stored_bytes) == (known.flops, known.stored_bytes)
    assert len(guessed.graph) == len(known.graph)


@pytest.mark.parametrize("name", ["water", "nitrogen", "hydrogen peroxide"])
def test_the_larger_the_group_the_less_work(name):
    plans = [tilewise.plan(mean_field(name), symmetry=group) for group in MOLECULES[name].groups]
    for plan in plans[1:]:
        assert plan.flops > plans[0].flops
        assert plan.stored_bytes > plans[0].stored_bytes
    assert plans[-1].flops == max(plan.flops for plan in plans) == plans[0].without_symmetry[0]


@pytest.fixture
def nothing_in_use(monkeypatch):
    """What the process has in memory changes from call to call: leave it out."""
    monkeypatch.setattr(import_module("tilewise.methods.plan"), "resident_memory", lambda: 0)


def test_a_plan_is_what_is_run(nothing_in_use):
    ccsd = tilewise.CCSD(mean_field("nitrogen"), threads=2, policy="lpt", tile=3, frozen="auto").run()
    plan = tilewise.plan(mean_field("nitrogen"), threads=2, policy="lpt", tile=3, frozen="auto")
    assert plan.to_dict().keys() == ccsd.plan.to_dict().keys()
    for key in (
        "tasks",
        "dependencies",
        "flops",
        "stored_bytes",
        "memory_peak",
        "group",
        "occupied",
        "frozen_core",
    ):
        assert plan.to_dict()[key] == ccsd.plan.to_dict()[key]
    assert len(ccsd.task_seconds) == len(plan.graph)
    json.dumps(plan.to_dict())


def test_a_plan_takes_an_outline_or_a_reference():
    reference = from_mean_field(mean_field("water"), frozen=1)
    for source in (reference, reference.outline):
        assert tilewise.plan(source).flops == tilewise.plan(mean_field("water"), frozen=1).flops
        assert tilewise.plan(source, symmetry="Cs").outline.group.name == "Cs"


def test_the_default_budget_holds_a_small_molecule_and_the_peak_is_the_largest_stage():
    plan = tilewise.plan(mean_field("water"))
    plan.check_memory()
    assert plan.peak_memory == max(plan.memory.values()) < plan.budget
    assert sum(size for *_, size in plan.tensors()) >= plan.stored_bytes > 0


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
def test_a_budget_that_is_too_small_ends_the_run_before_any_integral(request, symmetry):
    ccsd = tilewise.CCSD(mean_field("ethylene"), symmetry=symmetry, memory="100kB")
    request.getfixturevalue("no_two_electron_integrals")
    with pytest.raises(MemoryBudgetError) as caught:
        ccsd.run()
    message = str(caught.value)
    assert "100 kB" in message
    assert format_bytes(ccsd.plan.peak_memory) in message
    assert "\n" not in message
    assert isinstance(caught.value, InputError)


def test_the_budget_that_the_message_asks_for_is_enough(nothing_in_use):
    ccsd = tilewise.CCSD(mean_field("water"), memory="10kB")
    with pytest.raises(MemoryBudgetError) as caught:
        ccsd.run()
    asked_for = re.search(r"allow ([\d.]+GB)", str(caught.value))[1]
    assert tilewise.CCSD(mean_field("water"), memory=asked_for).run().converged
    exact = tilewise.CCSD(mean_field("water"), memory=f"{(ccsd.plan.peak_memory + 1) / 1000}kB").run()
    assert exact.converged


def test_less_memory_is_needed_with_symmetry_and_with_a_frozen_core():
    mf = mean_field("ethylene")
    peak = {
        (symmetry, frozen): tilewise.plan(mf, symmetry=symmetry, frozen=frozen, threads=1).peak_memory
        for symmetry in ("auto", "C1")
        for frozen in (None, "auto")
    }
    assert peak["auto", None] < peak["C1", None]
    assert peak["C1", "auto"] < peak["C1", None]


def test_a_new_plan_on_an_unknown_source_is_refused():
    with pytest.raises(InputError):
        tilewise.plan("water.xyz")


def by_dataflow(made, height):
    """An iteration with panels of one height, by the model of this machine and the simulator."""
    predict = Predictor(inspect(made.program, PanelRule(height)), MachineModel("cores", 1, made.threads))
    return predict(tilewise.policies["dataflow"], made.threads).simulation


@pytest.mark.parametrize("threads", [1, 4, 48])
def test_a_long_iteration_has_the_panels_that_the_model_finds_best(threads):
    mol = build_molecule(GEOMETRIES / "water4.xyz", "aug-cc-pvdz", 0)
    made = tilewise.plan(mol, frozen="auto", symmetry="C1", threads=threads, memory="100GB")
    predicted = {height: by_dataflow(made, height) for height in (48, 96, 192, 384, 768)}
    looked_at = (48, 96) if predicted[192].efficiency < 0.95 else (384, 768)
    best = min(looked_at, key=lambda height: predicted[height].makespan)
    gains = predicted[best].makespan < 0.99 * predicted[192].makespan
    assert made.rule.height == (best if gains else 192)


def test_a_plan_that_does_not_fit_is_not_improved(monkeypatch):
    planning = import_module("tilewise.methods.plan")
    monkeypatch.setattr(planning, "Predictor", lambda *_: pytest.fail("panels were looked at"))
    mol = build_molecule(GEOMETRIES / "water4.xyz", "aug-cc-pvdz", 0)
    made = tilewise.plan(mol, frozen="auto", symmetry="C1", threads=2, memory="0.2GB")
    assert made.peak_memory > made.budget and made.rule == PanelRule()


@pytest.mark.parametrize("settings", [{}, {"deterministic": True}])
def test_short_and_ordered_iterations_keep_the_default_panels(settings):
    name = "water.xyz" if not settings else "water4.xyz"
    mol = build_molecule(GEOMETRIES / name, "cc-pvdz" if not settings else "aug-cc-pvdz", 0)
    assert tilewise.plan(mol, threads=2, memory="100GB", **settings).rule == PanelRule()


@pytest.mark.parametrize(
    ("height", "workers", "expected"),
    [(768, 2, 768), (768, 3, 384), (768, 4, 192), (768, 8, 192), (256, 5, 256), (256, 2, 192), (96, 2, 96)],
)
def test_tall_panels_are_taken_on_ranks_if_all_workers_have_as_many_of_them(height, workers, expected):
    assert rule_of_ranks(PanelRule(height), 12 * 108, workers) == PanelRule(expected)
