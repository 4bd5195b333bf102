"""What open shells share with closed ones: restarts, policies, plans, traces, files, simulations."""

import numpy as np
import pytest
from open_shells import TIGHT, mean_field, pyscf_ccsd
from pyscf.tools import fcidump

import tilewise
from tilewise import policies
from tilewise.chem import pyscf_integrals
from tilewise.errors import CheckpointError, InputError
from tilewise.methods.checkpoint import Checkpoint


@pytest.fixture(scope="module")
def nh2():
    return {kind: mean_field("NH2", "6-31g", 1, kind) for kind in ("uhf", "rohf")}


@pytest.mark.parametrize("policy", policies)
def test_every_policy_gives_the_same_energy(nh2, policy):
    expected = tilewise.CCSD(nh2["rohf"], threads=1, conv_tol=1e-11, conv_tol_residual=1e-9).run().e_corr
    found = tilewise.CCSD(nh2["rohf"], threads=2, policy=policy, conv_tol=1e-11, conv_tol_residual=1e-9).run()
    assert abs(found.e_corr - expected) < 1e-10


def test_tiles_executors_and_deterministic_sums_change_nothing(nh2):
    expected = tilewise.CCSD(nh2["uhf"], **TIGHT).run().e_corr
    for settings in ({"tile": 2}, {"executor": "serial"}, {"deterministic": True}):
        assert abs(tilewise.CCSD(nh2["uhf"], **TIGHT | settings).run().e_corr - expected) < 1e-10
    bits = {
        tilewise.CCSD(nh2["uhf"], threads=n, policy=policy, deterministic=True).run().e_corr
        for n, policy in ((1, "dataflow"), (2, "factoring"))
    }
    assert len(bits) == 1


@pytest.mark.parametrize("kind", ["uhf", "rohf"])
@pytest.mark.parametrize(("first", "then"), [("auto", "C1"), ("Cs", "auto")])
def test_a_restart_goes_on_in_another_group_with_other_tiles_and_threads(nh2, tmp_path, kind, first, then):
    file = tmp_path / "uccsd.h5"
    done = tilewise.CCSD(nh2[kind], frozen=1, symmetry=first, checkpoint=file, tile=3, **TIGHT).run()
    again = tilewise.CCSD(nh2[kind], frozen=1, symmetry=then, restart=file, **TIGHT | {"threads": 1}).run()
    assert len(again.iterations) <= 3 and abs(again.e_corr - done.e_corr) < 1e-9
    assert len(Checkpoint.read(file).identities) == 2


def test_amplitudes_of_a_closed_shell_start_those_of_its_uhf(tmp_path):
    rhf, uhf = (mean_field("H2O", "6-31g", 0, kind) for kind in ("rhf", "uhf"))
    tilewise.UCCSD(rhf, checkpoint=tmp_path / "rhf.h5", **TIGHT).run()
    again = tilewise.UCCSD(uhf, restart=tmp_path / "rhf.h5", **TIGHT).run()
    assert len(again.iterations) <= 4 and again.converged


@pytest.mark.parametrize("name", ["H", "H2"])
def test_a_restart_goes_on_without_electrons_of_one_spin(tmp_path, name):
    triplet = mean_field(name, "6-31g", {"H": 1, "H2": 2}[name], "uhf")
    first = tilewise.CCSD(triplet, checkpoint=tmp_path / "kept.h5", max_cycle=2, conv_tol=1e-14).run()
    then = tilewise.CCSD(triplet, restart=tmp_path / "kept.h5", **TIGHT).run()
    assert then.converged and then.e_tot == pytest.approx(pyscf_ccsd(triplet).e_tot, abs=1e-8)
    assert first.t1.layout.size == then.t1.layout.size


def test_a_restart_from_other_orbitals_or_another_method_is_refused(nh2, tmp_path):
    tilewise.CCSD(nh2["uhf"], checkpoint=tmp_path / "uhf.h5", max_cycle=1).run()
    with pytest.raises(CheckpointError, match="the restart file has other orbitals"):
        tilewise.CCSD(nh2["rohf"], restart=tmp_path / "uhf.h5").run()
    with pytest.raises(CheckpointError, match="another set of active orbitals"):
        tilewise.CCSD(nh2["uhf"], frozen=1, restart=tmp_path / "uhf.h5").run()
    with pytest.raises(CheckpointError, match="amplitudes of uccsd, not of ccsd"):
        tilewise.CCSD(mean_field("H2O", "6-31g", 0, "rhf"), restart=tmp_path / "uhf.h5").run()


def test_a_plan_is_made_before_the_scf_and_tells_the_spins_apart(nh2):
    mol = nh2["uhf"].mol
    plan = tilewise.plan(mol, frozen=1)
    assert plan.method.name == "uccsd"
    assert plan.outline.orbitals == tilewise.plan(nh2["uhf"], frozen=1).outline.orbitals
    document = plan.to_dict()
    assert (sum(document["occupied"]), sum(document["occupied_beta"])) == (4, 3)
    assert (sum(document["virtual"]), sum(document["virtual_beta"])) == (8, 9)
    solved = tilewise.CCSD(nh2["rohf"], frozen=1, plan=plan).run()
    assert solved.plan.program is plan.program and "4 + 3 occupied, 8 + 9 virtual" in repr(solved)
    assert plan.flops < plan.without_symmetry[0]


def test_what_does_not_fit_the_memory_is_refused(nh2):
    with pytest.raises(InputError, match="not enough memory"):
        tilewise.CCSD(nh2["uhf"], memory="100kB").run()


@pytest.mark.parametrize(("kind", "symmetry"), [("uhf", "auto"), ("rohf", "auto"), ("uhf", "C1")])
def test_integrals_formed_on_the_fly_give_the_same_energy(nh2, kind, symmetry):
    expected = tilewise.CCSD(nh2[kind], **TIGHT).run().e_corr
    found = tilewise.CCSD(nh2[kind], on_the_fly=True, symmetry=symmetry, tile=4, **TIGHT).run()
    assert found.plan.on_the_fly and abs(found.e_corr - expected) < 1e-8
    closed = mean_field("H2O", "6-31g", 0, "rhf")
    one, other = (tilewise.UCCSD(closed, on_the_fly=x, **TIGHT).run().e_corr for x in (True, False))
    assert abs(one - other) < 1e-8


def test_vectors_are_made_once_for_both_spins(nh2, monkeypatch):
    calls, make = [], pyscf_integrals.cholesky_vectors

    def counted(*arguments):
        calls.append(arguments)
        return make(*arguments)

    monkeypatch.setattr(pyscf_integrals, "cholesky_vectors", counted)
    reference = tilewise.CCSD(nh2["uhf"], cholesky=1e-9).reference
    found = reference.alpha.three_index_with(reference.beta, 1)
    assert len(calls) == 1
    each = [own.three_index(1) for own in reference.by_spin]
    assert np.array_equal(found, np.hstack(each))
    assert np.abs(reference.alpha.eri_with(reference.beta) - each[0].T @ each[1]).max() < 1e-12


def test_an_iteration_is_traced_and_simulated(nh2, tmp_path):
    tilewise.CCSD(nh2["rohf"], trace=tmp_path / "trace.json").run()
    assert "UCCSD of" in (tmp_path / "trace.json").read_text()
    run = tilewise.simulate(nh2["uhf"].mol, machine="fusion", workers=8, policy="dataflow")
    assert run.makespan > 0


def written(mf, path, **options):
    """A FCIDUMP of PySCF over the orbitals of an ROHF."""
    fcidump.from_scf(mf, str(path), tol=1e-15, **options)
    return path


@pytest.mark.parametrize("frozen", [None, 1])
def test_a_fcidump_with_unpaired_electrons_is_that_of_an_rohf(nh2, tmp_path, frozen):
    expected = pyscf_ccsd(nh2["rohf"], frozen)
    reference = tilewise.read_fcidump(written(nh2["rohf"], tmp_path / "dump"), frozen)
    found = tilewise.CCSD(reference, **TIGHT).run()
    assert abs(found.e_hf - nh2["rohf"].e_tot) < 1e-9 and abs(found.e_corr - expected.e_corr) < 1e-8
    assert abs(found.s_squared - 0.75) < 1e-10
    assert np.abs(found.to_pyscf()[1][1] - expected.t2[1]).max() < 1e-6


def test_fcidumps_that_do_not_say_what_they_are_are_refused(nh2, tmp_path):
    text = written(nh2["rohf"], tmp_path / "dump").read_text()
    for before, after, message in (
        ("MS2=1", "MS2=2", "MS2=2 does not fit NELEC=9"),
        ("MS2=1", "MS2=-1", "MS2=-1 does not fit"),
        ("MS2=1", "MS2=1,IUHF=1", "integrals for each spin .IUHF, UHF. are read in the sections"),
        ("MS2=1", "MS2=5", "no determinant of its orbitals solves the ROHF equations"),
    ):
        (tmp_path / "wrong").write_text(text.replace(before, after))
        with pytest.raises(InputError, match=message):
            tilewise.read_fcidump(tmp_path / "wrong")
