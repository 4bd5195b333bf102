"""(T) as a run: twins, tiles, policies, workers, groups of orbitals, interruptions and restarts, notes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from ccsd_oracles import WATER
from open_shells import mean_field
from pyscf import gto, scf

import tilewise
from tilewise import policies
from tilewise.errors import InputError
from tilewise.execute import Runner
from tilewise.inspect.triples import inspect_triples, on_blocks
from tilewise.inspect.triples_blocks import OrbitalSet, TriplesBlocks
from tilewise.methods.ccsd_t import TriplesPass
from tilewise.methods.triples_file import TriplesFile, triples_path
from tilewise.schedule import Team
from tilewise.trace import read_trace


@cache
def solved(kind="rhf"):
    if kind == "rhf":
        mf = scf.RHF(gto.M(atom=WATER, basis="6-31g", symmetry=True, verbose=0)).run(conv_tol=1e-12)
        return tilewise.CCSD(mf, threads=2).run()
    return tilewise.CCSD(mean_field("NH2", "6-31g", 1, "uhf"), threads=2).run()


def passed(cc, executor="threads", file=None, **changes):
    plan = replace(cc.plan.triples_plan, **changes)
    return TriplesPass(plan, cc.reference, (cc.t1, cc.t2), executor, file=file).run()


@pytest.mark.parametrize("kind", ["rhf", "uhf"])
def test_the_twins_compute_what_the_kernels_compute(kind, register_lanes):
    native, twin = passed(solved(kind)), passed(solved(kind), "serial")
    assert abs(native.fourth - twin.fourth) < 1e-14 and abs(native.fifth - twin.fifth) < 1e-14


def test_squares_and_tiles_agree_and_so_do_their_twins(register_lanes):
    cc = tilewise.CCSD(solved().reference, symmetry="C1", threads=2).run()
    tiles = passed(cc, by_squares=False)
    for executor in ("threads", "serial"):
        squares = passed(cc, executor, by_squares=True)
        assert abs(squares.fourth - tiles.fourth) < 1e-13 and abs(squares.fifth - tiles.fifth) < 1e-13
    o, v = 5, 8
    count = o * (o - 1) * (o - 2) / 2 + 2 * o * (o - 1)
    assert squares.flops == pytest.approx(2 * count * v**3 * (v + 2 * o), rel=1e-12)


@pytest.mark.parametrize("n_vir", [2, 3, 7, 12, 13, 26, 35])
def test_squares_of_every_size_are_those_of_their_twin(n_vir, register_lanes):
    o, v, rng = 3, n_vir, np.random.default_rng(n_vir)
    blocks = TriplesBlocks((OrbitalSet((o,), (v,)),), by_squares=True)
    graph = on_blocks(inspect_triples(blocks), blocks, 0.7)
    buffers = {name: 0.1 * rng.standard_normal(graph.length_of(name)) for name in graph.buffers}
    buffers["energies"][:o], buffers["energies"][o:] = -1.0 - rng.random(o), 1.0 + rng.random(v)
    parts = np.split(buffers["blocks"], blocks.squares[1:-1])
    integrals, squares = (part.reshape(o, v, v, v) for part in parts[:2])
    doubles, double_squares = (part.reshape(o, o, v, v) for part in parts[2:4])
    integrals += integrals.swapaxes(2, 3).copy()
    doubles += doubles.transpose(1, 0, 3, 2).copy()
    squares[:], double_squares[:] = integrals @ integrals, doubles @ doubles
    schedule = policies["dataflow"](graph, np.ones(len(graph)), Team.of(1))
    native, twin = (Runner(graph, schedule, buffers, name).run().partial for name in ("threads", "serial"))
    assert np.abs(twin).max() > 1e-6 and native == pytest.approx(twin, rel=1e-10, abs=1e-13)


def test_every_policy_gives_the_same_energy():
    expected = passed(solved()).e_t
    for policy in policies.values():
        assert abs(passed(solved(), policy=policy).e_t - expected) < 1e-14, policy


def test_the_same_bits_for_any_number_of_workers():
    found = {passed(solved(), threads=n, deterministic=True).e_t for n in (1, 2, 3)}
    assert len(found) == 1


def test_groups_of_occupied_orbitals_take_less_memory_and_give_the_same():
    cc = solved()
    whole, plan = passed(cc), replace(cc.plan.triples_plan, groups=5)
    assert plan.operand_bytes < cc.plan.triples_plan.operand_bytes and len(plan.stages) > 1
    assert sorted(np.concatenate([stage.tasks for stage in plan.stages])) == list(range(len(plan.graph)))
    assert abs(passed(cc, groups=5).e_t - whole.e_t) < 1e-14
    budget = cc.plan.triples_plan.memory["triples"] - 1
    assert replace(cc.plan.triples_plan, budget=budget).suited().groups > 1


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(tmp_path):
    cc, target = solved(), tmp_path / "water.tilewise.h5"
    whole = passed(cc, file=TriplesFile.beside(target, None))
    file = TriplesFile.beside(None, target)
    kept = file.read()
    kept.total[5:], kept.fourth[5:] = np.nan, np.nan
    TriplesFile(triples_path(target)).write(kept)
    again = passed(cc, file=file)
    assert again.restarted == 5 and again.e_t == whole.e_t and again.fourth == whole.fourth


def test_a_file_of_other_amplitudes_or_a_damaged_one_is_not_used(tmp_path):
    target = tmp_path / "water.tilewise.h5"
    passed(solved("uhf"), file=TriplesFile.beside(target, None))
    assert passed(solved(), file=TriplesFile.beside(None, target)).restarted == 0
    triples_path(target).write_bytes(triples_path(target).read_bytes()[:-7])
    file = TriplesFile.beside(None, target)
    assert passed(solved(), file=file).restarted == 0 and "start from the beginning" in file.notes[0]


def test_the_tasks_of_triples_follow_the_iterations_in_a_trace(tmp_path):
    path = tmp_path / "water.trace.json"
    cc = tilewise.CCSD(solved().reference, threads=2, trace=path)
    cc.ccsd_t()
    trace = read_trace(path)
    *iterations, triples = trace.iterations
    assert len(iterations) == len(cc.iterations) and triples.number == len(cc.iterations) + 1
    assert len(triples.runs) == cc.triples.tasks
    assert triples.runs["flops"].sum() == pytest.approx(cc.triples.flops, rel=1e-5)
    assert {trace.operations[n] for n in triples.runs["operation"]} == {"(T)"}
    assert not set(triples.runs["operation"]) & {n for one in iterations for n in one.runs["operation"]}
    assert trace.blocks[triples.runs["block"][0]].startswith("occupied orbitals i = ")


def test_converged_amplitudes_of_a_restart_file_are_taken_as_they_are(tmp_path):
    file = tmp_path / "water.tilewise.h5"
    mf = solved().reference
    one = tilewise.CCSD(mf, checkpoint=file, threads=1)
    other = tilewise.CCSD(mf, restart=file, threads=1) if one.ccsd_t() else None
    assert other.ccsd_t() == one.e_t and not other.iterations and other.triples.restarted == one.triples.tasks
    tighter = tilewise.CCSD(mf, restart=file, threads=1, conv_tol=1e-12, conv_tol_residual=1e-10)
    tighter.ccsd_t()
    assert tighter.iterations and abs(tighter.e_t - one.e_t) < 1e-7


def test_flops_are_those_of_the_formula():
    o, v = 5, 21
    graph = inspect_triples(TriplesBlocks((OrbitalSet((o,), (v,), 8),)))
    assert graph.flops.sum() == pytest.approx(2 * (o**3 - o) * v**3 * (v + o), rel=1e-12)


def test_a_denominator_near_zero_gets_a_note_and_one_at_zero_is_refused():
    cc = solved()
    occ, vir = cc.reference.occ_energies, cc.reference.vir_energies
    level = np.full_like(vir, occ.max() + 1e-5)
    near = replace(cc.reference, vir_energies=level, occ_energies=np.full_like(occ, occ.max()))
    notes = []
    TriplesPass(cc.plan.triples_plan, near, (cc.t1, cc.t2), note=notes.append).run()
    assert any("can hardly be trusted" in note and "occupied orbitals" in note for note in notes)
    with pytest.raises(InputError, match="not below zero"):
        TriplesPass(cc.plan.triples_plan, replace(near, vir_energies=level - 1), (cc.t1, cc.t2)).run()
