"""From molecules and integral files to a Reference: orbital energies, irreps and integrals.

Import the modules themselves: those named `pyscf_...` load PySCF, which the others do without.
"""
