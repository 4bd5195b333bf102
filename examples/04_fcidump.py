"""Integrals to a FCIDUMP file and back."""

from pathlib import Path
from tempfile import TemporaryDirectory

from pyscf import gto, scf

import tilewise

mf = scf.RHF(gto.M(atom="H 0 0 0; F 0 0 0.917", basis="6-31g", symmetry=True)).run(verbose=0, conv_tol=1e-10)
ccsd = tilewise.CCSD(mf, frozen=1).run()
with TemporaryDirectory() as folder:
    path = Path(folder) / "hf.fcidump"
    tilewise.write_fcidump(path, ccsd.reference)
    again = tilewise.CCSD(tilewise.read_fcidump(path)).run()
print(f"from the mean field {ccsd.e_tot:.8f}, from the file {again.e_tot:.8f}")
