"""Reading geometries, and complaining about them."""

import pytest
from pyscf.data.elements import ELEMENTS as PYSCF_ELEMENTS

from tilewise.chem.xyz import (
    ANGSTROM,
    BOHR,
    ELEMENTS,
    contradicted_unit,
    formula,
    looks_like_atoms,
    parse_atoms,
    read_xyz,
)
from tilewise.errors import InputError

WATER = "3\na comment\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"


def write(tmp_path, text):
    path = tmp_path / "water.xyz"
    path.write_text(text)
    return path


def test_elements_are_all_there():
    assert list(ELEMENTS) == PYSCF_ELEMENTS[1 : len(ELEMENTS) + 1]


def test_a_file_gives_atoms_and_comment(tmp_path):
    atoms, comment = read_xyz(write(tmp_path, WATER + "\n  \n"))
    assert comment == "a comment"
    assert atoms[1] == ("H", (0.0, 0.7572, -0.4692))


@pytest.mark.parametrize(
    ("written", "symbol"),
    [
        ("o", "O"),
        ("8", "O"),
        ("CL", "Cl"),
        ("H1", "H"),
        ("Xe", "Xe"),
        ("X-O", "ghost-O"),
        ("ghost-o", "ghost-O"),
        ("GHOST-H", "ghost-H"),
        ("Ghost8", "ghost-O"),
        ("Gh(He)", "ghost-He"),
        ("gh(he1)", "ghost-He"),
        ("Ghost(O)", "ghost-O"),
        ("@He", "ghost-He"),
        ("He@", "ghost-He"),
        ("@8", "ghost-O"),
        ("He:", "ghost-He"),
        ("He :", "ghost-He"),
        ("bqHe", "ghost-He"),
        ("H-Bq", "ghost-H"),
        ("D", "H"),
        ("t", "H"),
        ("D2", "H"),
        ("@D", "ghost-H"),
    ],
)
def test_symbols_in_many_spellings(written, symbol):
    assert parse_atoms(f"{written} 0 0 1.0d0 0.5 extra") == [(symbol, (0.0, 0.0, 1.0))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            WATER.replace("H 0 0.7572 -0.4692", "H 0 0.7572"),
            r"line 4: expected 'symbol x y z', found 'H 0 0.7572'",
        ),
        (WATER.replace("0.7572 -0.4692\nH", "zero -0.4692\nH"), "line 4: expected 'symbol x y z'"),
        (WATER.replace("3\n", "4\n", 1), "announces 4 atoms, but 3 follow"),
        (WATER.replace("3\n", "2\n", 1), "announces 2 atoms, but 3 follow"),
        (WATER.replace("3\n", "three\n", 1), "line 1: expected the number of atoms, found 'three'"),
        ("", "line 1: expected the number of atoms"),
        (WATER.replace("O ", "Oo "), "line 3: unknown element 'Oo'; did you mean .*O"),
        (WATER.replace("0.1173", "nan"), "line 3: coordinates must be finite"),
        (WATER.replace("0.1173", "inf"), "line 3: coordinates must be finite"),
        (WATER.replace("0.1173", "1e25"), r"line 3: coordinates go up to 1e\+06"),
        (
            WATER.replace("-0.7572", "0.75722"),
            r"line 5: atom 3 \(H\) is at the same place as atom 2 \(H\) of line 4",
        ),
        (WATER.replace("\nH 0 -", "\n\nH 0 -"), "line 5: expected 'symbol x y z', found ''"),
        ("\n\n" + WATER.replace("O ", "Oo "), "line 5: unknown element 'Oo'"),
        (WATER.replace("O ", "@ "), "line 3: unknown element '@'"),
        (WATER + WATER, r"holds 2 geometries: choose one with --frame, from 1 to 2, or -1 for the last"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        read_xyz(write(tmp_path, text))
    assert "water.xyz" in str(error.value)


def test_missing_files_are_said_to_be_missing(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.xyz: no such file"):
        read_xyz(tmp_path / "nowhere.xyz")
    with pytest.raises(InputError, match="not a file"):
        read_xyz(tmp_path)


def test_text_is_told_from_file_names():
    assert looks_like_atoms("Ne 0 0 0")
    assert looks_like_atoms("H 0 0 0; H 0 0 1")
    assert not looks_like_atoms("my water.xyz")
    with pytest.raises(InputError, match="no atom given"):
        parse_atoms(" ; ")


def test_formulas_follow_hill():
    assert formula(["O", "H", "H"]) == "H2O"
    assert formula(["H", "C", "H", "Br", "C"]) == "C2H2Br"
    assert formula(["F"], -1) == "F-"
    assert formula(["S", *"OOOO"], -2) == "O4S^2-"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("before", ["", "\n", "  \n\t\n\n"])
def test_byte_order_marks_and_leading_blank_lines_do_not_matter(tmp_path, encoding, before):
    path = tmp_path / "water.xyz"
    path.write_bytes((before + WATER.replace("a comment", "in \u00e5ngstr\u00f6m")).encode(encoding))
    atoms, _ = read_xyz(path)
    assert atoms == read_xyz(write(tmp_path, WATER))[0]


TRAJECTORY = "\n".join(f"2\nframe {k}\nH 0 0 0\nH 0 0 0.{k}" for k in (5, 6, 7)) + "\n"


@pytest.mark.parametrize(("number", "comment"), [(1, "5"), (2, "6"), (3, "7"), (-1, "7"), (-3, "5")])
@pytest.mark.parametrize("between", ["", "\n\n"])
def test_a_frame_of_several_is_chosen_by_its_number(tmp_path, number, comment, between):
    text = TRAJECTORY.replace("\n2\n", f"\n{between}2\n")
    atoms, found = read_xyz(write(tmp_path, text), number)
    assert found == f"frame {comment}"
    assert atoms[1] == ("H", (0.0, 0.0, float(f"0.{comment}")))


@pytest.mark.parametrize("number", [0, 4, -4, 10**25])
def test_a_frame_that_is_not_there_is_refused(tmp_path, number):
    with pytest.raises(InputError, match=rf"no frame {number}; the file holds 3 geometries"):
        read_xyz(write(tmp_path, TRAJECTORY), number)


def test_mistakes_in_a_frame_name_its_line_and_do_not_touch_the_others(tmp_path):
    path = write(tmp_path, TRAJECTORY.replace("H 0 0 0.6", "H 0 0 0.6\nH 0 1 0") + "2\ncut off\nH 0 0 0\n")
    assert read_xyz(path, 3)[1] == "frame 7"
    with pytest.raises(InputError, match="line 5: announces 2 atoms, but 3 follow"):
        read_xyz(path, 2)
    with pytest.raises(InputError, match="line 14: announces 2 atoms, but 1 follow"):
        read_xyz(path, -1)


@pytest.mark.parametrize(
    ("comment", "unit", "other"),
    [
        ("coordinates in bohr", ANGSTROM, BOHR),
        ("Bohr", ANGSTROM, BOHR),
        ("units: a.u.", ANGSTROM, BOHR),
        ("(au)", ANGSTROM, BOHR),
        ("atomic units", ANGSTROM, BOHR),
        ("in Angstrom", BOHR, ANGSTROM),
        ("\u00c5", BOHR, ANGSTROM),
        ("in bohr", BOHR, None),
        ("angstrom", ANGSTROM, None),
        ("converted from bohr to angstrom", ANGSTROM, None),
        ("E = -76.2413 a.u.", ANGSTROM, None),
        ("energy -76.2413 au", ANGSTROM, None),
        ("Au dimer", ANGSTROM, None),
        ("automatic", ANGSTROM, None),
        ("", ANGSTROM, None),
    ],
)
def test_a_comment_may_speak_of_another_unit(comment, unit, other):
    assert contradicted_unit(comment, unit) == other
