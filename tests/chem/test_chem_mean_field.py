"""References from PySCF mean fields."""

import h5py
import numpy as np
import pytest
from chem_oracles import WATER, full_eri, hf_energy, mean_field, mp2_energy
from pyscf import ao2mo, dft, gto, mp, scf

from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.errors import CheckpointError, InputError


@pytest.mark.parametrize("symmetry", ["auto", "C2v", "C2", "cs", "C1"])
@pytest.mark.parametrize("frozen", [None, 1, "auto", [0, 1, 11, 12]])
def test_water_gives_the_mp2_and_hf_energies_of_pyscf(water, symmetry, frozen):
    reference = from_mean_field(water, frozen=frozen, symmetry=symmetry)
    pyscf_frozen = 1 if frozen == "auto" else frozen
    assert mp2_energy(reference) == pytest.approx(mp.MP2(water, frozen=pyscf_frozen).kernel()[0], abs=1e-9)
    assert hf_energy(reference) == pytest.approx(water.e_tot, abs=1e-9)
    assert reference.e_hf == water.e_tot


@pytest.mark.parametrize(
    ("atom", "basis", "group", "charge"),
    [
        ("N 0 0 0; N 0 0 1.1", "cc-pvdz", "D2h", 0),
        ("Ne", "cc-pvtz", "D2h", 0),
        ("Li 0 0 0; H 0 0 1.6", "cc-pvdz", "C2v", 0),
        ("F", "6-31g", "D2h", -1),
        ("C 0 0 0; H 1 1 1; H -1 -1 1; H 1 -1 -1; H -1 1 -1", "sto-3g", "D2", 0),
        (WATER + "; ghost-O 0 0 3", "6-31g", "C2v", 0),
        ("H 0.9 0.8 0.3; O 0 0.7 0; O 0 -0.7 0; H -0.9 -0.8 0.3", "sto-3g", "C2", 0),
    ],
)
def test_integrals_obey_the_irreps(atom, basis, group, charge):
    mf = mean_field(atom, basis, charge=charge)
    reference = from_mean_field(mf)
    assert reference.outline.group.name == group
    irreps = np.concatenate([reference.occ_irreps, reference.vir_irreps])
    pairs = irreps[:, None] ^ irreps
    assert np.abs(full_eri(reference)[(pairs[:, :, None, None] ^ pairs) != 0]).max(initial=0) < 1e-10
    assert np.abs(reference.one_electron()[pairs != 0]).max(initial=0) < 1e-10
    assert mp2_energy(reference) == pytest.approx(mp.MP2(mf).kernel()[0], abs=1e-9)


def test_orbitals_are_ordered_by_irrep_then_energy(nitrogen):
    reference = from_mean_field(nitrogen, frozen="auto")
    assert reference.outline.frozen_core == 2
    assert reference.outline.n_electrons == 14
    for energies, irreps in (
        (reference.occ_energies, reference.occ_irreps),
        (reference.vir_energies, reference.vir_irreps),
    ):
        assert np.all(np.diff(irreps) >= 0)
        assert np.all(np.diff(energies)[np.diff(irreps) == 0] > -1e-7)
    coefficients = nitrogen.mo_coeff[:, reference.order]
    assert np.allclose(reference.eri(), ao2mo.full(nitrogen.mol, coefficients), atol=1e-10)
    core = nitrogen.mo_coeff[:, :2] @ nitrogen.mo_coeff[:, :2].T * 2
    expected = coefficients.T @ (nitrogen.get_hcore() + nitrogen.get_veff(dm=core)) @ coefficients
    assert np.allclose(reference.one_electron(), expected, atol=1e-9)


@pytest.mark.parametrize("subgroup", ["D2h", "C2v", "D2", "C2h", "Cs", "Ci", "C2", "C1"])
def test_restricting_reorders_and_changes_nothing(nitrogen, subgroup):
    reference = from_mean_field(nitrogen)
    restricted = reference.restrict(subgroup)
    direct = from_mean_field(nitrogen, symmetry=subgroup)
    assert restricted.outline == direct.outline == reference.outline.restrict(subgroup)
    assert np.array_equal(restricted.order, direct.order)
    assert np.allclose(restricted.occ_energies, direct.occ_energies)
    assert mp2_energy(restricted) == pytest.approx(mp2_energy(reference), abs=1e-12)


def test_integrals_come_from_wherever_the_mean_field_has_them(water):
    expected = from_mean_field(water).eri()
    direct = water.copy()
    direct._eri = None
    assert np.allclose(from_mean_field(direct).eri(), expected, atol=1e-10)
    fitted = scf.RHF(water.mol).density_fit().run(conv_tol=1e-12)
    reference = from_mean_field(fitted, frozen=1)
    assert fitted._eri is None
    assert mp2_energy(reference) == pytest.approx(mp.MP2(fitted, frozen=1).kernel()[0], abs=1e-9)
    assert hf_energy(reference) == pytest.approx(fitted.e_tot, abs=1e-9)


def test_other_hamiltonians_keep_their_energy(water):
    relativistic = scf.RHF(water.mol).x2c().run(conv_tol=1e-12)
    assert hf_energy(from_mean_field(relativistic, frozen=1)) == pytest.approx(relativistic.e_tot, abs=1e-9)
    solvated = scf.RHF(gto.M(atom=WATER, basis="sto-3g", verbose=0)).ddCOSMO().run(conv_tol=1e-12)
    assert hf_energy(from_mean_field(solvated)) == pytest.approx(solvated.e_tot, abs=1e-9)


def refused(mf, message, **options):
    with pytest.raises(InputError, match=message):
        from_mean_field(mf, **options).fock_rest()


def test_mean_fields_of_other_kinds_are_refused(water):
    mol = water.mol
    refused(scf.GHF(mol), "GHF is neither restricted nor unrestricted: a converged RHF, UHF or ROHF")
    for kind in (dft.RKS, dft.UKS, dft.ROKS):
        refused(kind(mol), "Kohn-Sham")
    refused(mol, "Mole is not a PySCF mean field")
    refused(scf.RHF(mol), r"no orbitals yet: run mf.kernel\(\)")
    refused(scf.RHF(mol).run(max_cycle=1), "SCF not converged: raise mf.max_cycle")
    for kind in (scf.UHF, scf.ROHF):
        refused(kind(mol), r"no orbitals yet: run mf.kernel\(\)")
        refused(kind(mol).run(max_cycle=1), "SCF not converged: raise mf.max_cycle")


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        (-1, "frozen=-1: there are 5 occupied orbitals, so a number from 0 to 4"),
        (5, "frozen=5"),
        ([0, 13], "frozen orbital 13 does not exist: numbers run from 0 to 12"),
        ([-1], "frozen orbital -1 does not exist"),
        ([0, 1, 2, 3, 4], "leaves no occupied orbital"),
        (list(range(5, 13)), "leaves no virtual orbital"),
        ([0.5], "whole numbers"),
        (True, "expected"),
        (1.5, "expected"),
        ("core", 'frozen="core": expected "auto"'),
    ],
)
def test_wrong_frozen_orbitals_are_refused(water, frozen, message):
    refused(water, message, frozen=frozen)


def test_a_minimal_basis_without_virtuals_is_refused():
    refused(mean_field("He", "sto-3g"), "the mean field has no virtual orbital")


def altered(mf, change):
    copy = mf.copy()
    coefficients = np.array(mf.mo_coeff)
    change(coefficients)
    copy.mo_coeff = coefficients
    return copy


def rotate(p, q, angle):
    def change(c):
        c[:, [p, q]] = c[:, [p, q]] @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]

    return change


def test_orbitals_that_will_not_do_are_refused(water):
    refused(altered(water, rotate(0, 1, 1e-4)), "not canonical.*between occupied orbitals")
    refused(altered(water, rotate(7, 8, 1e-2)), "not canonical|mixes irreps", symmetry="C1")
    refused(altered(water, rotate(3, 5, 1e-2)), "between occupied and virtual orbitals")
    refused(altered(water, rotate(3, 4, 1e-2)), 'mixes irreps.*symmetry="C1"')
    imaginary = water.copy()
    imaginary.mo_coeff = np.array(water.mo_coeff) * 1j
    refused(imaginary, "complex")
    smeared = water.copy()
    smeared.mo_occ = np.where(np.arange(13) == 4, 1.5, water.mo_occ)
    refused(smeared, "partly occupied")


def test_degenerate_orbitals_may_mix_irreps_only_without_symmetry(nitrogen):
    pair = np.flatnonzero(np.isclose(nitrogen.mo_energy, nitrogen.mo_energy[7]))
    assert len(pair) == 2
    mixed = altered(nitrogen, rotate(*pair, 0.3))
    refused(mixed, "mixes irreps")
    reference = from_mean_field(mixed, symmetry="C1")
    assert mp2_energy(reference) == pytest.approx(mp2_energy(from_mean_field(nitrogen)), abs=1e-9)


def test_a_group_that_the_molecule_lacks_is_refused(water):
    refused(water, "D2h is not a subgroup of C2v", symmetry="D2h")
    refused(water, "unknown point group", symmetry="C7")
    refused(mean_field(WATER, "sto-3g", symmetry=False), "build mol with symmetry=True", symmetry="C2v")


def flip_and_swap(c):
    c[:, [2, 7]] *= -1
    c[:, [0, 1]] = c[:, [1, 0]]


def test_identity_survives_signs_order_subgroup_and_a_file(water, tmp_path):
    reference = from_mean_field(water)
    changed = water.copy()
    coefficients = np.array(water.mo_coeff)
    flip_and_swap(coefficients)
    changed.mo_coeff = coefficients
    with h5py.File(tmp_path / "restart.h5", "w") as file:
        from_mean_field(changed, symmetry="C1").identity.to_hdf5(file.create_group("orbitals"))
    with h5py.File(tmp_path / "restart.h5") as file:
        stored = OrbitalIdentity.from_hdf5(file["orbitals"])
    found = reference.identity.match(stored)
    assert (found.occ_signs < 0).sum() == 1
    assert (found.vir_signs < 0).sum() == 1
    assert np.allclose(stored.occ[:, found.occ] * found.occ_signs, reference.identity.occ)
    assert np.allclose(stored.vir[:, found.vir] * found.vir_signs, reference.identity.vir)


def test_identity_holds_for_an_scf_run_again(water):
    again = scf.RHF(water.mol)
    again.init_guess = "1e"
    again.run(conv_tol=1e-10)
    from_mean_field(water).identity.match(from_mean_field(again).identity)


@pytest.mark.parametrize(
    ("atom", "basis", "options", "message"),
    [
        ("O 0 0 0.1173; F 0 0.7572 -0.4692; F 0 -0.7572 -0.4692", "6-31g", {}, "another molecule"),
        (WATER.replace("0.1173", "0.1174"), "6-31g", {}, "another geometry"),
        (WATER, "6-31g*", {}, "another basis: '6-31g\\*' there, '6-31g' here"),
        (WATER, "6-31g", {"frozen": 1}, "another set of active orbitals: 4 occupied ones, here there are 5"),
    ],
)
def test_a_mismatch_says_what_differs(water, atom, basis, options, message):
    other = from_mean_field(mean_field(atom, basis), **options)
    with pytest.raises(CheckpointError, match=message):
        from_mean_field(water).identity.match(other.identity)


def test_another_determinant_or_frozen_set_is_not_matched(water):
    mine = from_mean_field(water, frozen=[0]).identity
    with pytest.raises(CheckpointError, match="other orbitals: occupied orbital"):
        mine.match(from_mean_field(water, frozen=[1]).identity)


def test_a_damaged_restart_file_is_a_checkpoint_error(water, tmp_path):
    with h5py.File(tmp_path / "restart.h5", "w") as file:
        from_mean_field(water).identity.to_hdf5(file)
        del file["overlap"]
        with pytest.raises(CheckpointError, match=r"restart\.h5: damaged"):
            OrbitalIdentity.from_hdf5(file)
