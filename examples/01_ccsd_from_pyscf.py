"""CCSD on a PySCF mean field."""

from pyscf import gto, scf

import tilewise

mol = gto.M(atom="O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", basis="cc-pvdz", symmetry=True)
mf = scf.RHF(mol).run(verbose=0, conv_tol=1e-10)
ccsd = tilewise.CCSD(mf).run()
t1, t2 = ccsd.to_pyscf()
print(
    f"converged {ccsd.converged}, E(CCSD) = {ccsd.e_tot:.8f} hartree, T1 diagnostic {ccsd.t1_diagnostic:.4f}"
)
print("t1", t1.shape, "t2", t2.shape)
