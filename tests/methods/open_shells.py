"""Open-shell molecules, their mean fields, and PySCF's UCCSD of them."""

from functools import cache

from pyscf import cc, gto, scf

from tilewise.chem.pyscf_scf import run_scf

ATOMS = {
    "O2": "O 0 0 0; O 0 0 1.21",
    "NH2": "N 0 0 0.14; H 0 0.80 -0.49; H 0 -0.80 -0.49",
    "CN": "C 0 0 0; N 0 0 1.17",
    "OH": "O 0 0 0; H 0 0 0.97",
    "NO": "N 0 0 0; O 0 0 1.15",
    "CH2": "C 0 0 0.1; H 0 0.98 -0.3; H 0 -0.98 -0.3",
    "HCO": "H 1.09 0 0; C 0 0 0; O -0.6 1.0 0",
    "HO2": "O 0.0 -0.61 -0.06; O 0.06 0.72 -0.06; H -0.9 -0.86 0.9",
    "H2": "H 0 0 0; H 0 0 0.9",
    "H2O": "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692",
    "N2": "N 0 0 0; N 0 0 1.5",
    "LiH": "Li 0 0 0; H 0 0 1.6",
    "H": "H 0 0 0",
    "He": "He 0 0 0",
    "Li": "Li 0 0 0",
    "N": "N 0 0 0",
    "BeH": "Be 0 0 0; H 0 0 1.34",
}


LINEAR = {("OH", 0): "C2v", ("NO", 0): "C2v", ("O2", -1): "D2h"}
"""Radicals that fill one of two degenerate orbitals: PySCF converges them in a subgroup alone."""


@cache
def mean_field(name, basis, spin, kind, charge=0):
    """A converged mean field; `kind` is rhf, uhf or rohf."""
    group = LINEAR.get((name, charge), True)
    mol = gto.M(atom=ATOMS[name], basis=basis, spin=spin, charge=charge, symmetry=group, verbose=0)
    mf = {"rhf": scf.RHF, "uhf": scf.UHF, "rohf": scf.ROHF}[kind](mol)
    mf.run(conv_tol=1e-12, conv_tol_grad=1e-8, max_cycle=200)
    return mf if mf.converged else run_scf(mol, reference=kind)


@cache
def broken_symmetry(atoms, basis):
    """The UHF of a stretched singlet, followed until it is stable."""
    mf = scf.UHF(gto.M(atom=atoms, basis=basis, verbose=0)).run(conv_tol=1e-12)
    for _ in range(9):
        orbitals, _, is_stable, _ = mf.stability(return_status=True)
        if is_stable:
            break
        mf.max_cycle = 300
        mf.kernel(mf.make_rdm1(orbitals, mf.mo_occ))
    return mf


def pyscf_ccsd(mf, frozen=None, start=()):
    """Converged from its own guess, or from amplitudes: if they are wrong, it leaves them."""
    found = cc.UCCSD(mf, frozen=frozen)
    found.conv_tol, found.conv_tol_normt, found.max_cycle, found.verbose = 1e-11, 1e-8, 200, 0
    found.diis_space = 20  # with its default of 6 it stalls on broken symmetry
    found.kernel(*start)
    return found


TIGHT = {"conv_tol": 1e-10, "conv_tol_residual": 1e-8, "threads": 2, "max_cycle": 200}
