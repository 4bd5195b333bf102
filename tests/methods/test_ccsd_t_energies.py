"""(T) against PySCF: closed shells of every group, open shells, frozen orbitals, atoms, ions."""

from functools import cache

import numpy as np
import pytest
from ccsd_oracles import MOLECULES, TIGHT, WATER
from open_shells import mean_field, pyscf_ccsd
from pyscf import ao2mo, cc, df, gto, scf
from pyscf.cc import dfccsd

import tilewise

CLOSED = [
    # atoms, basis, charge, groups, frozen
    (WATER, "6-31g", 0, ("C2v", "C2", "Cs"), (None,)),
    (WATER, "6-31g", 0, ("C1",), (1,)),
    (WATER, "6-311g**", 0, ("C1",), (None,)),  # by squares
    ("N 0 0 0; N 0 0 1.1", "6-31g", 0, ("D2h", "D2", "C2h", "Ci"), (2,)),
    ("F 0 0 0; H 0 0 0.92", "6-31g", 0, ("C2v",), ([0, 10],)),  # a virtual orbital too
    (MOLECULES["hydrogen peroxide"].atom, "sto-3g", 0, ("C2",), (None,)),
    (MOLECULES["trans-difluoroethylene"].atom, "sto-3g", 0, ("C2h",), (4,)),
    ("Ne 0 0 0", "6-31g", 0, ("D2h",), (None,)),
    ("Be 0 0 0", "6-31g", 0, ("D2h",), (None,)),
    ("O 0 0 0; H 0 0 0.97", "6-31g", -1, ("C2v",), (None,)),  # an anion
    ("H 0 0 0; H 0 0 0.74", "6-31g", 0, ("D2h",), (None,)),  # one occupied orbital: no triples
    ("Li 0 0 0; H 0 0 1.6", "sto-3g", 0, ("C2v",), (None,)),  # irreps without virtual orbitals
    ("C 0 0 0; O 0 0 1.13", "sto-3g", 0, ("C2v",), (None,)),
]
CASES = [(a, b, q, g, f) for a, b, q, groups, frozen in CLOSED for g in groups for f in frozen]


@cache
def closed_shell(atoms, basis, charge):
    mol = gto.M(atom=atoms, basis=basis, charge=charge, symmetry=True, verbose=0)
    return scf.RHF(mol).run(conv_tol=1e-13, conv_tol_grad=1e-9)


@cache
def expected_of(atoms, basis, charge, frozen):
    theirs = cc.CCSD(
        closed_shell(atoms, basis, charge), frozen=list(frozen) if isinstance(frozen, tuple) else frozen
    )
    theirs.conv_tol, theirs.conv_tol_normt, theirs.verbose, theirs.max_cycle = 1e-12, 1e-10, 0, 100
    return theirs.run(), theirs.ccsd_t()


@pytest.mark.parametrize(("atoms", "basis", "charge", "group", "frozen"), CASES)
def test_the_energy_of_a_closed_shell_is_that_of_pyscf(atoms, basis, charge, group, frozen):
    key = tuple(frozen) if isinstance(frozen, list) else frozen
    theirs, e_t = expected_of(atoms, basis, charge, key)
    found = tilewise.CCSD(
        closed_shell(atoms, basis, charge), frozen=frozen, symmetry=group, threads=1, **TIGHT
    )
    assert abs(found.ccsd_t() - e_t) < 1e-9
    assert abs(found.e_tot_t - (theirs.e_tot + e_t)) < 1e-8
    assert found.e_t == found.triples.fourth + found.triples.fifth


OPEN = [
    # molecule, basis, unpaired, symmetry, frozen
    ("O2", "sto-3g", 2, "auto", None),
    ("NH2", "6-31g", 1, "C1", 1),
    ("CN", "6-31g", 1, "auto", 2),
    ("CH2", "6-31g", 2, "auto", None),
    ("N", "6-31g", 3, "auto", None),
    ("HO2", "sto-3g", 1, "auto", 2),
    ("Li", "6-31g", 1, "auto", None),
    ("H2", "6-31g", 2, "auto", None),  # no beta electrons, and no triples
]


@pytest.mark.parametrize(("name", "basis", "spin", "symmetry", "frozen"), OPEN)
def test_the_energy_of_an_unrestricted_mean_field_is_that_of_pyscf(name, basis, spin, symmetry, frozen):
    mf = mean_field(name, basis, spin, "uhf")
    theirs = pyscf_ccsd(mf, frozen)
    found = tilewise.UCCSD(mf, frozen=frozen, symmetry=symmetry, threads=1, **TIGHT)
    assert abs(found.ccsd_t() - theirs.ccsd_t()) < 1e-9


def test_pyscf_takes_the_amplitudes_of_an_open_shell():
    mf = mean_field("NH2", "6-31g", 1, "uhf")
    found = tilewise.UCCSD(mf, frozen=1, threads=1, **TIGHT).run()
    theirs = cc.UCCSD(mf, frozen=1)
    theirs.verbose = 0
    t1, t2 = found.to_pyscf()
    assert abs(theirs.ccsd_t(t1, t2, theirs.ao2mo(theirs.mo_coeff)) - found.ccsd_t()) < 1e-9


def semicanonical(mf):
    """PySCF's own object with the orbitals that diagonalise the Fock matrix of each spin."""
    turned = mf.to_uhf()
    fock, orbitals, levels = turned.get_fock(), [], []
    for s, n in enumerate(turned.nelec):
        c = turned.mo_coeff[s][:, np.argsort(-turned.mo_occ[s], kind="stable")]
        parts = [np.linalg.eigh(x.T @ fock[s] @ x) for x in (c[:, :n], c[:, n:])]
        orbitals.append(np.hstack([c[:, :n] @ parts[0][1], c[:, n:] @ parts[1][1]]))
        levels.append(np.concatenate([parts[0][0], parts[1][0]]))
    turned.mo_coeff, turned.mo_energy = np.array(orbitals), np.array(levels)
    turned.mo_occ = np.array(
        [np.arange(len(e)) < n for e, n in zip(levels, turned.nelec, strict=True)], float
    )
    return turned


RESTRICTED_OPEN = [
    ("O2", "sto-3g", 2),
    ("NH2", "6-31g", 1),
    ("CN", "sto-3g", 1),
    ("CH2", "6-31g", 2),
    ("N", "6-31g", 3),
    ("HO2", "sto-3g", 1),
]


@pytest.mark.parametrize(("name", "basis", "spin"), RESTRICTED_OPEN)
def test_the_energy_of_a_restricted_open_shell_is_that_of_semicanonical_orbitals(name, basis, spin):
    mf = mean_field(name, basis, spin, "rohf")
    theirs = pyscf_ccsd(semicanonical(mf))
    found = tilewise.CCSD(mf, threads=1, **TIGHT)
    assert abs(found.ccsd_t() - theirs.ccsd_t()) < 1e-9


@pytest.mark.parametrize(("symmetry", "is_fitted"), [("auto", False), ("C1", True)])  # the mean field too
def test_fitted_integrals_give_the_energy_of_pyscfs_fitted_ones(symmetry, is_fitted):
    mf = closed_shell(WATER, "6-31g", 0)
    if is_fitted:
        mf = scf.RHF(mf.mol).density_fit().run(conv_tol=1e-13, conv_tol_grad=1e-9)
    theirs = dfccsd.RCCSD(mf, frozen=1)
    theirs.conv_tol, theirs.conv_tol_normt, theirs.verbose, theirs.max_cycle = 1e-12, 1e-10, 0, 100
    expected = theirs.run().ccsd_t()
    found = tilewise.CCSD(mf, df=None if is_fitted else True, frozen=1, symmetry=symmetry, threads=1, **TIGHT)
    assert abs(found.ccsd_t() - expected) < 1e-9
    _, exact = expected_of(WATER, "6-31g", 0, 1)
    assert abs(expected - exact) > 1e-9  # it is another one


def with_integrals_of(mf, vectors):
    """PySCF's own object, whose integrals are products of these, and whose Fock matrix is as it was."""
    field, turned = mf.get_veff(), mf.copy()
    turned.get_veff = lambda *args, **kwargs: field
    turned._eri = ao2mo.restore(8, vectors.T @ vectors, mf.mol.nao)
    return turned


def test_fitted_integrals_of_an_open_shell_give_the_energy_of_pyscfs_on_the_same_integrals():
    mf = mean_field("NH2", "6-31g", 1, "uhf")
    fitting = df.DF(mf.mol, auxbasis="weigend").build()
    theirs = pyscf_ccsd(with_integrals_of(mf, np.vstack(list(fitting.loop()))))
    found = tilewise.UCCSD(mf, df="weigend", threads=1, **TIGHT)
    assert abs(found.ccsd_t() - theirs.ccsd_t()) < 1e-9


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
def test_decomposed_integrals_give_the_energy_of_the_exact_ones(symmetry):
    mf = closed_shell(WATER, "6-31g", 0)
    _, e_t = expected_of(WATER, "6-31g", 0, None)
    found = tilewise.CCSD(mf, cholesky=1e-10, symmetry=symmetry, threads=1, **TIGHT)
    assert abs(found.ccsd_t() - e_t) < 1e-9


def test_a_closed_shell_through_spin_orbitals_has_the_same_energy():
    mf = mean_field("H2O", "6-31g", 0, "rhf")
    one, other = tilewise.CCSD(mf, **TIGHT), tilewise.UCCSD(mf, **TIGHT)
    assert abs(one.ccsd_t() - other.ccsd_t()) < 1e-10
    assert abs(one.triples.fourth - other.triples.fourth) < 1e-10


def test_fourth_order_is_what_is_left_without_singles():
    mf = closed_shell(WATER, "6-31g", 0)
    found = tilewise.CCSD(mf, **TIGHT).run()
    theirs, _ = expected_of(WATER, "6-31g", 0, None)
    without = cc.CCSD(mf)
    without.verbose = 0
    eris = without.ao2mo()
    eris.fock = np.diag(np.diag(eris.fock))
    expected = without.ccsd_t(t1=np.zeros_like(theirs.t1), t2=theirs.t2, eris=eris)
    found.ccsd_t()
    assert abs(found.triples.fourth - expected) < 1e-9
