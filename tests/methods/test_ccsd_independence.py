"""The energy is a property of the molecule: not of threads, policies, tiles or executors."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from ccsd_oracles import TIGHT, mean_field
from pyscf import lib

import tilewise
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.errors import InputError
from tilewise.methods.method import VIRTUAL
from tilewise.schedule.hybrid import Hybrid
from tilewise.schedule.schedule import WHOLE

SAME = 1e-10


@cache
def usual_energy(name):
    ccsd = tilewise.CCSD(mean_field(name), threads=1, **TIGHT).run()
    assert ccsd.converged
    return ccsd.e_corr


@pytest.mark.parametrize(
    ("name", "threads"),
    [("nitrogen", 1), ("nitrogen", 2), ("nitrogen", 3), ("nitrogen", 4), ("hydrogen, minimal", 2)],
)
@pytest.mark.parametrize("policy", tilewise.policies)
def test_threads_and_policies(name, policy, threads):
    ccsd = tilewise.CCSD(mean_field(name), threads=threads, policy=policy, tile=3, **TIGHT).run()
    assert ccsd.converged
    assert (ccsd.plan.threads, str(ccsd.plan.policy), ccsd.plan.schedule.policy) == (threads, policy, policy)
    assert len(ccsd.summary.busy) == threads
    assert ccsd.e_corr == pytest.approx(usual_energy(name), abs=SAME)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_static_lists_and_counters_in_one_schedule(threads, every):
    policy = Hybrid(lists=frozenset(range(0, 1000, every)))
    ccsd = tilewise.CCSD(mean_field("nitrogen"), threads=threads, policy=policy, tile=3, **TIGHT).run()
    assert ccsd.converged
    quanta = {queue.quantum for queue in ccsd.plan.schedule.queues}
    assert quanta == ({WHOLE} if every == 1 else {WHOLE, 1})
    assert ccsd.e_corr == pytest.approx(usual_energy("nitrogen"), abs=SAME)


@pytest.mark.parametrize(
    ("name", "symmetry"),
    [("nitrogen", "auto"), ("hydrogen peroxide", "auto"), ("water", "C1"), ("hydrogen, minimal", "auto")],
)
@pytest.mark.parametrize("tile", [1, 2, 3, 7, 16, 100])
def test_tile_sizes(name, symmetry, tile):
    ccsd = tilewise.CCSD(mean_field(name), symmetry=symmetry, tile=tile, threads=2, **TIGHT).run()
    assert ccsd.converged
    assert max(ccsd.plan.spaces[VIRTUAL].tiles.size) <= tile
    assert ccsd.e_corr == pytest.approx(usual_energy(name), abs=SAME)


@pytest.mark.parametrize(
    ("name", "symmetry", "tile"),
    [
        ("hydrogen fluoride, minimal", "auto", 2),
        ("hydrogen fluoride, minimal", "C1", 16),
        ("water", "auto", 16),
        ("hydrogen, minimal", "auto", 16),
        ("helium", "D2h", 1),
    ],
)
def test_executors(name, symmetry, tile):
    """The NumPy twins take the native kernels' place."""
    settings = TIGHT | {"symmetry": symmetry, "tile": tile}
    serial = tilewise.CCSD(mean_field(name), executor="serial", **settings).run()
    assert serial.converged
    assert serial.e_corr == pytest.approx(usual_energy(name), abs=SAME)
    native = tilewise.CCSD(mean_field(name), executor="threads", **settings).run()
    assert [i.e_corr for i in serial.iterations] == pytest.approx(
        [i.e_corr for i in native.iterations], abs=SAME
    )
    assert [i.residual for i in serial.iterations] == pytest.approx(
        [i.residual for i in native.iterations], rel=1e-3, abs=1e-9
    )


@pytest.mark.parametrize("handed_over", ["mean field", "reference"])
def test_a_deterministic_run_gives_the_same_bits_on_any_threads_with_any_policy(handed_over):
    mf = mean_field("hydrogen peroxide")
    source = from_mean_field(mf) if handed_over == "reference" else mf
    runs = []
    policies = tilewise.policies if handed_over == "reference" else ("dataflow", "lpt")
    for policy, threads in product(policies, (1, 3)):
        settings = {"policy": policy, "threads": threads, "tile": 3, "deterministic": True, "max_cycle": 4}
        with lib.with_omp_threads(threads):  # as PySCF's own code would run
            runs.append(tilewise.CCSD(source, **settings).run())
    first, *others = runs
    for run in others:
        assert [i.e_corr for i in run.iterations] == [i.e_corr for i in first.iterations]
        assert [i.residual for i in run.iterations] == [i.residual for i in first.iterations]
        assert np.array_equal(run.t1.data, first.t1.data)
        assert np.array_equal(run.t2.data, first.t2.data)


def test_a_deterministic_run_begins_with_the_same_bits():
    """PySCF adds up the Fock matrix in another order each time, unless it is told not to."""
    mf, seen = mean_field("ethylene"), set()
    for threads in 5 * (1, 2, 3, 4):
        with lib.with_omp_threads(threads):
            reference = tilewise.CCSD(mf, deterministic=True).reference
        values = (reference.occ_energies, reference.vir_energies, reference.fock_rest())
        seen.add(b"".join(np.ascontiguousarray(value).tobytes() for value in values))
    assert len(seen) == 1


def test_an_unknown_policy_or_executor_lists_the_valid_ones():
    with pytest.raises(InputError, match="lpt"):
        tilewise.CCSD(mean_field("water"), policy="fastest")
    with pytest.raises(InputError, match="serial"):
        tilewise.CCSD(mean_field("water"), executor="gpu").run()
