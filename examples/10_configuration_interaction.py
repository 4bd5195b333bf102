"""CI of a molecule by rank and irrep, and the levels of an atom with terms, weights and natural orbitals."""

from pyscf import gto, scf

import tilewise

water = gto.M(atom="O 0 0 0.117; H 0 0.757 -0.469; H 0 -0.757 -0.469", basis="6-31g", symmetry=True)
mf = scf.RHF(water).run(verbose=0)
for irrep, spin in (("A1", 0), ("B1", 2)):
    ci = tilewise.CI(mf, rank=3, irrep=irrep, spin=spin, frozen=1, roots=2).run()
    print(*(f"{level.name} {level.energy:.8f}" for level in ci.levels))

options = {"basis": "cc-pvtz", "reference": "1s2 2s2", "frozen": "1s", "rank": 2}
states = [tilewise.CI.atom("Be", term=term, **options).run().levels[0] for term in ("1S", "3Po", "1Po")]
for level in states:
    (name, weight), wavenumber = level.configurations[0], level.above(states[0].energy)[2]
    print(f"Be {level.name:4s} {wavenumber:9.1f} cm^-1, {name} {weight:.3f}")
