"""Mean fields and energies in a few lines of PySCF and einsum, to compare with."""

import numpy as np
from pyscf import ao2mo, gto, scf

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"


def mean_field(atom, basis, symmetry=True, **options):
    mol = gto.M(atom=atom, basis=basis, symmetry=symmetry, verbose=0, **options)
    return scf.RHF(mol).run(conv_tol=1e-12, conv_tol_grad=1e-8)


def full_eri(reference):
    return ao2mo.restore(1, reference.eri(), reference.n_orbitals)


def mp2_energy(reference):
    """Closed-shell MP2 in three lines of einsum."""
    o = reference.outline.n_occ
    ovov = full_eri(reference)[:o, o:, :o, o:]
    e_i, e_a = reference.occ_energies, reference.vir_energies
    gap = e_i[:, None, None, None] + e_i[:, None] - e_a[:, None, None] - e_a
    return np.einsum("iajb,iajb->", 2 * ovov - ovov.transpose(0, 3, 2, 1), ovov / gap)


def hf_energy(reference):
    """The determinant's energy from the Reference's own integrals."""
    o = reference.outline.n_occ
    h, eri = reference.one_electron(), full_eri(reference)[:o, :o, :o, :o]
    coulomb, exchange = np.einsum("iijj->", eri), np.einsum("ijji->", eri)
    return reference.e_core + 2 * np.trace(h[:o, :o]) + 2 * coulomb - exchange
