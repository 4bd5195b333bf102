"""Files besides the results: on a full disk the results come all the same, with exit code 3."""

import errno
import io
import json
import os
import resource
import signal

import h5py
import pytest

from command_line import GEOMETRIES, WATER
from tilewise.cli.app import Output
from tilewise.methods.checkpoint import Checkpoint

JOB = ("ccsd", WATER, "--basis", "sto-3g")
FULL = os.strerror(errno.ENOSPC)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    from command_line import CommandLine

    path = tmp_path_factory.mktemp("traced") / "t.json"
    assert CommandLine().run(*JOB, "--no-checkpoint", "--trace", path).code == 0
    return path


def tiny_files():
    """In a child: as on a disk with room for 8 kB in each file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))


def test_a_trace_on_a_full_disk_costs_neither_energies_nor_json(cli, tmp_path):
    arguments = ("--no-checkpoint", "--trace", "t.json", "--json", "r.json")
    outcome = cli.finish(cli.start(*JOB, *arguments, preexec_fn=tiny_files))
    assert outcome.code == 3 and outcome.energy < -75
    assert "note: t.json could not be written" in outcome.out
    assert outcome.err == "tilewise: the results are complete, but t.json could not be written\n"
    assert json.loads((tmp_path / "r.json").read_text())["converged"]
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_the_trace_is_written_after_the_results(cli, monkeypatch):
    from tilewise.trace import TraceFile

    seen = []
    monkeypatch.setattr(TraceFile, "write", lambda self, path: seen.append(os.listdir()))
    outcome = cli.run(*JOB, "--no-checkpoint", "--trace", "t.json", "--json", "r.json")
    assert seen == [["r.json"]] and outcome.energy < -75


def test_json_on_a_full_disk_costs_neither_energies_nor_the_trace(cli, tmp_path):
    outcome = cli.run(*JOB, "--no-checkpoint", "--json", "/dev/full", "--trace", "t.json")
    assert outcome.code == 3 and outcome.energy < -75
    assert f"note: /dev/full could not be written ({FULL})" in outcome.out
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_not_converged_counts_more_than_a_lost_file(cli):
    outcome = cli.run(*JOB, "--no-checkpoint", "--max-cycle", 2, "--json", "/dev/full")
    assert outcome.code == 1 and "/dev/full could not be written" in outcome.out
    assert outcome.err.startswith("tilewise: not converged in 2 iterations")


@pytest.mark.parametrize("options", [("--json", "r.json"), ("--json", "r.json", "--trace", "t.json")])
def test_text_on_a_full_disk_costs_no_file(cli, tmp_path, options):
    with open("/dev/full", "w") as full:
        process = cli.start(*JOB, "--no-checkpoint", *options, stdout=full)
        err = process.communicate(timeout=300)[1]
    assert process.returncode == 3
    assert err == f"tilewise: the text could not be written ({FULL})\n"
    assert json.loads((tmp_path / "r.json").read_text())["converged"]
    assert {path.name for path in tmp_path.iterdir()} == {name for name in options if name[0] != "-"}


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)], ids=["out", "err", "both"])
def test_a_program_whose_output_is_closed_still_works(cli, tmp_path, closed):
    def close() -> None:
        for stream in closed:
            os.close(stream)

    outcome = cli.finish(cli.start(*JOB, "--no-checkpoint", "--json", "r.json", preexec_fn=close))
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads((tmp_path / "r.json").read_text())["converged"]


def test_a_closed_standard_input_is_named(cli):
    outcome = cli.finish(cli.start("ccsd", "-", preexec_fn=lambda: os.close(0)))
    outcome.assert_refused("the standard input is closed")


def test_a_checkpoint_never_takes_the_place_of_a_pipe_or_a_device(cli, tmp_path):
    os.mkfifo("pipe")
    cli.run(*JOB, "--checkpoint", "pipe").assert_refused(
        "--checkpoint pipe: it is not a file", "--no-checkpoint"
    )
    with pytest.raises(OSError, match="it is not a file"):
        Checkpoint("ccsd", 1, 0.0, None, {}).write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_whoever_stops_reading_gets_no_traceback(cli, tmp_path):
    process = cli.start(*JOB, "--no-checkpoint", "--verbose")
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=300) == 1 and err == ""


OTHER_COMMANDS = {
    "plan": (("plan", WATER, "--json", "/dev/full"), "predicted"),
    "simulate": (
        ("simulate", WATER, "--workers", 2, "--policy", "lpt", "--trace", "/dev/full", "--json", "ok.json"),
        "efficiency",
    ),
    "study": (("study", "pvm-table2", "--json", "/dev/full"), "interleaved, 2-2-1-1"),
}


@pytest.mark.parametrize(("arguments", "shown"), OTHER_COMMANDS.values(), ids=OTHER_COMMANDS)
def test_other_commands_show_their_results_too(cli, tmp_path, arguments, shown):
    outcome = cli.run(*arguments)
    assert outcome.code == 3 and shown in outcome.out
    assert f"note: /dev/full could not be written ({FULL})" in outcome.out
    assert {path.name for path in tmp_path.iterdir()} == {name for name in arguments if name == "ok.json"}


def test_a_picture_on_a_full_disk_is_noted_and_leaves_nothing(cli, tmp_path):
    arguments = ("simulate", WATER, "--workers", 2, "--policy", "lpt", "--picture", "p.png")
    assert cli.run("plan", WATER).code == 0  # measures the kernels
    outcome = cli.finish(cli.start(*arguments, preexec_fn=tiny_files))
    assert outcome.code == 3 and "note: p.png could not be written" in outcome.out
    assert not list(tmp_path.iterdir())


def test_a_folder_of_a_study_on_a_full_disk_has_whole_files_or_none(cli, tmp_path):
    outcome = cli.finish(cli.start("study", "pvm-table2", "--out", "made", preexec_fn=tiny_files))
    assert outcome.code == 3 and "interleaved, 2-2-1-1" in outcome.out
    assert "made/pvm-table2.png could not be written" in outcome.out
    assert all(0 < path.stat().st_size < 8000 for path in (tmp_path / "made").iterdir())


def test_a_report_on_a_full_disk_shows_its_numbers(cli, trace):
    outcome = cli.run("report", trace, "--out", "/dev/full")
    assert outcome.code == 3 and "imbalance" in outcome.out and "\npage" not in outcome.out


def test_a_fcidump_on_a_full_disk_leaves_what_was_there(cli, tmp_path):
    job = ("fcidump", WATER, "--basis", "6-31g", "--out", "w.fcidump")
    (tmp_path / "w.fcidump").write_text("old")
    outcome = cli.finish(cli.start(*job, preexec_fn=tiny_files))
    assert outcome.code == 3
    assert outcome.err.startswith("tilewise: w.fcidump could not be written") and outcome.err.count("\n") == 1
    assert (tmp_path / "w.fcidump").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


# Checkpoints


def test_a_checkpoint_that_was_asked_for_and_not_written_is_exit_code_3(cli, tmp_path):
    job = ("ccsd", WATER, "--basis", "6-31g", "--checkpoint", "c.h5", "--json", "r.json")
    outcome = cli.finish(cli.start(*job, preexec_fn=tiny_files))
    assert outcome.code == 3 and outcome.energy < -76
    assert outcome.out.count("c.h5 could not be written") == 1
    assert "complete, but c.h5 could not be written" in outcome.err
    document = json.loads((tmp_path / "r.json").read_text())
    assert document["checkpoint"] is None and document["t2"]["file"] is None
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_json_does_not_take_an_older_checkpoint_for_its_own(cli, tmp_path, monkeypatch):
    assert cli.run(*JOB).code == 0

    def full(*_):
        raise OSError(errno.ENOSPC, FULL)

    monkeypatch.setattr(Checkpoint, "write_to", full)
    outcome = cli.run(*JOB, "--json", "r.json")
    assert outcome.code == 0 and "\ncheckpoint" not in outcome.out
    assert json.loads((tmp_path / "r.json").read_text())["checkpoint"] is None


def test_a_folder_that_cannot_be_written_hints_at_no_checkpoint(cli, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    cli.run(*JOB).assert_refused("water.tilewise.h5", "permission is denied", "--no-checkpoint")
    outcome = cli.run(*JOB, "--checkpoint", "mine.h5")
    outcome.assert_refused("mine.h5")
    assert "--no-checkpoint" not in outcome.err


@pytest.fixture
def two_inputs(tmp_path):
    """a/m.xyz and b/m.xyz: files of one name, with two molecules."""
    for folder, molecule in (("a", "water"), ("b", "n2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.xyz").write_text((GEOMETRIES / f"{molecule}.xyz").read_text())
    return "a/m.xyz", "b/m.xyz"


def atoms(path):
    return Checkpoint.read(path).identity.atoms


def test_inputs_of_one_name_keep_their_checkpoints(cli, two_inputs, tmp_path):
    for _ in range(2):
        for source in two_inputs:
            assert cli.run("ccsd", source, "--basis", "sto-3g").code == 0
        assert atoms(tmp_path / "m.tilewise.h5") == "O H H charge 0"
        assert atoms(tmp_path / "m-2.tilewise.h5") == "N N charge 0"
    assert len(list(tmp_path.glob("*.h5"))) == 2


def test_the_user_is_told_where_the_checkpoint_is(cli, two_inputs):
    first, second = (cli.run("ccsd", source, "--basis", "sto-3g") for source in two_inputs)
    assert first.out.endswith("\ncheckpoint  m.tilewise.h5\n") and "note:" not in first.out
    assert second.out.endswith("\ncheckpoint  m-2.tilewise.h5\n")
    assert "checkpoint m.tilewise.h5 is of another input; this run writes m-2.tilewise.h5" in second.out
    went_on = cli.run("ccsd", "b/m.xyz", "--basis", "sto-3g", "--restart", "m-2.tilewise.h5")
    assert went_on.code == 0 and went_on.energy == pytest.approx(second.energy, abs=1e-7)
    cli.run("ccsd", "b/m.xyz", "--basis", "sto-3g", "--restart", "m.tilewise.h5").assert_refused(
        "another molecule"
    )


def test_an_input_stays_with_its_checkpoint_when_others_are_gone(cli, two_inputs, tmp_path):
    for source in two_inputs:
        assert cli.run("ccsd", source, "--basis", "sto-3g").code == 0
    (tmp_path / "m.tilewise.h5").unlink()
    outcome = cli.run("ccsd", "b/m.xyz", "--basis", "sto-3g")
    assert outcome.out.endswith("\ncheckpoint  m-2.tilewise.h5\n")


def test_a_changed_geometry_in_the_same_file_takes_over_its_checkpoint(cli, tmp_path):
    for molecule in ("water", "n2"):
        (tmp_path / "m.xyz").write_text((GEOMETRIES / f"{molecule}.xyz").read_text())
        assert cli.run("ccsd", "m.xyz", "--basis", "sto-3g").code == 0
    assert [path.name for path in tmp_path.glob("*.h5")] == ["m.tilewise.h5"]
    assert atoms(tmp_path / "m.tilewise.h5") == "N N charge 0"


def test_inputs_of_one_name_at_the_same_time_keep_their_checkpoints(cli, two_inputs, tmp_path):
    running = [cli.start("ccsd", source, "--basis", "sto-3g", "--threads", 1) for source in two_inputs]
    assert [cli.finish(process).code for process in running] == [0, 0]
    found = {atoms(tmp_path / name) for name in ("m.tilewise.h5", "m-2.tilewise.h5")}
    assert found == {"O H H charge 0", "N N charge 0"}


def test_a_checkpoint_that_is_named_is_written_whoever_wrote_it(cli, two_inputs, tmp_path):
    for source in two_inputs:
        assert cli.run("ccsd", source, "--basis", "sto-3g", "--checkpoint", "one.h5").code == 0
    assert atoms(tmp_path / "one.h5") == "N N charge 0"


def test_a_checkpoint_opens_as_hdf5(cli, tmp_path):
    assert cli.run(*JOB).code == 0
    with h5py.File(tmp_path / "water.tilewise.h5") as file:
        assert set(file["amplitudes"]) == {"t", "T"}


@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [("utf-8", "new\udcff.dump", "new\\udcff.dump"), ("ascii", "benzène", "benz\\xe8ne")],
)
def test_letters_that_the_output_has_no_bytes_for_are_spelled_out(encoding, text, written):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    output = Output(stream)
    output.write(text)
    output.flush()
    assert stream.buffer.getvalue().decode(encoding) == written
