"""`tilewise ccsd` under mpiexec: one output, the energies of one process, one error."""

import json

import pytest

from command_line import ROOT, WATER, validator
from ranks import run_tilewise


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return energies(1, tmp_path_factory.mktemp("alone"))


def energies(ranks, folder, *options):
    document = folder / f"{ranks}.json"
    given = ("ccsd", WATER, "--basis", "6-31g", "--no-checkpoint", "--conv-tol", 1e-11)
    ended = run_tilewise(ranks, *given, "--conv-tol-residual", 1e-9, "--json", document, *options)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert ended.stdout.count("CCSD        converged") == 1
    found = json.loads(document.read_text())
    validator("result", "plan", "simulate").validate(found)
    for rank in found["ranks"]:
        assert (rank["gets"], rank["bytes"]) == (rank["counted_gets"], rank["counted_bytes"])
    assert len(found["ranks"]) == (ranks if ranks > 1 else 0)
    return ended.stdout, found["e_hf"], found["e_corr"]


@pytest.mark.parametrize("ranks", [3])
def test_ranks_give_the_energy_of_one_process(alone, tmp_path, ranks):
    out, *found = energies(ranks, tmp_path, "--threads", 1)
    assert found == pytest.approx(alone[1:], abs=1e-10)
    assert f"{ranks} x 1 thread on 1 node, MPICH" in out
    assert "self-test   one-sided communication is right" in out


def test_without_ranks_nothing_is_said_of_them(alone):
    assert "ranks" not in alone[0]


def test_wrong_input_is_said_once():
    ended = run_tilewise(3, "ccsd", "absent.xyz")
    assert ended.returncode == 2
    assert ended.stderr.count("tilewise: absent.xyz: no such file") == 1
    assert "rank" not in ended.stderr


def test_an_scf_that_does_not_converge_ends_all_ranks():
    ended = run_tilewise(2, "ccsd", WATER, "--scf-max-cycle", 2, "--no-checkpoint")
    assert ended.returncode == 2
    assert "rank 0: SCF not converged in 2 cycles" in ended.stderr


def test_memory_is_planned_for_each_rank(tmp_path):
    """What one process has no room for, two have: nothing is formed on the fly or refused."""
    given = (ROOT / "examples" / "geometries" / "water3.xyz", "--basis", "aug-cc-pvdz", "--symmetry", "C1")
    given += ("--frozen", "auto", "--threads", 1)
    peaks = []
    for ranks in (1, 2):
        document = tmp_path / f"plan{ranks}.json"
        run_tilewise(1, "plan", *given, "--ranks", ranks, "--memory", "8GB", "--json", document)
        peaks.append(json.loads(document.read_text())["plan"]["memory_peak"])
    enough_for_two = f"{sum(peaks) // 2 // 1000}kB"
    one = run_tilewise(1, "plan", *given, "--memory", enough_for_two)
    assert "on the fly" in one.stdout or "more memory than the budget" in one.stdout
    both = run_tilewise(2, "ccsd", *given, "--memory", enough_for_two, "--max-cycle", 1, "--no-checkpoint")
    assert "not converged in 1 iteration:" in both.stderr
    assert "of the largest rank; budget" in both.stdout
    assert "on the fly" not in both.stdout
