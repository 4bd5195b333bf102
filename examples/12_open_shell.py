"""CCSD of a radical on UHF and on ROHF orbitals: energies, spin, and amplitudes by spin case."""

from pyscf import gto, scf

import tilewise

mol = gto.M(atom="N 0 0 0.14; H 0 0.80 -0.49; H 0 -0.80 -0.49", basis="6-31g", spin=1, symmetry=True)
for kind in (scf.UHF, scf.ROHF):
    ccsd = tilewise.CCSD(kind(mol).run(verbose=0, conv_tol=1e-10), frozen="auto").run()
    (t1a, t1b), (t2aa, t2ab, t2bb) = ccsd.to_pyscf()
    print(
        f"{kind.__name__:>4} {ccsd.e_tot:.8f}, <S^2> {ccsd.reference.s_squared:.6f} and {ccsd.s_squared:.6f}"
    )
    print(f"     {t1a.shape} alpha and {t1b.shape} beta singles, T1 diagnostic {ccsd.t1_diagnostic:.4f}")
