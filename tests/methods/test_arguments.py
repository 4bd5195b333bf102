"""Arguments of `tilewise.CCSD` and `tilewise.plan`: taken as they are meant, or refused by name."""

import numpy as np
import pytest
from ccsd_oracles import mean_field, pyscf_ccsd

import tilewise
from tilewise.arguments import MOST_SEED
from tilewise.errors import InputError

WRONG = [
    ("cholesky", 0, "a threshold between 0 and 1"),
    ("cholesky", "tight", "a threshold between 0 and 1"),
    ("cholesky", True, "a threshold between 0 and 1"),
    ("cholesky", float("nan"), "a threshold between 0 and 1"),
    ("df", 3, "True, False or the name"),
    ("df", "", "True, False or the name"),
    ("symmetry", 3, "the name of a point group"),
    ("policy", 3, "a policy or its name"),
    ("tile", 1.5, "a whole number from 1 up"),
    ("tile", "x", "a whole number from 1 up"),
    ("tile", True, "a whole number from 1 up"),
    ("tile", 0, "a whole number from 1 up"),
    ("threads", "x", "a whole number from 1 to 4096"),
    ("threads", float("nan"), "a whole number from 1 to 4096"),
    ("threads", [1], "a whole number from 1 to 4096"),
    ("diis_space", None, "a whole number from 1 up"),
    ("on_the_fly", "x", "True or False"),
    ("deterministic", None, "True or False"),
]
WRONG_FOR_A_PLAN = [
    ("budget", "é", "a whole number from 1 up"),
    ("budget", np.array("x"), "a whole number from 1 up"),
    ("budget", 0, "a whole number from 1 up"),
    ("in_use", "1GB", "a whole number from 0 up"),
    ("in_use", -1, "a whole number from 0 up"),
]
WRONG_FOR_A_RUN = [
    ("max_cycle", 0, "a whole number from 1 up"),
    ("max_cycle", 1.5, "a whole number from 1 up"),
    ("conv_tol", None, "a positive number"),
    ("conv_tol_residual", "x", "a positive number"),
    ("level_shift", -0.1, "a number from 0 up"),
    ("level_shift", None, "a number from 0 up"),
    ("checkpoint", 3, "the path of a file"),
    ("checkpoint", True, "the path of a file"),
    ("restart", 3, "the path of a file"),
    ("trace", 3, "the path of a file"),
    ("pin", "x", "True or False"),
    ("callback", 3, "a function"),
    ("progress", 3, "a function"),
]


@pytest.mark.parametrize(("name", "value", "expected"), WRONG + WRONG_FOR_A_RUN)
def test_a_wrong_argument_of_ccsd_is_named(name, value, expected):
    with pytest.raises(InputError, match=f"^{name}=.*{expected}"):
        tilewise.CCSD(mean_field("water"), **{name: value})


@pytest.mark.parametrize("kind", ["molecule", "mean field", "Reference", "Outline"])
@pytest.mark.parametrize(("name", "value", "expected"), WRONG + WRONG_FOR_A_PLAN)
def test_a_wrong_argument_of_plan_is_named(kind, name, value, expected):
    mf = mean_field("water")
    source = {"molecule": mf.mol, "mean field": mf}.get(kind) or tilewise.CCSD(mf).reference
    with pytest.raises(InputError, match=f"^{name}=.*{expected}"):
        tilewise.plan(source.outline if kind == "Outline" else source, **{name: value})


@pytest.mark.parametrize(
    "arguments",
    [{"symmetry": None}, {"symmetry": True}, {"policy": None}, {"tile": 4.0}, {"tile": np.int64(4)}],
)
def test_other_ways_of_saying_the_same_are_understood(arguments):
    mf = mean_field("water")
    assert tilewise.CCSD(mf, **arguments).run().e_tot == pytest.approx(pyscf_ccsd("water").e_tot, abs=1e-7)
    assert tilewise.plan(mf, **arguments).outline.group.name == "C2v"
    assert tilewise.plan(mf.mol, **arguments).outline.group.name == "C2v"


def test_no_symmetry_can_be_said_in_two_ways():
    reference = tilewise.CCSD(mean_field("water")).reference
    for source in (mean_field("water"), mean_field("water").mol, reference, reference.outline):
        for word in (False, "C1"):
            assert tilewise.plan(source, symmetry=word).outline.group.name == "C1"


def test_a_plan_of_fitted_integrals_counts_their_vectors():
    mf = mean_field("water")
    fitted = tilewise.plan(mf, df="cc-pvdz-ri")
    assert fitted.outline.n_vectors == tilewise.CCSD(mf, df="cc-pvdz-ri").reference.three_index(1).shape[0]
    assert tilewise.plan(mf.mol, df="cc-pvdz-ri").outline.n_vectors == fitted.outline.n_vectors
    loose, tight = (tilewise.plan(mf, cholesky=t).outline.n_vectors for t in (1e-3, 1e-8))
    assert loose < tight


@pytest.mark.parametrize("frozen", [1, [0], np.array([0, 1]), "auto"])
def test_frozen_orbitals_of_a_reference_or_an_outline_are_not_chosen_again(frozen):
    reference = tilewise.CCSD(mean_field("water")).reference
    for source in (reference, reference.outline):
        with pytest.raises(InputError, match=r"frozen orbitals are chosen when an? .* is made"):
            tilewise.plan(source, frozen=frozen)
        with pytest.raises(InputError, match=r"fitting is chosen when an? .* is made"):
            tilewise.plan(source, df=True)


@pytest.mark.parametrize("frozen", [None, 0, [], (), np.array([], int), "none"])
def test_none_frozen_can_be_said_of_anything(frozen):
    mf = mean_field("water")
    reference = tilewise.CCSD(mf).reference
    for source in (mf, mf.mol, reference, reference.outline):
        assert tilewise.plan(source, frozen=frozen).outline.frozen_core == 0


def test_lists_in_lists_are_no_orbitals():
    with pytest.raises(InputError, match=r"^frozen=\[0, \[1\]\]: "):
        tilewise.CCSD(mean_field("water"), frozen=[0, [1]])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("workers", 0, "a whole number from 1 up"),
        ("seed", -1, "a whole number from 0 to"),
        ("seed", 10**25, "a whole number from 0 to"),
        ("tile", "x", "a whole number from 1 up"),
        ("machine", 3, "a text"),
        ("policy", 3, "a policy or its name"),
        ("symmetry", 3, "the name of a point group"),
    ],
)
def test_a_wrong_argument_of_simulate_is_named(name, value, expected):
    with pytest.raises(InputError, match=f"^{name}=.*{expected}"):
        tilewise.simulate(mean_field("water").mol, **{name: value})


@pytest.mark.parametrize("policy", tilewise.policies)
def test_the_largest_seed_is_taken(policy):
    run = tilewise.simulate(mean_field("water").mol, policy=policy, seed=MOST_SEED, machine="fusion")
    assert run.makespan > 0
