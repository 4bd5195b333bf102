"""A basis for all elements, and others for some."""

import pytest
from chem_oracles import WATER
from pyscf import gto

from tilewise.chem.basis_names import basis_name, parse_basis
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.errors import InputError

WRITTEN = {
    "cc-pvdz": "cc-pvdz",
    " cc-pvdz ": "cc-pvdz",
    "6-31g(d,p)": "6-31g(d,p)",
    "cc-pvdz,O=aug-cc-pvdz": {"default": "cc-pvdz", "O": "aug-cc-pvdz"},
    "o=aug-cc-pvdz , cc-pvdz": {"O": "aug-cc-pvdz", "default": "cc-pvdz"},
    "O=6-311++g(2d,2p),H=6-31g(d,p)": {"O": "6-311++g(2d,2p)", "H": "6-31g(d,p)"},
    "sto-3g,@O=6-31g": {"default": "sto-3g", "ghost-O": "6-31g"},
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_basis_for_each_element_is_read(text):
    assert parse_basis(text) == WRITTEN[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--basis '': expected a name such as cc-pvdz"),
        ("  ", "expected a name"),
        ("cc-pvdz\ncc-pvtz", "expected a name"),
        ("cc-pvdz,", "expected a name"),
        (",O=cc-pvdz", "expected a name"),
        ("cc-pvdz,O=", "expected a name"),
        ("=cc-pvdz", "expected a name"),
        ("cc-pvdz,6-31g", "two are given for all elements"),
        ("O=cc-pvdz,o=6-31g", "two are given for O"),
        ("cc-pvdz,Oo=6-31g", "unknown element 'Oo'"),
    ],
)
def test_a_basis_that_makes_no_sense_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        parse_basis(text)


def test_each_element_has_its_own_functions():
    mixed = build_molecule(WATER, parse_basis("cc-pvdz,O=aug-cc-pvdz"))
    theirs = gto.M(atom=WATER, basis={"H": "cc-pvdz", "O": "aug-cc-pvdz"}, verbose=0)
    assert mixed.nao == theirs.nao == 33
    assert basis_name(mixed.basis) == "cc-pvdz, O: aug-cc-pvdz"


def test_an_unknown_basis_of_one_element_is_named():
    with pytest.raises(InputError, match="unknown basis 'cc-pvdzz'"):
        build_molecule(WATER, parse_basis("cc-pvdz,O=cc-pvdzz"))
