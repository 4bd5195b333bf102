"""The command line: what it prints, what it writes, how it goes on after an interruption."""

import json
import resource
import signal
import time

import h5py
import numpy as np
import pytest
from pyscf import cc, gto, scf

from command_line import GEOMETRIES, METHANE, WATER, CommandLine, validator

SLOWLY = ("--level-shift", 5, "--diis-space", 1, "--max-cycle", 1000, "--conv-tol", 1e-13)
"""Settings that need hundreds of iterations, so that a run can be caught in the middle."""

TIGHT = ("--conv-tol", 1e-10, "--conv-tol-residual", 1e-8)


@pytest.fixture(scope="module")
def water_energy():
    mol = gto.M(atom=WATER, basis="6-31g", verbose=0)
    return cc.CCSD(scf.RHF(mol).run(conv_tol=1e-11)).run(conv_tol=1e-10, conv_tol_normt=1e-8).e_tot


# Output


def test_a_run_prints_plan_iterations_and_energies_in_order(cli, water_energy):
    outcome = cli.run("ccsd", WATER, "--basis", "6-31g", "--threads", 2)
    assert outcome.code == 0 and outcome.err == ""
    heads = "molecule group orbitals irrep tensor memory tasks flops threads iteration "
    heads += "E(HF) E(corr) E(CCSD) T1 time imbalance checkpoint"
    starts = [outcome.out.index(f"\n{head}") if k else 0 for k, head in enumerate(heads.split())]
    assert starts == sorted(starts)
    assert outcome.energy == pytest.approx(water_energy, abs=1e-8)
    assert "converged after" in outcome.out and "hartree" in outcome.out


def test_frozen_core_and_symmetry_options(cli):
    full = cli.run("ccsd", WATER, "--basis", "6-31g", "--frozen", "auto", "--no-checkpoint")
    listed = cli.run(
        "ccsd", WATER, "--basis", "6-31g", "--frozen", "0,", "--symmetry", "c1", "--no-checkpoint"
    )
    assert "frozen 1 occupied" in full.out and "frozen 1 occupied" in listed.out
    assert "C2v" in full.out and "\ngroup       C1\n" in listed.out
    assert listed.energy == pytest.approx(full.energy, abs=1e-8)


def test_not_converged_is_exit_code_1_with_the_results(cli):
    outcome = cli.run("ccsd", WATER, "--basis", "sto-3g", "--max-cycle", 2)
    assert outcome.code == 1
    assert "NOT CONVERGED" in outcome.out and outcome.energy < -75
    assert outcome.err.startswith("tilewise: not converged in 2 iterations") and outcome.err.count("\n") == 1


def test_verbose_lists_all_tensors_and_operations(cli):
    brief = cli.run("plan", WATER)
    verbose = cli.run("ccsd", WATER, "--basis", "sto-3g", "--verbose", "--no-checkpoint")
    assert " more " in brief.out and " more " not in verbose.out
    assert "R[abij] += " in verbose.out and "contract" in verbose.out


def test_no_checkpoint_writes_no_file(cli, tmp_path):
    assert cli.run("ccsd", WATER, "--basis", "sto-3g", "--no-checkpoint").code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_trace_is_written_for_viewers(cli, tmp_path):
    assert cli.run("ccsd", WATER, "--basis", "sto-3g", "--trace", "t.json", "--no-checkpoint").code == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {"name", "ph", "ts", "dur", "tid"} <= set(events[-1])


def test_deterministic_runs_on_the_same_integrals_give_the_same_bits(cli, tmp_path):
    assert cli.run("fcidump", WATER, "--basis", "6-31g", "--out", "water.fcidump").code == 0
    energies = set()
    for threads, policy in ((1, "dataflow"), (2, "dataflow"), (2, "lpt")):
        arguments = ("--threads", threads, "--policy", policy, "--json", "r.json", "--no-checkpoint")
        assert cli.run("ccsd", "water.fcidump", "--deterministic", *arguments).code == 0
        energies.add(json.loads((tmp_path / "r.json").read_text())["e_corr"])
    assert len(energies) == 1


def test_version_and_help_name_what_works(cli):
    assert cli.run("--version").out.startswith("tilewise 0.")
    text = cli.run("--help").out
    assert all(name in text for name in ("ccsd", "plan", "fcidump", "report"))
    options, examples = cli.run("ccsd", "--help").out.split("Examples")
    assert all(name in options for name in ("--df", "--auxbasis", "--cholesky")) and "--df" in examples


# JSON


def test_json_of_a_run_follows_the_schema_and_names_the_amplitudes(cli, tmp_path):
    outcome = cli.run("ccsd", WATER, "--basis", "sto-3g", "--json", "-")
    document = json.loads(outcome.out)
    validator("result", "plan", "simulate").validate(document)
    assert document["converged"] and "E(CCSD)" in outcome.err
    assert document["e_tot"] == pytest.approx(document["e_hf"] + document["e_corr"])
    with h5py.File(document["t2"]["file"]) as file:
        stored = file[document["t2"]["path"]]["data"][:]
    assert len(stored) == document["t2"]["elements"]
    assert np.linalg.norm(stored) == pytest.approx(document["t2"]["norm"])


def test_json_without_checkpoint_follows_the_schema(cli, tmp_path):
    cli.run("ccsd", WATER, "--basis", "sto-3g", "--max-cycle", 1, "--no-checkpoint", "--json", "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    validator("result", "plan", "simulate").validate(document)
    assert document["checkpoint"] is None and document["t1"]["file"] is None and not document["converged"]


def test_json_of_a_plan_follows_the_schema(cli):
    validator("plan", "simulate").validate(json.loads(cli.run("plan", WATER, "--json", "-").out))


# Plans


def test_symmetry_saves_flops_and_bytes_for_benzene(cli):
    plan = json.loads(cli.run("plan", GEOMETRIES / "benzene.xyz", "--frozen", "auto", "--json", "-").out)[
        "plan"
    ]
    assert plan["flops_c1"] >= 40 * plan["flops"]
    assert plan["stored_bytes_c1"] >= 7 * plan["stored_bytes"]


def test_a_plan_of_benzene_takes_less_than_three_seconds(cli):
    spent = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome = cli.finish(cli.start("plan", GEOMETRIES / "benzene.xyz", "--threads", 1))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert outcome.code == 0 and "in C1" in outcome.out
        # Of one CPU, so that other work on the machine does not count.
        spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert min(spent) < 3


def test_a_plan_says_when_the_budget_is_too_small(cli):
    outcome = cli.run("plan", WATER, "--memory", "100kB")
    assert outcome.code == 0 and "more memory than the budget" in outcome.out


def test_the_plan_is_the_one_that_is_run(cli):
    opening = cli.run("plan", WATER, "--basis", "sto-3g", "--memory", "4GB").out.splitlines()
    run = cli.run("ccsd", WATER, "--basis", "sto-3g", "--memory", "4GB", "--no-checkpoint").out.splitlines()
    # The memory that the process had before is another one by then.
    same = [[line for line in lines if not line.startswith("memory ")] for lines in (opening, run)]
    assert same[0] == same[1][: len(same[0])] and len(same[0]) == len(opening) - 1


# FCIDUMP


def test_a_fcidump_is_recognised_by_its_content(cli):
    molecule = cli.run("ccsd", WATER, "--basis", "6-31g", "--frozen", 1, "--no-checkpoint")
    assert cli.run("fcidump", WATER, "--basis", "6-31g", "--frozen", 1, "--out", "water.integrals").code == 0
    outcome = cli.run("ccsd", "water.integrals", "--no-checkpoint")
    assert outcome.code == 0 and "of a FCIDUMP file" in outcome.out and "C2v" in outcome.out
    assert outcome.energy == pytest.approx(molecule.energy, abs=1e-8)


# Restart


@pytest.fixture(scope="module", params=["water", "methane"])
def begun(request, tmp_path_factory):
    """A job that was stopped after six iterations, its checkpoint, and the same job run to the end."""
    folder = tmp_path_factory.mktemp(request.param)
    source, checkpoint = folder / "methane.xyz", folder / "begun.h5"
    source.write_text(METHANE)
    job = ("ccsd", WATER if request.param == "water" else source, "--basis", "6-31g*", "--threads", 2, *TIGHT)
    stopped = CommandLine().run(*job, "--max-cycle", 6, "--checkpoint", checkpoint)
    straight = CommandLine().run(*job, "--no-checkpoint")
    assert stopped.code == 1 and straight.code == 0
    return job, checkpoint, stopped, straight


@pytest.mark.parametrize(
    "other",
    [("--tile", 2), ("--threads", 1), ("--symmetry", "C2"), ("--symmetry", "C1"), ("--policy", "lpt")],
    ids=lambda option: "-".join(map(str, option)).lstrip("-"),
)
def test_a_restart_goes_on_with_other_settings(cli, begun, other):
    job, checkpoint, stopped, straight = begun
    went_on = cli.run(*job, *other, "--restart", checkpoint, "--no-checkpoint")
    assert went_on.code == 0, went_on.err
    assert went_on.energy == pytest.approx(straight.energy, abs=5e-9)
    assert went_on.residuals[0] < stopped.residuals[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
def test_an_interrupted_run_goes_on_from_its_last_iteration(cli, number, water_energy):
    process = cli.start("ccsd", WATER, "--basis", "6-31g", *SLOWLY)
    printed = ""
    while not printed.splitlines()[-1:] or not printed.splitlines()[-1].startswith("        9 "):
        printed += process.stdout.readline() or pytest.fail(process.communicate()[1])
    process.send_signal(number)
    caught = cli.finish(process, printed)
    if number == signal.SIGINT:
        assert caught.code == 130
        assert "--restart water.tilewise.h5" in caught.err and caught.err.count("\n") == 1
    else:
        assert caught.code == -signal.SIGKILL
    went_on = cli.run("ccsd", WATER, "--basis", "6-31g", "--restart", "water.tilewise.h5", "--conv-tol", 1e-9)
    assert went_on.code == 0
    assert went_on.energy == pytest.approx(water_energy, abs=1e-8)
    assert went_on.residuals[0] <= caught.residuals[7]


@pytest.mark.parametrize("command", ["ccsd", "plan"])
def test_an_interruption_of_the_planning_says_so(cli, monkeypatch, command):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tilewise.cost.load_or_calibrate", interrupted)
    outcome = cli.run(command, WATER, "--basis", "sto-3g")
    assert (outcome.code, outcome.err) == (130, "tilewise: interrupted\n")


def test_an_interruption_before_the_first_iteration_says_so(cli):
    process = cli.start("ccsd", GEOMETRIES / "benzene.xyz", "--threads", 1)
    printed = ""
    while "predicted" not in printed:
        printed += process.stdout.readline() or pytest.fail(process.communicate()[1])
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    caught = cli.finish(process, printed)
    assert caught.code == 130
    assert "start again from the beginning" in caught.err and caught.err.count("\n") == 1


# A full disk


def test_a_full_disk_does_not_stop_the_run(cli, tmp_path, water_energy):
    assert cli.run("ccsd", WATER, "--basis", "sto-3g").code == 0
    good = (tmp_path / "water.tilewise.h5").read_bytes()

    def tiny_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))

    outcome = cli.finish(cli.start("ccsd", WATER, "--basis", "6-31g", preexec_fn=tiny_files))
    assert outcome.code == 0, outcome.err
    assert outcome.energy == pytest.approx(water_energy, abs=1e-7)
    assert "could not be written" in outcome.out
    assert (tmp_path / "water.tilewise.h5").read_bytes() == good
    assert len(list(tmp_path.iterdir())) == 1
