"""Density fitting and Cholesky decomposition, against PySCF's DF-CCSD and the exact integrals."""

import numpy as np
import pytest
from ccsd_oracles import mean_field, pyscf_ccsd
from pyscf import df, scf
from pyscf.cc import dfccsd

import tilewise
from tilewise.errors import InputError

TIGHT = {"conv_tol": 1e-10, "conv_tol_residual": 1e-8}


def pyscf_fitted(mf, auxiliary=None):
    solver = dfccsd.RCCSD(mf)
    if auxiliary:
        solver.with_df = df.DF(mf.mol, auxbasis=auxiliary)
    solver.verbose, solver.conv_tol, solver.conv_tol_normt = 0, 1e-11, 1e-9
    return solver.run().e_corr


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
def test_density_fitting_equals_pyscfs(symmetry):
    mf = mean_field("water")
    ccsd = tilewise.CCSD(mf, df=True, symmetry=symmetry, **TIGHT).run()
    assert ccsd.e_corr == pytest.approx(pyscf_fitted(mf), abs=1e-8)
    assert abs(ccsd.e_corr - pyscf_ccsd("water").e_corr) > 1e-7  # it is not the exact one


def test_an_auxiliary_basis_by_name_equals_pyscfs():
    mf = mean_field("nitrogen")
    ccsd = tilewise.CCSD(mf, df="weigend", frozen=2, **TIGHT).run()
    solver = dfccsd.RCCSD(mf, frozen=2)
    solver.with_df = df.DF(mf.mol, auxbasis="weigend")
    solver.verbose, solver.conv_tol, solver.conv_tol_normt = 0, 1e-11, 1e-9
    assert ccsd.e_corr == pytest.approx(solver.run().e_corr, abs=1e-8)


def test_a_fitted_mean_field_is_fitted_without_asking():
    mf = scf.RHF(mean_field("water").mol).density_fit().run(conv_tol=1e-12)
    assert tilewise.CCSD(mf, **TIGHT).run().e_corr == pytest.approx(pyscf_fitted(mf), abs=1e-8)


@pytest.mark.parametrize(("threshold", "error"), [(1e-4, 1e-4), (1e-6, 1e-6), (1e-9, 1e-8)])
@pytest.mark.parametrize("stored", [True, False])
def test_cholesky_vectors_come_as_near_to_the_exact_energy_as_asked(threshold, error, stored):
    mf = mean_field("water")
    kept, mf._eri = mf._eri, mf._eri if stored else None
    try:
        ccsd = tilewise.CCSD(mf, cholesky=threshold, **TIGHT).run()
    finally:
        mf._eri = kept
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd("water").e_corr, abs=error)


def test_no_integral_is_off_by_more_than_the_cholesky_threshold():
    exact = tilewise.CCSD(mean_field("water")).reference
    for threshold in (1e-3, 1e-6):
        vectors = tilewise.CCSD(mean_field("water"), cholesky=threshold).reference.three_index(2)
        # Orbitals are orthonormal combinations: their integrals are off by a little more at the most.
        assert np.abs(vectors.T @ vectors - exact.eri()).max() < 20 * threshold


@pytest.mark.parametrize("symmetry", ["auto", "Cs", "C1"])
@pytest.mark.parametrize("stored", [True, False])
def test_exact_integrals_computed_on_the_way_give_the_same_energy(symmetry, stored):
    """Without the integrals that the SCF kept, those of symmetry-unique pairs of shells are computed."""
    mf = mean_field("water")
    kept, mf._eri = mf._eri, mf._eri if stored else None
    try:
        ccsd = tilewise.CCSD(mf, symmetry=symmetry, **TIGHT).run()
    finally:
        mf._eri = kept
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd("water").e_corr, abs=1e-8)


@pytest.mark.parametrize(
    "options", [{"df": True, "cholesky": 1e-6}, {"cholesky": 2.0}, {"df": "no-such-basis"}]
)
def test_fitting_that_makes_no_sense_is_refused(options):
    with pytest.raises(InputError):
        tilewise.CCSD(mean_field("water"), **options).run()
