"""A run that stops early and goes on from its checkpoint, with other tiles and less symmetry."""

from pathlib import Path
from tempfile import TemporaryDirectory

from pyscf import gto, scf

import tilewise

mf = scf.RHF(gto.M(atom="Li 0 0 0; H 0 0 1.6", basis="6-31g", symmetry=True)).run(verbose=0, conv_tol=1e-10)
with TemporaryDirectory() as folder:
    checkpoint = Path(folder) / "lih.h5"
    begun = tilewise.CCSD(mf, max_cycle=4, checkpoint=checkpoint).run()
    done = tilewise.CCSD(mf, restart=checkpoint, tile=4, symmetry="C1").run()
print(f"{begun.converged} {begun.e_corr:.8f}, then {done.converged} {done.e_corr:.8f}")
