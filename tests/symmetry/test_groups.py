"""The eight abelian groups, against PySCF's own tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyscf.symm import param

from tilewise.errors import InputError
from tilewise.symmetry.groups import GROUPS, group_named

_PYSCF_OPERATION = {"sigma_yz": "sx", "sigma_xz": "sy", "sigma_xy": "sz"}


@pytest.mark.parametrize("name", GROUPS)
def test_irreps_are_numbered_as_in_pyscf(name):
    assert {irrep: k for k, irrep in enumerate(GROUPS[name].irreps)} == param.IRREP_ID_TABLE[name]


@pytest.mark.parametrize("name", GROUPS)
def test_characters_are_those_of_pyscf(name):
    group = GROUPS[name]
    columns = [param.OPERATOR_TABLE[name].index(_PYSCF_OPERATION.get(op, op)) for op in group.operations]
    expected = np.array([row[1:] for row in param.CHARACTER_TABLE[name]])[:, columns]
    assert np.array_equal(group.characters, expected)


@given(st.sampled_from(list(GROUPS)), st.integers(0, 7), st.integers(0, 7))
def test_the_product_of_irreps_multiplies_their_characters(name, a, b):
    group = GROUPS[name]
    a, b = a % group.order, b % group.order
    assert np.array_equal(group.characters[a] * group.characters[b], group.characters[group.product(a, b)])


@pytest.mark.parametrize(("name", "sub"), [(g.name, s) for g in GROUPS.values() for s in g.subgroups])
def test_restriction_keeps_products_and_covers_the_subgroup(name, sub):
    group = GROUPS[name]
    target, image = group.restrict(sub)
    assert target.name == sub
    everything = np.arange(group.order)
    assert np.array_equal(image[everything[:, None] ^ everything], image[:, None] ^ image)
    assert set(image) == set(range(target.order))


def test_descent_from_d2h_is_pyscfs_along_z():
    names = ("D2h", "C2h", "C2v", "D2", "Cs", "Ci", "C2", "C1")
    for row in param.SYMM_DESCENT_Z:
        for sub, irrep in zip(names[1:], row[1:], strict=True):
            if sub == "Cs":  # that column holds the characters of C2z; the next test takes sigma_xy's
                continue
            target, image = GROUPS["D2h"].restrict(sub)
            assert target.irreps[image[GROUPS["D2h"].irreps.index(row[0])]] == irrep


@pytest.mark.parametrize(("name", "mirror"), [("D2h", "sz"), ("C2h", "sz"), ("C2v", "sx")])
def test_cs_keeps_one_mirror(name, mirror):
    _, image = GROUPS[name].restrict("Cs")
    column = 1 + param.OPERATOR_TABLE[name].index(mirror)
    assert [row[column] for row in param.CHARACTER_TABLE[name]] == [1 - 2 * irrep for irrep in image]


def test_same_group_is_the_identity_and_names_ignore_case():
    group, image = group_named("c2V").restrict("C2V")
    assert group.name == "C2v"
    assert image.tolist() == [0, 1, 2, 3]


def test_a_group_that_is_no_subgroup_is_refused_with_those_that_are():
    with pytest.raises(InputError, match=r"D2 is not a subgroup of C2v.*C2v, C2, Cs, C1"):
        GROUPS["C2v"].restrict("D2")
    with pytest.raises(InputError, match=r"unknown point group 'D3h'.*D2h"):
        group_named("D3h")
