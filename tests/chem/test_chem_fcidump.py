"""FCIDUMP files, against PySCF's reader and writer."""

import sys

import numpy as np
import pytest
from chem_oracles import hf_energy, mp2_energy
from pyscf import ao2mo, gto, mp, scf
from pyscf.symm import param
from pyscf.tools import fcidump as pyscf_fcidump

from tilewise.chem.fcidump import MOLPRO_NUMBERS, read_fcidump, write_fcidump, write_integrals
from tilewise.chem.fcidump_text import parse
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.errors import CheckpointError, InputError, MemoryBudgetError


@pytest.fixture(scope="session")
def water_dump(water, tmp_path_factory):
    path = tmp_path_factory.mktemp("fcidump") / "FCIDUMP"
    pyscf_fcidump.from_scf(water, str(path), tol=1e-15, molpro_orbsym=True)
    return path


def test_molpro_numbers_are_those_of_pyscf():
    assert MOLPRO_NUMBERS == param.IRREP_ID_MOLPRO


def test_open_shells_are_not_written(tmp_path):
    oh = gto.M(atom="O 0 0 0; H 0 0 0.97", basis="sto-3g", spin=1, verbose=0)
    with pytest.raises(InputError, match=r"open shells are written by pyscf\.tools\.fcidump"):
        write_fcidump(tmp_path / "oh", from_mean_field(scf.UHF(oh).run()))
    assert not (tmp_path / "oh").exists()


@pytest.mark.parametrize("frozen", [None, 1, [0, 12]])
@pytest.mark.parametrize("symmetry", ["auto", "C1", "Cs"])
def test_a_file_of_pyscf_gives_pyscfs_energies(water, water_dump, frozen, symmetry):
    reference = read_fcidump(water_dump, frozen=frozen, symmetry=symmetry)
    assert reference.outline.group.name == ("C2v" if symmetry == "auto" else symmetry)
    assert reference.e_hf == pytest.approx(water.e_tot, abs=1e-9)
    assert hf_energy(reference) == pytest.approx(water.e_tot, abs=1e-9)
    assert mp2_energy(reference) == pytest.approx(mp.MP2(water, frozen=frozen).kernel()[0], abs=1e-9)


@pytest.mark.parametrize("molpro", [True, False])
def test_both_numberings_of_irreps_are_read(nitrogen, tmp_path, molpro):
    path = tmp_path / "N2"
    pyscf_fcidump.from_scf(nitrogen, str(path), molpro_orbsym=molpro)
    reference, expected = read_fcidump(path, frozen=2), from_mean_field(nitrogen, frozen=2)
    assert reference.outline.occ == expected.outline.occ
    assert reference.outline.vir == expected.outline.vir
    assert np.allclose(reference.vir_energies, expected.vir_energies, atol=1e-9)
    assert np.allclose(np.abs(reference.eri()), np.abs(expected.eri()), atol=1e-9)
    assert reference.e_core == pytest.approx(expected.e_core, abs=1e-9)


def test_pyscf_reads_what_we_write(water, tmp_path):
    reference = from_mean_field(water, frozen=1)
    write_fcidump(tmp_path / "dump", reference)
    content = pyscf_fcidump.read(str(tmp_path / "dump"), molpro_orbsym=True, verbose=False)
    n = reference.n_orbitals
    assert (content["NORB"], content["NELEC"], content["MS2"], content["ISYM"]) == (n, 8, 0, 1)
    assert content["ORBSYM"] == [*reference.occ_irreps, *reference.vir_irreps]
    assert np.allclose(content["H1"], reference.one_electron(), atol=1e-12, rtol=0)
    assert np.allclose(ao2mo.restore(4, content["H2"], n), reference.eri(), atol=1e-14, rtol=0)
    assert content["ECORE"] == pytest.approx(reference.e_core, abs=1e-12)


@pytest.mark.parametrize("symmetry", ["D2h", "D2", "C2h", "Ci", "C1"])
def test_a_round_trip_changes_nothing(nitrogen, tmp_path, symmetry):
    reference = from_mean_field(nitrogen, frozen="auto", symmetry=symmetry)
    write_fcidump(tmp_path / "dump", reference)
    back = read_fcidump(tmp_path / "dump")
    assert back.outline.group.order == reference.outline.group.order
    assert sorted(back.outline.occ) == sorted(reference.outline.occ)
    assert back.e_hf == pytest.approx(reference.e_hf, abs=1e-9)
    assert mp2_energy(back) == pytest.approx(mp2_energy(reference), abs=1e-9)
    if symmetry in ("D2h", "C1"):
        assert np.allclose(back.eri(), reference.eri(), atol=1e-12, rtol=0)


def test_orbitals_in_any_order_are_told_occupied_from_virtual(water, tmp_path):
    reference = from_mean_field(water)
    shuffle = np.random.default_rng(1).permutation(reference.n_orbitals)
    write_integrals(
        tmp_path / "dump",
        reference.one_electron()[np.ix_(shuffle, shuffle)],
        reference.integrals.eri(reference.order[shuffle]),
        e_core=reference.e_core,
        n_electrons=10,
    )
    back = read_fcidump(tmp_path / "dump")
    assert back.outline.group.name == "C1"
    assert back.e_hf == pytest.approx(water.e_tot, abs=1e-9)
    assert mp2_energy(back) == pytest.approx(mp2_energy(reference), abs=1e-9)


def test_fortran_spellings_and_comments(water_dump, tmp_path):
    lines = water_dump.read_text().splitlines()
    body = lines[4:]
    energies = [f" {-1.0 - k}D+00 {k + 1} 0 0 0" for k in range(3)]
    free = [
        "! written by hand",
        "&fci norb = 13, nelec=10, ms2= 0,",
        " orbsym=" + ",".join(lines[1].split("=")[1].rstrip(",").split(",")[:6]) + ", ! first half",
        " " + ",".join(lines[1].split("=")[1].rstrip(",").split(",")[6:]) + ",",
        "isym=1, uhf=.false. /",
        "# the integrals",
    ]
    changed = [
        line.replace("e-", "D-") + ("  ! a remark" if k % 7 == 0 else "") for k, line in enumerate(body)
    ]
    path = tmp_path / "dump"
    path.write_text("\n".join(free + changed[:50] + ["", "# more"] + changed[50:] + energies) + "\n")
    expected, found = read_fcidump(water_dump), read_fcidump(path)
    assert found.outline.occ == expected.outline.occ
    assert np.array_equal(found.eri(), expected.eri())
    assert found.e_hf == expected.e_hf


HEADER = " &FCI NORB=2,NELEC=2,MS2=0,\n  ORBSYM=1,2,\n  ISYM=1,\n &END\n"
BODY = "0.6 1 1 1 1\n0.5 2 2 1 1\n0.2 2 1 2 1\n0.6 2 2 2 2\n-1.2 1 1 0 0\n-0.4 2 2 0 0\n0.7 0 0 0 0\n"


def test_a_file_of_two_orbitals_is_read(tmp_path):
    (tmp_path / "dump").write_text(HEADER + BODY)
    reference = read_fcidump(tmp_path / "dump")
    assert (reference.outline.occ, reference.outline.vir) == ((1, 0), (0, 1))
    assert reference.e_hf == pytest.approx(0.7 - 2.4 + 0.6)
    assert reference.occ_energies == pytest.approx([-1.2 + 0.6])
    assert reference.vir_energies == pytest.approx([-0.4 + 2 * 0.5 - 0.2])


@pytest.mark.parametrize(
    ("header", "body", "message"),
    [
        (
            HEADER,
            BODY.replace("0.5 2 2 1 1", "0.5 2 2 1"),
            "line 6: expected 'value i j k l', found '0.5 2 2 1'",
        ),
        (HEADER, BODY.replace("0.5 2 2 1 1", "half 2 2 1 1"), "line 6: expected 'value i j k l'"),
        (HEADER, BODY.replace("0.5 2 2 1 1", "0.5 3 2 1 1"), "line 6: .*orbitals from 1 to 2"),
        (HEADER, BODY.replace("0.5 2 2 1 1", "0.5 2 -2 1 1"), "line 6: .*orbitals from 1 to 2"),
        (HEADER, BODY.replace("0.5 2 2 1 1", "0.5 2 2 1.5 1"), "line 6"),
        (HEADER, BODY.replace("0.5 2 2 1 1", "0.5 2 2 1 0"), "line 6"),
        (HEADER, BODY.replace("0.5 2 2 1 1", "nan 2 2 1 1"), "line 6"),
        (
            HEADER,
            "# nothing\n" + BODY.replace("0.2 2 1 2 1", "0.2 2 1 1 1"),
            "line 8: integral 2 1 1 1 .*ORBSYM",
        ),
        (HEADER, BODY + "0.1 2 1 0 0\n", "line 12: integral 2 1 0 0"),
        (HEADER, BODY + "0.9 1 1 2 2\n", "line 6: integral 2 2 1 1 is given again"),
        (HEADER, BODY.replace("0.6 1 1", "(0.6,0.0) 1 1", 1), "line 5: complex"),
        (HEADER, "", "no integrals"),
        (HEADER.replace("NORB=2,", ""), BODY, "lacks NORB"),
        (HEADER.replace("NELEC=2,", ""), BODY, "lacks NELEC"),
        (HEADER.replace("NELEC=2", "NELEC=1"), BODY, "MS2=0 does not fit NELEC=1"),
        (HEADER.replace("NELEC=2", "NELEC=6"), BODY, "do not fit"),
        (HEADER.replace("NELEC=2", "NELEC=two"), BODY, "NELEC=TWO in the header"),
        (HEADER.replace("MS2=0", "MS2=1"), BODY, "MS2=1 does not fit NELEC=2"),
        (HEADER.replace("ISYM=1", "ISYM=2"), BODY, "ISYM=2"),
        (HEADER.replace("1,2,", "1,2,1,"), BODY, "ORBSYM lists 3 orbitals, but NORB=2"),
        (HEADER.replace("1,2,", "1,9,"), BODY, "numbered 1 to 8"),
        (HEADER.replace("1,2,", "1,B,"), BODY, "ORBSYM contains 'B'"),
        (
            HEADER.replace("ISYM=1,", "ISYM=1,UHF=.TRUE.,"),
            BODY,
            "are read in the sections .* .lines without orbitals: 1",
        ),
        (HEADER.replace("ISYM=1,", "ISYM=1,IUHF=1,"), BODY, "are read in the sections"),
        (HEADER.replace("&END", ""), BODY, "no end"),
        (HEADER.replace("&FCI", ""), BODY, "line 1: expected the header"),
        (HEADER.replace("NELEC=2", "NELEC=4"), BODY, "no virtual orbital"),
        (HEADER.replace("1,2,", "1,1,"), BODY + "0.3 2 1 0 0\n", "not canonical"),
    ],
)
def test_broken_files_are_refused_with_the_line(tmp_path, header, body, message):
    (tmp_path / "dump").write_text(header + body)
    with pytest.raises(InputError, match=message) as error:
        read_fcidump(tmp_path / "dump")
    assert "dump" in str(error.value) or "orbital" in str(error.value)


@pytest.mark.parametrize("lost", range(1, 25))
def test_a_file_that_was_cut_is_called_truncated(tmp_path, lost):
    """Wherever the cut is: within the core energy, the one-electron or the two-electron integrals."""
    (tmp_path / "dump").write_text((HEADER + BODY)[: -3 * lost])
    with pytest.raises(
        InputError, match=r"dump is truncated: it(s last line, \d+, ends after| has no .*; expected)"
    ):
        read_fcidump(tmp_path / "dump")


def test_an_active_space_without_core_energy_says_so_with_a_line(tmp_path):
    (tmp_path / "dump").write_text(HEADER + "0.0 0 0 0 0\n" + BODY.replace("0.7 0 0 0 0\n", ""))
    assert read_fcidump(tmp_path / "dump").e_hf == pytest.approx(-2.4 + 0.6)


@pytest.mark.parametrize("orbitals", [10**6, 10**12, 10**17])
def test_orbitals_that_no_machine_holds_are_refused_with_what_they_would_take(tmp_path, orbitals):
    (tmp_path / "dump").write_text(f"&FCI NORB={orbitals},NELEC=2 &END\n" + BODY)
    with pytest.raises(
        MemoryBudgetError, match=rf"NORB={orbitals} orbitals would take \d+\.\d TB, and this machine"
    ):
        read_fcidump(tmp_path / "dump")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ORBSYM=1,2", f"ORBSYM=1,{'2' * 25}", "ORBSYM contains '2222222222222222222222222'; expected irrep"),
        ("ORBSYM=1,2", "ORBSYM=9999999999*1", "ORBSYM contains '9999999999\\*1'"),
        ("NORB=2", f"NORB={'9' * 5000}", "NORB=9{27}\\.\\.\\. in the header; expected one whole number"),
        ("NELEC=2", f"NELEC={'2' * 25}", "NELEC=2{25} in the header"),
        ("MS2=0", f"MS2={'2' * 25}", "MS2=2{25} in the header"),
    ],
)
def test_numbers_of_many_digits_are_refused(tmp_path, old, new, message):
    (tmp_path / "dump").write_text(HEADER.replace(old, new) + BODY)
    with pytest.raises(InputError, match=message):
        read_fcidump(tmp_path / "dump")


def test_missing_file_and_automatic_core_are_refused(water_dump):
    with pytest.raises(InputError, match="no such file"):
        read_fcidump("nowhere.fcidump")
    with pytest.raises(InputError, match="needs the atoms"):
        read_fcidump(water_dump, frozen="auto")


def test_identity_matches_the_same_file_in_another_subgroup(water_dump, nitrogen, tmp_path):
    reference, other = read_fcidump(water_dump), read_fcidump(water_dump, symmetry="C1")
    found = reference.identity.match(other.identity)
    assert np.array_equal(other.order[found.occ], reference.order[:5])
    assert np.array_equal(other.order[5:][found.vir], reference.order[5:])
    assert np.all(found.occ_signs == 1) and np.all(found.vir_signs == 1)
    with pytest.raises(CheckpointError, match="another set of active orbitals"):
        reference.identity.match(read_fcidump(water_dump, frozen=1).identity)
    with pytest.raises(CheckpointError, match="from a molecule"):
        reference.identity.match(from_mean_field(nitrogen).identity)


def test_identity_notices_other_integrals(water_dump, tmp_path):
    text = water_dump.read_text().splitlines()
    first = text[4].split()
    text[4] = " ".join([str(float(first[0]) + 1e-4), *first[1:]])
    (tmp_path / "dump").write_text("\n".join(text))
    with pytest.raises(CheckpointError, match="other orbitals: energies or integrals"):
        read_fcidump(water_dump).identity.match(read_fcidump(tmp_path / "dump").identity)


def test_no_line_of_a_large_file_is_parsed_on_its_own(tmp_path):
    n = 30
    pairs = n * (n + 1) // 2
    eri = np.random.default_rng(0).standard_normal((pairs, pairs))
    write_integrals(tmp_path / "dump", np.eye(n), eri + eri.T, e_core=0.0, n_electrons=4)
    calls: list[str] = []
    sys.setprofile(lambda _, event, __: calls.append(event))  # calls of Python and of C functions
    try:
        dump = parse(tmp_path / "dump")
    finally:
        sys.setprofile(None)
    assert len(dump.values) == pairs * (pairs + 1) // 2 + n + 1
    assert len(calls) < 0.05 * len(dump.values)


def test_huge_elements_are_ordered_without_a_warning(tmp_path):
    path = tmp_path / "huge.dump"
    path.write_text(" &FCI NORB=2,NELEC=2,MS2=0,\n &END\n -1.9e300 1 1 0 0\n 0.0 0 0 0 0\n")
    with np.errstate(all="raise"):
        reference = read_fcidump(path)
        assert reference.fock_rest().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert reference.occ_energies.tolist() == [-1.9e300]
