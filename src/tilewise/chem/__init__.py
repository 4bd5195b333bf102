"""From molecules and integral files to a Reference: orbital energies, irreps and integrals.

Import the modules themselves: `pyscf_source` loads PySCF, which the others do without.
"""
