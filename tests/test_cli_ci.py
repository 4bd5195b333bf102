"""`tilewise ci`: atoms, molecules and FCIDUMP files, plans, levels, checkpoints, and what is refused."""

import json

import pytest
from jsonschema import Draft202012Validator
from pyscf import ci, fci, gto, scf

from command_line import ROOT
from tilewise.cli import EXIT_INPUT, EXIT_NOT_CONVERGED

WATER = "3\n\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"
BERYLLIUM = """
atom = "Be"
basis = "cc-pvdz"
reference = ["1s2 2s2"]
frozen = ["1s"]
terms = ["1S", "3Po", "1Po"]
levels = "known.txt"
"""


@pytest.fixture
def water(tmp_path):
    (tmp_path / "water.xyz").write_text(WATER)
    return gto.M(atom=WATER.split("\n", 2)[2].replace("\n", ";"), basis="sto-3g", verbose=0, symmetry=True)


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((ROOT / "docs" / "ci.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_a_molecule_has_the_energy_of_pyscf_in_text_and_json(cli, water, validator, tmp_path):
    done = cli.run("ci", "water.xyz", "--basis", "sto-3g", "--json", "out.json", "--trace", "trace.json")
    assert done.code == 0, done.err
    document = json.loads((tmp_path / "out.json").read_text())
    validator.validate(document)
    expected = ci.CISD(scf.RHF(water).run(conv_tol=1e-12)).run(conv_tol=1e-11).e_tot
    assert document["e_tot"] == pytest.approx(expected, abs=1e-8)
    assert f"{document['e_tot']:.10f}" in done.out and "1A1" in done.out
    assert cli.run("report", "trace.json").code == 0
    assert json.loads((tmp_path / "trace.json").read_text())["otherData"]["title"].startswith("CI of")


def test_levels_of_an_atom_stand_beside_known_ones(cli, validator, tmp_path):
    (tmp_path / "be.toml").write_text(BERYLLIUM)
    (tmp_path / "known.txt").write_text("# of a table\n1S 0\n3Po 21980.2\n1Po 42565.35\n")
    done = cli.run("ci", "be.toml", "--json", "-")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    validator.validate(document)
    names = [level["name"] for level in document["levels"]]
    assert names == ["1S", "3Po", "1Po"]
    assert [level["known_wavenumber"] for level in document["levels"]] == [0.0, 21980.2, 42565.35]
    assert "difference" in done.err and "2s1 2p1" in done.err
    energies = [level["energy"] for level in document["levels"]]
    mf = scf.RHF(gto.M(atom="Be", basis="cc-pvdz", verbose=0)).run(conv_tol=1e-12)
    from pyscf import mcscf

    assert energies[0] == pytest.approx(mcscf.CASCI(mf, 13, 2).kernel()[0], abs=1e-8)
    above = document["levels"][1]["above"]
    assert above["cm-1"] == pytest.approx(above["hartree"] * 219474.6313632, rel=1e-9)
    assert above["eV"] == pytest.approx(above["hartree"] * 27.211386246, rel=1e-9)


def test_a_single_atom_of_an_xyz_file_has_terms(cli, tmp_path):
    (tmp_path / "li.xyz").write_text("1\n\nLi 0 0 0\n")
    done = cli.run(
        "ci", "li.xyz", "--basis", "6-31g", "--rank", "full", "--term", "2S", "--term", "2Po", "--json", "-"
    )
    assert done.code == 0, done.err
    document = json.loads(done.out)
    mf = scf.ROHF(gto.M(atom="Li", basis="6-31g", spin=1, verbose=0)).run(conv_tol=1e-12)
    assert document["levels"][0]["energy"] == pytest.approx(fci.FCI(mf).kernel()[0], abs=1e-8)
    assert document["calculations"][0]["problem"]["reference"] == "1s2 2s1"


def test_a_plan_computes_no_integral(cli, water, validator):
    done = cli.run("ci", "water.xyz", "--rank", "3", "--plan", "--json", "-")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    validator.validate(document)
    assert document["plans"][0]["determinants"] == 90280
    assert "cycle" not in done.err


def test_a_fcidump_gives_the_same_energy(cli, water, tmp_path):
    assert cli.run("fcidump", "water.xyz", "--basis", "sto-3g", "--out", "water.fcidump").code == 0
    energies = []
    for source in (["water.xyz", "--basis", "sto-3g"], ["water.fcidump"]):
        done = cli.run("ci", *source, "--rank", "full", "--json", "-")
        energies.append(json.loads(done.out)["e_tot"])
    assert energies[0] == pytest.approx(energies[1], abs=1e-9)


def test_roots_are_kept_and_taken_up(cli, water, tmp_path):
    first = cli.run(
        "ci", "water.xyz", "--basis", "6-31g", "--roots", "2", "--checkpoint", "roots.h5", "--json", "-"
    )
    assert first.code == 0, first.err
    again = cli.run(
        "ci", "water.xyz", "--basis", "6-31g", "--roots", "2", "--restart", "roots.h5", "--json", "-"
    )
    assert again.code == 0, again.err
    cycles = [len(json.loads(done.out)["calculations"][0]["cycles"]) for done in (first, again)]
    assert cycles[1] < cycles[0]
    other = cli.run("ci", "water.xyz", "--basis", "6-31g", "--rank", "3", "--restart", "roots.h5")
    assert other.code == EXIT_INPUT and "other determinants" in other.err
    (tmp_path / "roots.h5").write_bytes((tmp_path / "roots.h5").read_bytes()[:-3])
    damaged = cli.run("ci", "water.xyz", "--basis", "6-31g", "--roots", "2", "--restart", "roots.h5")
    assert damaged.code == EXIT_INPUT and "corrupt" in damaged.err


def test_memory_that_is_short_makes_columns_again(cli, water):
    words = ("ci", "water.xyz", "--basis", "6-31g", "--rank", "4", "--json", "-")
    # In processes of their own: what this one holds already counts, and it keeps what earlier runs took.
    full = json.loads(cli.finish(cli.start(*words)).out)
    memory = full["calculations"][0]["plan"]["memory"]
    less = memory["iterations"] - memory["stored"] // 2
    done = cli.finish(cli.start(*words, "--memory", f"{less / 1e6:.3f}MB"))
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert (
        0
        < document["calculations"][0]["direct_columns"]
        < document["calculations"][0]["plan"]["determinants"]
    )
    assert "memory is short" in done.err
    assert document["e_tot"] == pytest.approx(full["e_tot"], abs=1e-8)
    refused = cli.run(*words, "--memory", "1MB")
    refused.assert_refused("determinants need", "--memory")
    cli.run(*words, "--memory", "much").assert_refused("not an amount of memory")


def test_what_does_not_converge_is_said_after_the_results(cli, water):
    done = cli.run("ci", "water.xyz", "--basis", "6-31g", "--max-cycle", "2", "--conv-tol-residual", "1e-9")
    assert done.code == EXIT_NOT_CONVERGED and "not converged in 2 cycles" in done.err
    assert "1A1" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["water.xyz", "--rank", "two"], "rank two: expected a number of electrons"),
        (["water.xyz", "--irrep", "E"], "unknown irrep 'E'"),
        (["water.xyz", "--ms2", "1"], "can have an even number of unpaired"),
        (["water.xyz", "--term", "1S"], "has 3 atoms"),
        (["water.xyz", "--max-n", "3"], "it is for atoms"),
        (["water.xyz", "--configuration", "2233"], "expected up to"),
        (["be.toml", "--irrep", "A1"], "say --term instead"),
        (["be.toml", "--term", "3X"], "term '3X'"),
        (["be.toml", "--term", "4S"], "cannot have this spin"),
        (["be.toml", "--configuration", "1s2 2s3"], "holds 1 to 2 electrons"),
        (["be.toml", "--configuration", "1s2 2s1"], "it has 3 electrons"),
        (["be.toml", "--max-n", "1"], "2s of the reference is not among the orbitals"),
        (["be.toml", "--basis", "nonsense"], "PySCF has none of that name"),
        (["empty.toml"], "basis '': a name such as cc-pvdz is expected"),
        (["be.toml", "--levels", "nothing.txt"], "nothing.txt"),
        (["be.toml", "--levels", "endless.txt"], "endless.txt, line 1: a term and its energy in cm^-1"),
        (["wrong.toml"], "unknown key of wrong.toml 'atoms'"),
        (["broken.toml"], "not a TOML file"),
        (["be.toml", "--policy", "nonsense"], "unknown policy"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(cli, water, tmp_path, words, message):
    (tmp_path / "be.toml").write_text(BERYLLIUM.replace('levels = "known.txt"', ""))
    (tmp_path / "wrong.toml").write_text('atoms = "Be"')
    (tmp_path / "broken.toml").write_text("atom = ")
    (tmp_path / "empty.toml").write_text('atom = "Be"\nbasis = ""\n')
    (tmp_path / "endless.txt").write_text("1S inf\n")
    done = cli.run("ci", *words)
    assert done.code == EXIT_INPUT, done.err
    assert message in done.err and done.err.count("\n") == 1


def test_an_atom_whose_number_has_thousands_of_digits_is_refused(cli, tmp_path):
    (tmp_path / "long.toml").write_text("atom = " + "9" * 5000)
    cli.run("ci", "long.toml").assert_refused("long.toml: it is no atom: numbers are too long")
