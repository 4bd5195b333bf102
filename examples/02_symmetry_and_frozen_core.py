"""The same energy in the full group and without symmetry, with the core frozen; what symmetry saves."""

from pyscf import gto, scf

import tilewise

mol = gto.M(atom="N 0 0 0; N 0 0 1.098", basis="cc-pvdz", symmetry=True)
mf = scf.RHF(mol).run(verbose=0, conv_tol=1e-10)
for group in ("auto", "C2v", "C1"):
    ccsd = tilewise.CCSD(mf, frozen="auto", symmetry=group).run()
    plan = ccsd.plan
    print(
        f"{plan.outline.group.name:>4} {ccsd.e_corr:.8f} {plan.flops:.3e} flops {plan.stored_bytes:9d} bytes"
    )
