"""What the command line takes: geometries from anywhere, in any unit, with any basis."""

import io
import json
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from pyscf import gto, scf

from command_line import GEOMETRIES, WATER
from tilewise.cli.app import app

PLAIN = ("--basis", "sto-3g", "--no-checkpoint")
IN_BOHR = """3
in bohr
O 0 0 0.22166487
H 0 1.43090055 -0.88665947
H 0 -1.43090055 -0.88665947
"""


@pytest.fixture
def typed(monkeypatch):
    """Puts a text where the standard input is."""

    def type_in(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return type_in


# Standard input


def test_a_geometry_comes_from_the_standard_input(cli, typed, tmp_path):
    typed(Path(WATER).read_text())
    outcome = cli.run("ccsd", "-", "--basis", "sto-3g")
    assert outcome.code == 0, outcome.err
    assert outcome.energy == pytest.approx(cli.run("ccsd", WATER, *PLAIN).energy, abs=1e-8)
    assert "molecule    stdin, H2O" in outcome.out


def test_the_standard_input_has_a_checkpoint_only_if_one_is_named(cli, typed, tmp_path):
    typed(Path(WATER).read_text())
    outcome = cli.run("ccsd", "-", "--basis", "sto-3g")
    assert "note: no checkpoint is written" in outcome.out and "--checkpoint FILE" in outcome.out
    assert not list(tmp_path.iterdir())
    typed(Path(WATER).read_text())
    outcome = cli.run("ccsd", "-", "--basis", "sto-3g", "--checkpoint", "w.h5")
    assert "note:" not in outcome.out and [path.name for path in tmp_path.iterdir()] == ["w.h5"]
    typed(Path(WATER).read_text())
    assert cli.run("ccsd", "-", *PLAIN, "--restart", "w.h5").code == 0


def test_integrals_come_from_the_standard_input_too(cli, typed, tmp_path):
    assert cli.run("fcidump", WATER, "--basis", "sto-3g", "--out", "w.fcidump").code == 0
    typed((tmp_path / "w.fcidump").read_text())
    outcome = cli.run("plan", "-")
    assert outcome.code == 0 and "of a FCIDUMP file" in outcome.out


@pytest.mark.parametrize("text", ["", "nothing of the kind"])
def test_mistakes_in_the_standard_input_name_it(cli, typed, text):
    typed(text)
    cli.run("plan", "-").assert_refused("stdin, line 1: expected the number of atoms")


def test_the_standard_input_leaves_no_file_behind(cli, tmp_path):
    (tmp_path / "tmp").mkdir()
    with open(WATER) as text:
        process = cli.start("plan", "-", stdin=text, environment={"TMPDIR": str(tmp_path / "tmp")})
        assert cli.finish(process).code == 0
    assert not list((tmp_path / "tmp").iterdir())


# Units and frames


def test_bohr_is_a_unit(cli):
    Path("w.xyz").write_text(IN_BOHR)
    outcome = cli.run("ccsd", "w.xyz", *PLAIN, "--unit", "Bohr")
    assert outcome.code == 0 and "note:" not in outcome.out
    assert outcome.energy == pytest.approx(cli.run("ccsd", WATER, *PLAIN).energy, abs=1e-6)


def test_a_comment_about_another_unit_is_noted(cli):
    Path("w.xyz").write_text(IN_BOHR)
    outcome = cli.run("plan", "w.xyz", "--json", "-")
    assert "note: the comment of w.xyz speaks of bohr" in outcome.err and "--unit bohr" in outcome.err
    assert "note:" not in cli.run("plan", "w.xyz", "--unit", "angstrom").out
    noted = json.loads(cli.run("ccsd", "w.xyz", *PLAIN, "--scf-max-cycle", 200, "--json", "-").out)["notes"]
    assert any("speaks of bohr" in note for note in noted)


def test_a_frame_is_chosen_by_its_number(cli, tmp_path):
    water, nitrogen = (Path(GEOMETRIES / f"{name}.xyz").read_text() for name in ("water", "n2"))
    Path("two.xyz").write_text(water + nitrogen)
    cli.run("ccsd", "two.xyz").assert_refused("two.xyz holds 2 geometries", "--frame")
    assert "H2O" in cli.run("plan", "two.xyz", "--frame", 1).out
    assert cli.run("ccsd", "two.xyz", "--basis", "sto-3g", "--frame", 2).code == 0
    last = cli.run("ccsd", "two.xyz", "--basis", "sto-3g", "--frame", -1)
    assert "N2" in last.out
    names = {path.name for path in tmp_path.glob("*.h5")}
    assert names == {"two-frame2.tilewise.h5", "two-last.tilewise.h5"}
    cli.run("plan", "two.xyz", "--frame", 3).assert_refused("no frame 3", "2 geometries")


def test_a_fcidump_has_neither_unit_nor_frames(cli):
    Path("f").write_text("&FCI NORB=2,NELEC=2,\n ORBSYM=1,1,\n&END\n 0.5 1 1 1 1\n")
    cli.run("plan", "f", "--unit", "bohr").assert_refused("--unit", "FCIDUMP")
    cli.run("plan", "f", "--frame", 1).assert_refused("--frame", "FCIDUMP")


# Basis, core, charge


def test_a_basis_for_one_element(cli):
    mol = gto.M(atom=WATER, basis={"O": "6-31g", "H": "sto-3g"}, verbose=0)
    expected = scf.RHF(mol).run(conv_tol=1e-11).e_tot
    outcome = cli.run("ccsd", WATER, "--basis", "sto-3g,O=6-31g", "--no-checkpoint", "--json", "-")
    assert json.loads(outcome.out)["e_hf"] == pytest.approx(expected, abs=1e-8)
    assert "basis sto-3g, O: 6-31g" in outcome.err


def test_a_basis_for_an_element_that_is_not_there_is_noted(cli):
    outcome = cli.run("plan", WATER, "--basis", "sto-3g,N=6-31g")
    assert outcome.code == 0 and "note: water.xyz has no N" in outcome.out


def test_no_basis_is_no_default(cli):
    cli.run("ccsd", WATER, "--basis", "").assert_refused("--basis ''", "cc-pvdz")


def test_frozen_none_is_zero(cli):
    none, zero = (cli.run("ccsd", WATER, *PLAIN, "--frozen", word) for word in ("none", 0))
    assert none.code == 0 and none.energy == pytest.approx(zero.energy, abs=1e-9)


MANY_DIGITS = 1234567890123456789012345


@pytest.mark.parametrize("sign", [1, -1])
def test_a_charge_of_many_digits_is_refused(cli, sign):
    cli.run("ccsd", WATER, "--charge", sign * MANY_DIGITS).assert_refused(str(MANY_DIGITS))


def test_other_numbers_of_many_digits_are_refused_or_taken(cli):
    cli.run("ccsd", WATER, "--threads", MANY_DIGITS).assert_refused("--threads", "4096")
    cli.run("simulate", WATER, "--workers", 2, "--seed", MANY_DIGITS).assert_refused("--seed")
    assert cli.run("ccsd", WATER, *PLAIN, "--memory", MANY_DIGITS, "--tile", MANY_DIGITS).code == 0
    assert cli.run("ccsd", WATER, *PLAIN[:2], "--tile", MANY_DIGITS, "--checkpoint", "a.h5").code == 0


# Threads and words


def test_more_threads_than_cpus_are_noted(cli, monkeypatch):
    monkeypatch.setattr("tilewise.config.available_cpus", lambda: 2)
    assert "note: 3 threads share 2 CPUs" in cli.run("plan", WATER, "--threads", 3).out
    assert "note:" not in cli.run("plan", WATER, "--threads", 2).out
    monkeypatch.setenv("TILEWISE_NUM_THREADS", "64")
    outcome = cli.run("plan", WATER)
    assert "note: TILEWISE_NUM_THREADS asks for 64 threads, but this process may use 2 CPUs" in outcome.out
    assert "\nthreads     2," in outcome.out


def test_one_is_singular(cli):
    text = cli.run("ccsd", WATER, *PLAIN, "--threads", 1, "--max-cycle", 1, "--tile", 1).out
    assert " on 1 worker;" in text and "after 1 iteration\n" in text and "tiles of up to 1 orbital\n" in text


# The program


COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_h_is_help(cli, command):
    arguments = [command] if command else []
    short, long = cli.run(*arguments, "-h"), cli.run(*arguments, "--help")
    assert short.code == long.code == 0
    assert "Usage: tilewise" in short.out and short.out == long.out


def test_all_commands_are_there():
    assert set(COMMANDS) == {
        *("ccsd", "ci", "fcidump", "mpi-info", "plan", "report", "simulate", "study", "tune")
    }


def test_the_package_runs_as_a_module(cli):
    outcome = cli.finish(cli.start("--version"))
    assert outcome.code == 0 and outcome.out.startswith("tilewise ")


def test_the_package_says_that_it_is_typed():
    assert files("tilewise").joinpath("py.typed").is_file()
