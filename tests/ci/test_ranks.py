"""CI on ranks: each column on one of them, the energies of one process on all."""

from dataclasses import replace

import numpy as np
import pytest

import tilewise
from ci.cases import NITROGEN, WATER, made, mean_field
from ranks import run_script, run_tilewise
from tilewise.ci.rank_columns import RankColumns, cut
from tilewise.execute.mpi.local_world import LocalWorld
from tilewise.schedule import policies, policy_named


@pytest.fixture(scope="module")
def water():
    calculation = tilewise.CI(mean_field(WATER, "sto-3g"), rank=None, threads=1)
    columns, operator, _ = made(calculation)
    return calculation, operator, columns.dense()


def on_ranks(ranks, calculation, operator, policy, budget, work):
    """What rank 0 finds, while the others serve it, and the columns of each rank."""

    def run(world):
        columns = RankColumns(
            calculation.determinants, calculation.numbers, 2, policy_named(policy), world=world
        )
        columns.use(operator)
        room = columns.count()[:, 0]
        built = columns.build(room, 1e-8 * room + 1e-7, budget)
        found = None
        if world.rank == 0:
            found = work(columns)
            columns.dismiss()
        else:
            columns.serve()
        stored = [column for w in range(2) for column, _, _ in columns.stored_columns(w)]
        return found, built, stored

    return LocalWorld.run(ranks, run)


@pytest.mark.parametrize("policy", policies)
def test_ranks_share_columns_by_every_policy(water, policy):
    calculation, operator, full = water
    x = np.random.default_rng(2).normal(size=(2, len(full)))
    found = on_ranks(3, calculation, operator, policy, 1 << 24, lambda columns: columns.multiply(x))
    np.testing.assert_allclose(found[0][0], x @ full, atol=1e-10)
    assert sorted(column for _, _, stored in found for column in stored) == list(range(len(full)))
    for _, built, _ in found:
        assert np.array_equal(built.trace, found[0][1].trace) and built.stored.all()
        assert len(built.counts) == 6 and set(built.trace["worker"]) <= set(range(6))


@pytest.mark.parametrize("budget", [0, 20000])
def test_columns_that_no_rank_stores_are_made_again_by_one(water, budget):
    calculation, operator, full = water
    x = np.random.default_rng(2).normal(size=(1, len(full)))
    other = replace(operator, constant=operator.constant + 1.0, h=2.0 * operator.h)
    alone, _, _ = made(calculation)

    def work(columns):
        assert 0 < columns.n_direct <= len(full)
        return columns.multiply(x), columns.expectation(other, x)

    (found, *_), *_ = on_ranks(2, calculation, operator, "factoring(f=2, delta=0.001)", budget, work)
    np.testing.assert_allclose(found[0], x @ full, atol=1e-10)
    np.testing.assert_allclose(found[1], alone.expectation(other, x), atol=1e-10)


def test_blocks_are_of_about_the_same_cost():
    seconds = np.random.default_rng(1).uniform(1.0, 3.0, 1000)
    bounds = cut(seconds, 10)
    assert bounds[0] == 0 and bounds[-1] == 1000 and len(bounds) == 11
    assert np.ptp(np.add.reduceat(seconds, bounds[:-1])) <= 2 * seconds.max()
    assert cut(np.array([1.0, 100.0, 1.0]), 3).tolist() in ([0, 1, 2, 3], [0, 2, 3])


@pytest.mark.parametrize("ranks", [2, 3])
def test_all_ranks_have_the_energies_of_one_process(ranks, tmp_path):
    options = {"rank": 3, "roots": 2, "conv_tol": 1e-11, "conv_tol_residual": 1e-6}
    alone, file = tilewise.CI(mean_field(NITROGEN, "sto-3g"), **options).run(), str(tmp_path / "be.h5")
    done = run_script(
        f"""
        import tilewise
        from ci.cases import NITROGEN, mean_field

        molecule = tilewise.CI(mean_field(NITROGEN, "sto-3g"), threads=1, **{options}).run()
        try:
            tilewise.CI.atom("Be", basis="sto-3g", reference="1s2 2s2", rank=1, term="3D", threads=1).run()
        except tilewise.TilewiseError as error:
            told = str(error)
        be = {{"basis": "sto-3g", "reference": "1s2 2s2", "term": "1S", "threads": 1}}
        atom = tilewise.CI.atom("Be", checkpoint={file!r}, **be).run()
        again = tilewise.CI.atom("Be", restart={file!r}, **be).run()
        assert len(again.cycles) < 3, again.cycles
        world = atom.world
        own = (molecule.energies.tolist(), atom.e_tot, atom.e_hf, len(molecule.cycles), atom.levels, told)
        found = world.allgather(own)
        shares = world.allgather(sum(len(molecule.columns.stored_columns(w)) for w in range(1)))
        if world.rank == 0:
            assert all(each == own for each in found), found
            assert sum(shares) == len(molecule.determinants)
            print(*molecule.energies.tolist(), atom.e_tot)
        """,
        ranks,
    )
    assert done.returncode == 0, done.stderr
    be = tilewise.CI.atom("Be", basis="sto-3g", reference="1s2 2s2", term="1S").run()
    np.testing.assert_allclose(np.array(done.stdout.split(), float), [*alone.energies, be.e_tot], atol=1e-9)


def test_the_command_runs_on_ranks_and_prints_once(tmp_path):
    file = tmp_path / "water.xyz"
    file.write_text(f"3\n\n{WATER.replace('; ', chr(10))}\n")
    ended = run_tilewise(2, "ci", file, "--basis", "sto-3g", "--threads", 1)
    assert ended.returncode == 0, ended.stderr
    alone = tilewise.CI(mean_field(WATER, "sto-3g")).run()
    assert ended.stdout.count(f"{alone.e_tot:.8f}"[:-1]) >= 1
    assert ended.stdout.count("natural") == 1 and "2 x 1 thread" in ended.stdout
