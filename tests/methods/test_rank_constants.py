"""Constants that ranks make together are cut from the same numbers as those of one process."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from pyscf import gto, scf

from tilewise.chem.sources import fitting_wish, reference_of
from tilewise.execute.mpi.local_world import LocalWorld
from tilewise.execute.once import run_setup
from tilewise.methods import rank_constants as ranks
from tilewise.methods import shared_rows
from tilewise.methods.integrals import Vectors, constants
from tilewise.methods.plan import plan_outline
from tilewise.tensor.shard import Cells, Shard

WATER = "O 0 0 0.1; H 0 0.76 -0.49; H 0 -0.76 -0.49"
CASES = {
    "closed shell": (WATER, {}, {}),
    "closed shell in C1": (WATER, {}, {"symmetry": "C1"}),
    "frozen core": (WATER, {}, {"frozen": 1, "symmetry": "Cs"}),
    "fitted": (WATER, {}, {"df": True}),
    "Cholesky, formed": (WATER, {}, {"cholesky": 1e-6, "on_the_fly": True}),
    "UHF": ("N 0 0 0; H 0 0 1.04", {"spin": 2}, {}),
    "ROHF": ("N 0 0 0; H 0 0 1.04", {"spin": 2, "kind": "rohf"}, {"symmetry": "C1"}),
    "UHF, fitted": ("N 0 0 0; H 0 0 1.04", {"spin": 2}, {"df": True}),
}


@cache
def mean_field(atom, spin=0, kind="rhf"):
    mol = gto.M(atom=atom, basis="6-31g", spin=spin, symmetry=True, verbose=0)
    made = {"rhf": scf.UHF if spin else scf.RHF, "rohf": scf.ROHF}[kind](mol)
    return made.run(conv_tol=1e-12)


@dataclass(frozen=True)
class Scattered:
    """Every cell of a constant is held by one rank, some by two."""

    program: object
    names: tuple
    size: int

    @property
    def constants(self):
        return self.names

    def shard(self, name, rank):
        layout = self.program.layouts[name]
        rng = np.random.default_rng(len(name) + layout.size)
        owner = rng.integers(0, self.size, (2, len(Cells.of(layout))))
        twice = np.arange(owner.shape[1]) % 3 == 0
        return Shard.of_mask(layout, (owner[0] == rank) | (twice & (owner[1] == rank)))


def prepared(case, tile=5):
    atom, options, wish = CASES[case]
    wish = dict(wish)
    settings = {key: wish.pop(key) for key in ("on_the_fly",) if key in wish}
    fitting = fitting_wish(wish.pop("df", False), wish.pop("cholesky", None))
    symmetry = wish.get("symmetry", "auto")
    reference = reference_of(mean_field(atom, **options), wish.get("frozen"), symmetry, fitting)
    method = "uccsd" if options else "ccsd"
    plan = plan_outline(reference.outline, method=method, threads=1, tile=tile, **settings)
    vectors = Vectors.of(reference, 1)
    if plan.on_the_fly:
        plan = plan.with_vectors(vectors.counts)
    return plan, reference, vectors


def whole(plan, reference, vectors):
    """All constants as one process makes them."""
    buffers = constants(plan.equation, plan.program, reference, 1, vectors)
    run_setup(plan.program, buffers, plan.policy, 1)
    return {name: data for name, data in buffers.items() if len(data)}


def made(plan, reference, vectors, size, exact=None, **options):
    """`reference` may be a function of the rank, if there is an `exact` one besides."""
    expected = whole(plan, exact or reference, vectors)
    read = {name for op in plan.program.operations for name in op.reads}
    holdings = Scattered(plan.program, tuple(name for name in expected if name in read), size)

    def work(world):
        own = reference(world.rank) if exact else reference
        arguments = (plan.equation, plan.program, own, holdings, world, 1, plan.policy, vectors)
        return ranks.rank_constants(*arguments, **options)

    return expected, holdings, LocalWorld.run(size, work)


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_each_rank_gets_its_cells(case, size, monkeypatch):
    for module in (ranks, shared_rows):
        monkeypatch.setattr(module, "BATCH", 1 << 12)
    expected, holdings, found = made(*prepared(case), size)
    for rank, buffers in enumerate(found):
        assert set(buffers) == set(holdings.constants)
        for name, data in buffers.items():
            exact = holdings.shard(name, rank).take(expected[name])
            assert data.shape == exact.shape
            assert np.abs(data - exact).max(initial=0.0) < 1e-12, name


@pytest.mark.parametrize("case", ["closed shell in C1", "UHF"])
def test_the_same_bits_come_out_for_any_number_of_ranks(case):
    plan, reference, vectors = prepared(case)
    alone = ranks.AllConstants(plan.program)

    def work(world):
        arguments = (plan.equation, plan.program, reference, alone, world, 1, plan.policy, vectors, True)
        return ranks.rank_constants(*arguments)

    one, *others = [buffers for size in (1, 2, 3) for buffers in LocalWorld.run(size, work)]
    for buffers in others:
        assert all(np.array_equal(data, buffers[name]) for name, data in one.items())


@pytest.mark.parametrize("share_memory", [True, False])
@pytest.mark.parametrize("symmetry", ["auto", "C1"])
@pytest.mark.parametrize("kept_by", [None, 0, 1])
def test_integrals_that_not_all_ranks_have_kept(kept_by, symmetry, share_memory):
    """Computed in shares, or had from the one rank that has them; in memory of all, or sent to each."""
    plan, kept, _ = prepared("closed shell" if symmetry == "auto" else "closed shell in C1")
    direct = scf.RHF(mean_field(WATER).mol)
    direct.max_memory = 0
    direct.run(conv_tol=1e-12)
    assert direct._eri is None
    reference = reference_of(direct, None, symmetry, fitting_wish(False, None))
    orbitals = replace(
        kept.integrals, **{name: getattr(reference.integrals, name) for name in ("coefficients", "occupied")}
    )
    server = replace(reference, integrals=orbitals)
    of_rank = {kept_by: server}
    expected, holdings, found = made(
        plan,
        lambda rank: of_rank.get(rank, reference),
        None,
        2,
        exact=reference,
        on_one_node=share_memory,
    )
    for rank, buffers in enumerate(found):
        for name, data in buffers.items():
            assert np.abs(data - holdings.shard(name, rank).take(expected[name])).max(initial=0.0) < 1e-12


def test_a_plan_tells_what_each_rank_holds():
    outline = reference_of(scf.RHF(gto.M(atom=WATER, basis="cc-pvtz", verbose=0)).run()).outline
    plan = plan_outline(outline, threads=1, ranks=3, memory="1GB", in_use=0)
    told = plan.to_dict()["ranks"]
    assert told["count"] == 3
    assert plan.memory["iterations"] == max(each["iterations"] for each in told["memory"])
    assert sum(told["bytes_per_iteration"]) > 0
    one = plan_outline(outline, threads=1, memory="1GB", in_use=0)
    assert plan.memory["iterations"] < one.memory["iterations"]
