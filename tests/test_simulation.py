"""`tilewise.simulate`: an iteration on a machine that is not here."""

import numpy as np
import pytest

import tilewise
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.cost import CostModel, wisdom
from tilewise.cost.model import PARTS
from tilewise.hardware.machines import shipped_machines

SLOW_PRODUCTS, SLOW_SORTS = (
    CostModel(**{part: dict.fromkeys(names, 1e-6 if part == slow else 1e-9) for part, names in PARTS.items()})
    for slow in ("gemm", "sort")
)


@pytest.fixture
def wise(tmp_path, monkeypatch):
    """Lets the machine at hand know a cost model."""

    def know(model):
        monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path / model_name(model)))
        monkeypatch.setattr(wisdom, "_measured", {})
        assert wisdom.keep_model(model) == "" and wisdom.load_or_calibrate() == (model, "")

    return know


def model_name(model):
    return "products" if model is SLOW_PRODUCTS else "sorts"


@pytest.fixture(scope="module")
def water():
    return build_molecule("O 0 0 0.117; H 0 0.757 -0.469; H 0 -0.757 -0.469", "6-31g")


@pytest.mark.parametrize("machine", shipped_machines())
def test_what_is_known_of_the_machine_at_hand_plays_no_part(machine, water, wise):
    runs = []
    for model in (SLOW_PRODUCTS, SLOW_SORTS):
        wise(model)
        runs.append(tilewise.simulate(water, machine=machine, workers=2))
    one, other = (vars(run) for run in runs)
    assert all(np.array_equal(one[key], other[key]) for key in one)


def test_on_the_machine_at_hand_it_does(water, wise):
    seconds = []
    for model in (SLOW_PRODUCTS, SLOW_SORTS):
        wise(model)
        at_hand = tilewise.MachineModel("at hand", 1, 2)
        seconds.append(tilewise.simulate(water, machine=at_hand).makespan)
    assert seconds[0] != seconds[1]
