"""The way through a FCIDUMP file: the same energies as from the mean field that it was written from."""

import pytest
from ccsd_oracles import TIGHT, mean_field, pyscf_ccsd, pyscf_run
from pyscf import lib, scf
from pyscf.tools import fcidump

import tilewise
from tilewise.chem.fcidump import read_fcidump, write_fcidump
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.errors import CheckpointError, InputError


@pytest.mark.parametrize(
    ("name", "written", "read", "irreps"),
    [
        ("water", "auto", "auto", 4),
        ("water", "auto", "C1", 1),
        ("water", "C1", "auto", 1),
        ("nitrogen", "auto", "auto", 8),
        ("nitrogen", "auto", "D2", 4),
        ("nitrogen", "C2h", "auto", 4),
        ("methane", "auto", "auto", 4),
        ("trans-difluoroethylene", "auto", "auto", 4),
        ("hydrogen peroxide", "auto", "auto", 2),
        ("hydrogen, minimal", "auto", "auto", 8),
        ("helium", "auto", "C1", 1),
        ("water, Cartesian functions", "auto", "auto", 4),
    ],
)
def test_the_energy_survives_the_file(tmp_path, name, written, read, irreps):
    write_fcidump(tmp_path / "integrals", from_mean_field(mean_field(name), symmetry=written))
    ccsd = tilewise.CCSD(read_fcidump(tmp_path / "integrals"), symmetry=read, **TIGHT).run()
    expected = pyscf_ccsd(name)
    assert ccsd.plan.outline.group.order == irreps
    assert ccsd.e_corr == pytest.approx(expected.e_corr, abs=1e-8)
    assert ccsd.e_tot == pytest.approx(expected.e_tot, abs=1e-8)
    assert ccsd.t1_diagnostic == pytest.approx(expected.get_t1_diagnostic(), abs=1e-7)


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
@pytest.mark.parametrize("folded", [True, False], ids=["folded into the file", "left out when read"])
def test_a_frozen_core(tmp_path, symmetry, folded):
    mf = mean_field("formaldehyde")
    path = tmp_path / "integrals"
    write_fcidump(path, from_mean_field(mf, frozen=2 if folded else None))
    # In the file orbitals stand by irrep: the two 1s are both in A1, with the lowest energies.
    reference = read_fcidump(path) if folded else read_fcidump(path, frozen=2)
    ccsd = tilewise.CCSD(reference, symmetry=symmetry, **TIGHT).run()
    expected = pyscf_ccsd("formaldehyde", 2)
    assert ccsd.e_corr == pytest.approx(expected.e_corr, abs=1e-8)
    assert ccsd.e_tot == pytest.approx(expected.e_tot, abs=1e-8)


@pytest.mark.parametrize("name", ["water", "nitrogen"])
def test_a_file_that_pyscf_wrote(tmp_path, name):
    path = str(tmp_path / "integrals")
    fcidump.from_scf(mean_field(name), path, tol=1e-15, molpro_orbsym=True)
    ccsd = tilewise.CCSD(read_fcidump(path), **TIGHT).run()
    assert ccsd.plan.outline.group.order > 1
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd(name).e_corr, abs=1e-8)
    assert ccsd.e_tot == pytest.approx(pyscf_ccsd(name).e_tot, abs=1e-8)


@pytest.mark.parametrize("name", ["formaldehyde", "carbon monoxide"])
def test_a_file_of_an_scf_converged_to_pyscfs_defaults(tmp_path, name):
    """What such an SCF leaves of the Fock matrix, between orbitals of one kind too, is not neglected."""
    with lib.with_omp_threads(1):
        mf = scf.RHF(mean_field(name).mol).run()
    path = str(tmp_path / "integrals")
    fcidump.from_scf(mf, path, tol=1e-15, molpro_orbsym=True)
    ccsd = tilewise.CCSD(read_fcidump(path), **TIGHT).run()
    assert ccsd.e_corr == pytest.approx(pyscf_run(mf).e_corr, abs=1e-8)


def test_freezing_after_reading_is_refused(tmp_path):
    write_fcidump(tmp_path / "integrals", from_mean_field(mean_field("water")))
    with pytest.raises(InputError, match="when a Reference is made"):
        tilewise.CCSD(read_fcidump(tmp_path / "integrals"), frozen=1)


@pytest.mark.parametrize("symmetry", ["auto", "Cs", "C1"])
def test_a_restart_from_a_file_of_amplitudes(tmp_path, symmetry):
    write_fcidump(tmp_path / "integrals", from_mean_field(mean_field("water")))
    kept = tmp_path / "water.h5"
    first = tilewise.CCSD(read_fcidump(tmp_path / "integrals"), checkpoint=kept, max_cycle=8).run()
    again = tilewise.CCSD(
        read_fcidump(tmp_path / "integrals"), symmetry=symmetry, restart=kept, **TIGHT
    ).run()
    assert again.iterations[0].residual < first.iterations[-1].residual
    assert again.e_corr == pytest.approx(pyscf_ccsd("water").e_corr, abs=1e-8)


def test_amplitudes_of_a_molecule_are_not_for_a_file(tmp_path):
    kept = tmp_path / "water.h5"
    tilewise.CCSD(mean_field("water"), checkpoint=kept, max_cycle=2).run()
    write_fcidump(tmp_path / "integrals", from_mean_field(mean_field("water")))
    with pytest.raises(CheckpointError, match=r"water\.h5"):
        tilewise.CCSD(read_fcidump(tmp_path / "integrals"), restart=kept).run()
