"""Reading geometries, and complaining about them."""

import pytest
from pyscf.data.elements import ELEMENTS as PYSCF_ELEMENTS

from tilewise.chem.xyz import ELEMENTS, formula, looks_like_atoms, parse_atoms, read_xyz
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
        (
            WATER.replace("-0.7572", "0.75722"),
            r"line 5: atom 3 \(H\) is at the same place as atom 2 \(H\) of line 4",
        ),
        (WATER.replace("\nH 0 -", "\n\nH 0 -"), "line 5: expected 'symbol x y z', found ''"),
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
