"""Bad input: one sentence, exit code 2, no traceback."""

import re
from pathlib import Path

import pytest

from command_line import GEOMETRIES, WATER


@pytest.fixture
def water_checkpoint(cli, tmp_path):
    assert cli.run("ccsd", WATER, "--basis", "sto-3g", "--checkpoint", "good.h5").code == 0
    return tmp_path / "good.h5"


GEOMETRY_MISTAKES = {
    "a word for a number": ("2\n\nH 0 0 0\nH 0 0 abc\n", ("line 4", "symbol x y z")),
    "a missing coordinate": ("2\n\nH 0 0\nH 0 0 1\n", ("line 3",)),
    "an unknown element": ("2\n\nH 0 0 0\nHx 0 0 1\n", ("line 4", "unknown element 'Hx'")),
    "a wrong count": ("3\n\nH 0 0 0\nH 0 0 0.7\n", ("line 1", "3 atoms, but 2")),
    "no count": ("H 0 0 0\nH 0 0 0.7\n", ("line 1", "number of atoms")),
    "two atoms in one place": ("2\n\nH 0 0 0\nH 0 0 0\n", ("line 4", "same place")),
    "an empty file": ("", ("line 1",)),
}


@pytest.mark.parametrize(("text", "words"), GEOMETRY_MISTAKES.values(), ids=GEOMETRY_MISTAKES)
def test_malformed_geometries_name_the_line(cli, text, words):
    Path("bad.xyz").write_text(text)
    cli.run("ccsd", "bad.xyz").assert_refused("bad.xyz", *words)


OPTION_MISTAKES = {
    "unknown basis": (("--basis", "cc-pvdzz"), ("cc-pvdzz", "did you mean cc-pvdz")),
    "odd electrons": (("--charge", 1), ("9 electrons", "cannot all be paired", "+2")),
    "no electrons": (("--charge", 10), ("0 electrons",)),
    "SCF not converged": (("--scf-max-cycle", 2), ("SCF not converged in 2 cycles",)),
    "negative frozen": (("--frozen", -1), ("frozen=-1", "0 to 4")),
    "too many frozen": (("--frozen", 5), ("frozen=5", "0 to 4")),
    "frozen orbital out of range": (("--frozen", "0,99"), ("frozen orbital 99", "0 to 23")),
    "frozen words": (("--frozen", "some"), ("auto", "0,1,5")),
    "unknown policy": (("--policy", "ltp"), ("unknown policy 'ltp'", "nxtval, ie-nxtval, block")),
    "unknown group": (("--symmetry", "D3h"), ("unknown point group 'D3h'", "C2v")),
    "group the molecule lacks": (("--symmetry", "D2h"), ("lacks the symmetry D2h", "valid are auto, C2v")),
    "small memory": (("--memory", "100kB"), ("would take ", "budget is 100 kB")),
    "memory in words": (("--memory", "lots"), ("'lots'", "8GB")),
    "negative memory": (("--memory", "-3GB"), ("'-3GB'",)),
    "no threads": (("--threads", 0), ("--threads", "1")),
    "half a thread": (("--threads", 1.5), ("--threads", "integer")),
    "a tile of hundreds of digits": (("--tile", "9" * 5000), ("--tile",)),
    "no tile": (("--tile", 0), ("--tile",)),
    "no iterations": (("--max-cycle", 0), ("--max-cycle",)),
    "zero threshold": (("--conv-tol", 0), ("--conv-tol", "positive")),
    "infinite threshold": (("--conv-tol-residual", "nan"), ("--conv-tol-residual", "positive")),
    "negative shift": (("--level-shift", -1), ("--level-shift", "from 0 up")),
    "threshold of zero": (("--cholesky", 0), ("--cholesky 0:", "between 0 and 1")),
    "threshold of one": (("--cholesky", 1), ("--cholesky 1:", "between 0 and 1")),
    "negative Cholesky threshold": (("--cholesky", -1e-6), ("--cholesky -1e-06:", "between 0 and 1")),
    "Cholesky threshold nan": (("--cholesky", "nan"), ("--cholesky nan:", "between 0 and 1")),
    "Cholesky threshold in words": (("--cholesky", "tight"), ("--cholesky", "number")),
    "two ways of fitting": (("--df", "--cholesky", 1e-6), ("--df and --cholesky exclude each other",)),
    "two ways, one of them implied": (
        ("--auxbasis", "cc-pvdz-ri", "--cholesky", 1e-6),
        ("--auxbasis and --cholesky exclude each other",),
    ),
    "unknown auxiliary basis": (("--auxbasis", "cc-pvdzz-ri"), ("auxiliary basis 'cc-pvdzz-ri'",)),
    "auxiliary basis without a name": (("--df", "--auxbasis", ""), ("auxiliary basis ''",)),
    "unknown option": (("--tiles", 3), ("--tiles", "--tile")),
    "two wishes for the checkpoint": (("--checkpoint", "a", "--no-checkpoint"), ("exclude each other",)),
    "no folder for the checkpoint": (("--checkpoint", "no/a.h5"), ("--checkpoint", "no folder")),
    "no folder for JSON": (("--json", "no/a.json"), ("--json", "no folder")),
    "a folder for the trace": (("--trace", "."), ("--trace", "folder")),
    "missing restart file": (("--restart", "none.h5"), ("none.h5", "no such restart file")),
}


@pytest.mark.parametrize(("options", "words"), OPTION_MISTAKES.values(), ids=OPTION_MISTAKES)
def test_wrong_options_say_what_is_right(cli, options, words):
    cli.run("ccsd", WATER, *options).assert_refused(*words)
    assert not list(Path().iterdir())


def test_too_little_memory_is_found_before_any_integral(cli, monkeypatch):
    monkeypatch.setattr("tilewise.chem.pyscf_source.run_scf", lambda *a, **k: pytest.fail("the SCF was run"))
    refused = cli.run("ccsd", WATER, "--memory", "100kB")
    refused.assert_refused("not enough memory", "100 kB")
    assert re.search(r"allow ([\d.]+GB) or more, .* \(--memory \1\)$", refused.err.strip())


def test_an_unknown_auxiliary_basis_is_found_before_anything_else_is_said(cli, tmp_path):
    # PySCF warns and prints advice: in a program of its own both would be seen.
    outcome = cli.finish(cli.start("ccsd", WATER, "--auxbasis", "cc-pvdzz-ri", cwd=tmp_path))
    outcome.assert_refused("auxiliary basis 'cc-pvdzz-ri'")
    assert outcome.out == ""


def test_an_auxiliary_basis_without_functions_for_an_element_is_refused(cli):
    Path("rbh.xyz").write_text("2\n\nRb 0 0 0\nH 0 0 2.3\n")
    outcome = cli.run("ccsd", "rbh.xyz", "--basis", "def2-svp", "--auxbasis", "cc-pvdz-ri")
    outcome.assert_refused("auxiliary basis 'cc-pvdz-ri'", "Rb")
    assert outcome.out == ""


def test_names_with_line_ends_are_told_on_one_line(cli):
    cli.run("ccsd", WATER, "--policy", "lpt\nlpt").assert_refused("unknown policy 'lpt\\nlpt'")
    cli.run("plan", "no\r\n\x1bfile.xyz").assert_refused("no\\r\\n\\x1bfile.xyz: no such file")


def test_missing_files_and_folders(cli):
    cli.run("ccsd", "nowhere.xyz").assert_refused("nowhere.xyz", "no such file")
    cli.run("ccsd", GEOMETRIES).assert_refused("not a file")
    cli.run("ccsd").assert_refused("SOURCE")
    cli.run("cisd", WATER).assert_refused("cisd", "ccsd, plan, fcidump")
    cli.run("plan", "nowhere.xyz").assert_refused("no such file")
    cli.run("fcidump", WATER, "--out", "no/where").assert_refused("no folder")


FCIDUMP_MISTAKES = {
    "a word": (
        "&FCI NORB=2,NELEC=2,MS2=0,\n ORBSYM=1,1,\n ISYM=1,\n&END\n 0.5 1 1 1 1\n x.5 1 1 0 0\n",
        "line 6",
    ),
    "an orbital too high": ("&FCI NORB=2,NELEC=2,\n ORBSYM=1,1,\n&END\n 0.5 1 1 1 3\n", "line 4"),
    "a header without end": ("&FCI NORB=2,NELEC=2,\n ORBSYM=1,1,\n", "&END"),
    "no name at all": ("&FCI 3\n&END\n 0.5 1 1 1 1\n", "NORB"),
    "an orbital of 25 digits": (
        f"&FCI NORB=2,NELEC=2,\n ORBSYM=1,1,\n&END\n 0.5 1 1 1 {'1' * 25}\n",
        "line 4",
    ),
    "no NORB": ("&FCI NELEC=2,\n&END\n 0.5 1 1 1 1\n", "NORB"),
    "a symmetry that does not hold": (
        "&FCI NORB=2,NELEC=2,\n ORBSYM=1,2,\n&END\n 0.5 1 1 1 1\n 0.4 1 2 1 1\n",
        "line 5",
    ),
}


@pytest.mark.parametrize(("text", "word"), FCIDUMP_MISTAKES.values(), ids=FCIDUMP_MISTAKES)
def test_broken_fcidump_files_name_the_line(cli, text, word):
    Path("bad.fcidump").write_text(text)
    cli.run("ccsd", "bad.fcidump").assert_refused("bad.fcidump", word)


def test_a_fcidump_has_its_own_basis_and_charge(cli):
    Path("f").write_text("&FCI NORB=2,NELEC=2,\n ORBSYM=1,1,\n&END\n 0.5 1 1 1 1\n")
    cli.run("plan", "f", "--basis", "sto-3g").assert_refused("--basis", "FCIDUMP")
    cli.run("plan", "f", "--charge", 1).assert_refused("--charge", "FCIDUMP")


@pytest.mark.parametrize("options", [("--df",), ("--auxbasis", "cc-pvdz-ri"), ("--cholesky", 1e-6)])
def test_the_integrals_of_a_fcidump_are_not_fitted(cli, options):
    Path("f").write_text("&FCI NORB=2,NELEC=2,\n ORBSYM=1,1,\n&END\n 0.5 1 1 1 1\n")
    cli.run("ccsd", "f", *options).assert_refused(f"{options[0]}: f is a FCIDUMP", "a molecule is needed")


def test_a_restart_file_of_another_molecule_is_refused(cli, water_checkpoint):
    other = cli.run("ccsd", GEOMETRIES / "n2.xyz", "--basis", "sto-3g", "--restart", water_checkpoint)
    other.assert_refused("another molecule")
    Path("w.xyz").write_text("3\n\nO 0 0 0.1173\nH 0 0.77 -0.4692\nH 0 -0.77 -0.4692\n")
    cli.run("ccsd", "w.xyz", "--basis", "sto-3g", "--restart", water_checkpoint).assert_refused("geometry")
    cli.run("ccsd", WATER, "--basis", "6-31g", "--restart", water_checkpoint).assert_refused("another basis")
    frozen = cli.run("ccsd", WATER, "--basis", "sto-3g", "--frozen", 1, "--restart", water_checkpoint)
    frozen.assert_refused("freeze the same orbitals")


@pytest.mark.parametrize("damage", ["truncated", "bits", "text", "empty"])
def test_a_damaged_restart_file_is_refused_and_the_good_one_stays(cli, water_checkpoint, damage):
    good = water_checkpoint.read_bytes()
    where = good.index(b"OHDR") if b"OHDR" in good else len(good) * 2 // 3
    bad = {
        "truncated": good[: len(good) // 2],
        "bits": good[:where] + bytes(b ^ 0xFF for b in good[where : where + 64]) + good[where + 64 :],
        "text": b"nothing of the kind",
        "empty": b"",
    }[damage]
    Path("bad.h5").write_bytes(bad)
    job = ("ccsd", WATER, "--basis", "sto-3g", "--checkpoint", water_checkpoint)
    cli.run(*job, "--restart", "bad.h5").assert_refused("bad.h5")
    assert water_checkpoint.read_bytes() == good
