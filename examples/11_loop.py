"""A scan over bond lengths: any Python loop, shared out by a policy."""

from pyscf import gto, scf

import tilewise


def energy(distance):
    mol = gto.M(atom=f"H 0 0 0; F 0 0 {distance}", basis="6-31g", symmetry=True, verbose=0)
    return tilewise.CCSD(scf.RHF(mol).run(), threads=1).run().e_tot


distances = [0.8, 0.85, 0.9, 0.95, 1.0, 1.1, 1.2, 1.4]
energies = tilewise.parallel_for(energy, distances, costs=lambda d: 1 + d, executor="processes", workers=2)
for distance, value in zip(distances, energies, strict=True):
    print(f"{distance:5.2f} angstrom  {value:14.8f} hartree")
print(energies)
