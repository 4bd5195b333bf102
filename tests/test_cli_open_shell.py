"""Open shells on the command line."""

import json

import pytest
from jsonschema.validators import Draft202012Validator
from pyscf import cc, gto, scf

from command_line import ROOT

NH2 = "3\nNH2\nN 0 0 0.14\nH 0 0.80 -0.49\nH 0 -0.80 -0.49\n"
OH = "2\nOH: one electron is missing in two degenerate orbitals\nO 0 0 0\nH 0 0 0.97\n"
TIGHT = ("--basis", "6-31g", "--conv-tol", 1e-10, "--conv-tol-residual", 1e-8, "--threads", 2)


@pytest.fixture
def nh2(tmp_path):
    path = tmp_path / "nh2.xyz"
    path.write_text(NH2)
    return path


def expected(text, kind, frozen=None):
    atoms = "; ".join(text.splitlines()[2:])
    mf = kind(gto.M(atom=atoms, basis="6-31g", spin=1, symmetry="C2v", verbose=0)).run(conv_tol=1e-12)
    solver = cc.UCCSD(mf, frozen=frozen)
    solver.verbose, solver.conv_tol, solver.conv_tol_normt = 0, 1e-10, 1e-8
    return mf, float(solver.run().e_tot)


@pytest.mark.parametrize(
    ("options", "kind"),
    [(("--spin", 1), scf.UHF), (("--multiplicity", 2, "--reference", "rohf"), scf.ROHF)],
)
def test_energies_spins_and_orbitals_are_shown_and_written(cli, nh2, options, kind):
    mf, energy = expected(NH2, kind, 1)
    done = cli.run("ccsd", nh2, *options, *TIGHT, "--frozen", "auto", "--json", "nh2.json")
    assert done.code == 0, done.err
    result = json.loads((nh2.parent / "nh2.json").read_text())
    assert abs(result["e_tot"] - energy) < 1e-8 and result["method"] == "uccsd"
    assert (
        abs(result["s2_reference"] - mf.spin_square()[0]) < 1e-6 and abs(result["s2_projected"] - 0.75) < 1e-3
    )
    assert set(result["t1"]["norms"]) == {"a", "b"} and set(result["t2"]["norms"]) == {"aa", "ab", "bb"}
    assert "9 electrons, 1 unpaired" in done.out and "4 + 3 occupied, 8 + 9 virtual" in done.out
    rows = [line.split() for line in done.out.splitlines() if line.startswith(("occupied", "virtual"))]
    assert [row[:2] + row[-1:] for row in rows] == [
        ["occupied", "alpha", "4"],
        ["occupied", "beta", "3"],
        ["virtual", "alpha", "8"],
        ["virtual", "beta", "9"],
    ]
    assert f"E({kind.__name__}) = {mf.e_tot:.6f}"[:18] in done.out and "<S^2>" in done.out
    schema = json.loads((ROOT / "docs" / "plan.schema.json").read_text())
    Draft202012Validator(schema).validate({"version": result["version"], "plan": result["plan"]})


def test_a_linear_radical_converges(cli, tmp_path):
    (tmp_path / "oh.xyz").write_text(OH)
    done = cli.run("ccsd", "oh.xyz", "--spin", 1, *TIGHT, "--json", "oh.json")
    assert done.code == 0, done.err
    assert abs(json.loads((tmp_path / "oh.json").read_text())["e_tot"] - expected(OH, scf.UHF)[1]) < 1e-8


def test_a_restart_goes_on_in_a_subgroup(cli, nh2):
    options = ("--spin", 1, "--reference", "rohf", *TIGHT)
    assert cli.run("ccsd", nh2, *options, "--max-cycle", 6, "--checkpoint", "a.h5").code == 1
    again = cli.run("ccsd", nh2, *options, "--restart", "a.h5", "--symmetry", "C1", "--tile", 3)
    assert again.code == 0 and again.residuals[0] < 1e-2, again.err


def test_the_scf_of_a_chkfile_is_taken(cli, tmp_path):
    atoms = "; ".join(NH2.splitlines()[2:])
    for kind in (scf.UHF, scf.ROHF):
        mf = kind(gto.M(atom=atoms, basis="6-31g", spin=1, symmetry=True, verbose=0))
        mf.chkfile = str(tmp_path / "job.chk")
        mf.run(conv_tol=1e-11)
        solver = cc.UCCSD(mf)
        solver.verbose, solver.conv_tol, solver.conv_tol_normt = 0, 1e-10, 1e-8
        done = cli.run("ccsd", tmp_path / "job.chk", *TIGHT[2:], "--json", "result.json")
        assert done.code == 0, done.err
        result = json.loads((tmp_path / "result.json").read_text())
        assert abs(result["e_tot"] - solver.run().e_tot) < 1e-8 and "SCF" not in result["seconds"]
    cli.run("fcidump", tmp_path / "job.chk", "--out", "dump").assert_refused("closed shells alone")
    cli.run("ccsd", tmp_path / "job.chk", "--spin", 1).assert_refused("--spin 1: job.chk is a chkfile")


def test_plan_and_simulate_know_open_shells(cli, nh2):
    planned = cli.run("plan", nh2, "--spin", 3, "--reference", "rohf", "--json", "-")
    plan = json.loads(planned.out)["plan"]
    assert plan["method"] == "uccsd" and (sum(plan["occupied"]), sum(plan["occupied_beta"])) == (6, 3)
    run = cli.run("simulate", nh2, "--spin", 1, "--machine", "fusion", "--workers", 8, "--policy", "dataflow")
    assert run.code == 0 and "5 + 4 occupied" in run.out
    refused = cli.run("simulate", nh2, "--spin", 1, "--workers", 2, "--equations", "tce-ccsd")
    refused.assert_refused("closed shells alone")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), ("9 electrons", "cannot all be paired", "spin 1")),
        (("--spin", 2), ("9 electrons", "of which 2 cannot be unpaired", "spin 1 or 3")),
        (("--spin", 11), ("9 electrons", "from 0 to 9")),
        (("--spin", -1), ("--spin",)),
        (
            ("--basis", "sto-3g", "--charge", -7, "--spin", 2),
            ("9 electrons of one spin for 7 basis functions",),
        ),
        (("--multiplicity", 0), ("--multiplicity",)),
        (("--spin", 1, "--multiplicity", 3), ("--spin 1 is a multiplicity of 2, not 3",)),
        (("--spin", 1, "--reference", "rhf"), ("1 unpaired electron", "uhf or rohf")),
        (("--spin", 1, "--reference", "ghf"), ("unknown reference 'ghf'", "rhf, uhf, rohf")),
    ],
)
def test_spins_that_do_not_fit_are_refused(cli, nh2, options, words):
    cli.run("ccsd", nh2, *options).assert_refused(*words)


def test_an_scf_that_stalls_is_taken_over_with_a_note(cli, tmp_path):
    (tmp_path / "cro.xyz").write_text("2\nCrO\nCr 0 0 0\nO 0 0 1.6\n")
    done = cli.run(
        "ccsd", "cro.xyz", "--spin", 4, "--basis", "sto-3g", "--max-cycle", 1, "--json", "cro.json"
    )
    assert "not converged in 1 iteration" in done.err
    (note,) = (n for n in json.loads((tmp_path / "cro.json").read_text())["notes"] if "stalled" in n)
    assert "PySCF's second-order solver went on" in note and "the SCF stalled after" in done.out + done.err
