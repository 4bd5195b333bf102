"""What a calculation would take, without computing an integral."""

from pyscf import gto

import tilewise

mol = gto.M(atom="O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", basis="cc-pvqz", symmetry=True)
plan = tilewise.plan(mol, frozen="auto", threads=8)
flops_c1, bytes_c1 = plan.without_symmetry
print(f"{plan.outline.n_occ} occupied, {plan.outline.n_vir} virtual orbitals in {plan.outline.group.name}")
print(
    f"{len(plan.graph)} tasks, {plan.flops:.2e} flops per iteration ({flops_c1 / plan.flops:.0f} times in C1)"
)
print(
    f"{plan.peak_memory / 1e9:.2f} GB at the peak, {plan.predicted_seconds:.3f} s per iteration on 8 threads"
)
