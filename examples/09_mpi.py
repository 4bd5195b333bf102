"""CCSD on several ranks: `python 09_mpi.py` alone, or `mpiexec -n 4 python 09_mpi.py` on four.

Every rank runs the whole script and has the same energies; rank 0 speaks for all.
"""

from pyscf import gto, scf

import tilewise

mol = gto.M(atom="O 0 0 0.12; H 0 0.76 -0.47; H 0 -0.76 -0.47", basis="6-31g", symmetry=True)
ccsd = tilewise.CCSD(scf.RHF(mol).run(verbose=0, conv_tol=1e-10), threads=1).run()

if ccsd.world.rank == 0:
    print(f"{ccsd.world.size} ranks: {ccsd.e_tot:.8f}, converged in {len(ccsd.iterations)} iterations")
    for rank, figures in enumerate(ccsd.by_rank):
        print(f"rank {rank} holds {figures.tensor_bytes} bytes, moved {figures.bytes} in {figures.gets} Gets")
