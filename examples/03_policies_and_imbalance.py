"""Ways to share the tasks among two threads, and how evenly each does it."""

from pyscf import gto, scf

import tilewise

mol = gto.M(atom="C 0 0 0.668; C 0 0 -0.668; H 0 0.923 1.238; H 0 -0.923 1.238; H 0 0.923 -1.238; "
            "H 0 -0.923 -1.238", basis="6-31g*", symmetry=True)  # fmt: skip
mf = scf.RHF(mol).run(verbose=0, conv_tol=1e-10)
for policy in tilewise.policies:
    ccsd = tilewise.CCSD(mf, policy=policy, threads=2).run()
    print(f"{policy:>12}: E(corr) {ccsd.e_corr:.8f}, imbalance {100 * ccsd.summary.imbalance:.0f} %")
