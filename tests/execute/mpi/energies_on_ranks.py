"""Run under mpiexec: energies of small molecules on all ranks against those of one, in many ways.

Prints a line for each way that is wrong, and at the end how many there were. With the argument `all` the ways
are more than a thousand; with `brief` they stop after a few iterations, and take eleven minutes on two ranks.
"""

import sys
from itertools import product

import pyscf

import tilewise
from tilewise.execute.mpi.stores import STORES
from tilewise.execute.mpi.world import world
from tilewise.methods.ranks import MANNERS

SETTINGS = {"threads": 1, "conv_tol": 1e-10, "conv_tol_residual": 1e-8}
C1 = {"symmetry": "C1"}
SHORT = {"max_cycle": 4}
"""Enough for every kind of message."""
POLICIES = ("nxtval", "block", "hypergraph", "hybrid", "buckets", "steal", "chunk", "factoring", "levels")
"""One of each way to share work between ranks; ranks of one process try them all, and so do all ways."""
WATER = "O 0 0 0.117; H 0 0.757 -0.469; H 0 -0.757 -0.469"


def ways(water, radical):
    """(mean field, what both have, what the ranks have besides)."""
    for policy in POLICIES:
        yield water, SHORT, {"policy": policy}
    for pattern in ("original", "inverted"):
        yield water, C1, {"pattern": pattern, "policy": "lpt"}
    for store in STORES[1:]:
        yield water, {}, {"store": store, "threads": 2}
        yield radical, {}, {"store": store, "pattern": "original"}
    yield water, C1, {}
    yield water, {}, {"store": "messages", "policy": "steal"}
    yield water, {"df": True}, {}
    yield water, {"on_the_fly": True}, {}
    yield radical, {}, {}
    yield water, {"deterministic": True}, {}


def all_ways(water, radical):
    """Every policy with every pattern and store, one and two threads, with symmetry and without."""
    kinds = [(water, {}), (water, C1), (water, {"df": True}), (water, {"on_the_fly": True}), (radical, {})]
    for (mf, both), threads, policy, pattern, store in product(
        kinds, (1, 2), tilewise.policies, ("cache", "original", "inverted"), STORES[1:]
    ):
        yield mf, both, {"policy": policy, "pattern": pattern, "store": store, "threads": threads}
    for policy in MANNERS:  # those that place rows beforehand: the others are refused
        yield water, {"deterministic": True}, {"policy": policy}


def main():
    ranks = world()
    water = pyscf.M(atom=WATER, basis="sto-3g", symmetry=True, verbose=0).RHF().run(conv_tol=1e-12)
    radical = pyscf.M(atom="O 0 0 0; H 0 0 0.97", basis="sto-3g", spin=1, verbose=0).UHF().run(conv_tol=1e-12)
    known, count = {}, 0
    chosen = all_ways if {"all", "brief"} & {*sys.argv[1:]} else ways
    length = SHORT if "brief" in sys.argv[1:] else {}
    for mf, own, more in chosen(water, radical):
        both = own | length
        key = id(mf), str(both)
        if key not in known and ranks.rank == 0:
            known[key] = tilewise.CCSD(mf, mpi=False, **SETTINGS, **both).run().e_corr
        known[key] = ranks.bcast(known.get(key))
        found = tilewise.CCSD(mf, **(SETTINGS | both | more)).run()
        same_bits = "deterministic" in both
        far = max(abs(e - known[key]) for e in ranks.allgather(found.e_corr))
        count += 1
        if far > (0.0 if same_bits else 1e-10) and ranks.rank == 0:
            print(f"wrong by {far:.1e}: {both} {more}", flush=True)
    for mf in (water, radical):
        own = tilewise.CCSD(mf, mpi=False, **SETTINGS).ccsd_t() if ranks.rank == 0 else None
        alone = ranks.bcast(own)
        triples = ranks.allgather(tilewise.CCSD(mf, **SETTINGS).ccsd_t())
        far = max(abs(e_t - alone) for e_t in triples)
        count += 1
        if far > 1e-10 and ranks.rank == 0:
            print(f"wrong by {far:.1e}: triples of {mf.__class__.__name__}", flush=True)
    if ranks.rank == 0:
        print(f"{count} ways", flush=True)


if __name__ == "__main__":
    sys.exit(main())
