"""`tilewise mpi-info` under mpiexec, and the machine file that it writes."""

import json

import pytest

from ranks import run_tilewise
from tilewise.hardware.machines import read_machine, shipped_machines
from tilewise.hardware.writing import machine_text


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("info")
    out, document = folder / "here.toml", folder / "info.json"
    ended = run_tilewise(2, "mpi-info", "--out", out, "--nodes", 200, "--threads", 1, "--json", document)
    assert ended.returncode == 0, ended.stderr
    return ended, out, json.loads(document.read_text())


def test_rank_0_tells_what_was_found(measured):
    ended, _, _ = measured
    assert ended.stderr == ""
    assert ended.stdout.count("2 x 1 thread on 1 node, MPICH") == 1
    assert "one-sided communication is right" in ended.stdout
    assert "barrier" in ended.stdout


def test_the_machine_file_can_be_simulated(measured, cli):
    _, out, document = measured
    model = read_machine(out)
    assert (model.nodes, model.cores, model.links) == (200, 1, True)
    assert model.latency == pytest.approx(document["measured"]["get_latency"], rel=1e-5)
    assert model.rates.gemm > 1e8
    simulated = cli.run("simulate", "water-1", "--machine", out, "--workers", "1,100", "--policy", "dataflow")
    assert simulated.code == 0, simulated.err


@pytest.mark.parametrize("path", shipped_machines().values(), ids=lambda path: path.stem)
def test_a_machine_is_read_as_it_was_written(tmp_path, path):
    model = read_machine(path)
    copy = tmp_path / path.name
    copy.write_text(machine_text(model, ["A comment."]))
    assert read_machine(copy) == model


def test_without_mpiexec_it_is_refused(cli):
    cli.run("mpi-info").assert_refused("mpiexec -n 2 tilewise mpi-info")


def test_an_error_of_all_ranks_is_said_once():
    ended = run_tilewise(3, "mpi-info", "--threads", "10000")
    assert ended.returncode == 2
    assert ended.stderr.count("tilewise: ") == 1


def test_other_commands_run_once():
    ended = run_tilewise(3, "study", "list")
    assert ended.stdout.count("ghosh-proxy") == 1
