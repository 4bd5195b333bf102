"""CCSD(T): connected triples after CCSD, of a closed shell and of a radical."""

from pyscf import gto, scf

import tilewise

water = gto.M(atom="O 0 0 0.12; H 0 0.76 -0.47; H 0 -0.76 -0.47", basis="6-31g", symmetry=True)
amidogen = gto.M(atom="N 0 0 0.14; H 0 0.80 -0.49; H 0 -0.80 -0.49", basis="6-31g", spin=1, symmetry=True)
for mean_field in (scf.RHF(water), scf.UHF(amidogen), scf.ROHF(amidogen)):
    cc = tilewise.CCSD(mean_field.run(verbose=0, conv_tol=1e-10), frozen="auto").run()
    e_t = cc.ccsd_t()
    print(f"E(CCSD) {cc.e_tot:.8f}, E(T) {e_t:.8f}, of it E[T] {cc.triples.fourth:.8f}")
    print(f"E(CCSD(T)) {cc.e_tot_t:.8f}")
