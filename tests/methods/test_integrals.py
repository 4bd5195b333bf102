"""Constants of equations, filled from the integrals of a mean field."""

import numpy as np
import pytest
from ccsd_oracles import mean_field
from pyscf import ao2mo

from tilewise import Space, Tensor
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.equations import parse, plan_program
from tilewise.equations.dense import dense_constants
from tilewise.errors import InputError
from tilewise.methods.integrals import constants


def spaces_of(reference):
    outline = reference.outline
    return {"ijkl": Space.spatial("o", outline.occ), "abcd": Space.spatial("v", outline.vir)}


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
@pytest.mark.parametrize(
    "definition",
    [
        "ovov[ia|jb] = (ia|jb)",
        "ovov[ai|jb] = (ia|jb)",
        "ovov[jb|ia] = (ai|jb)",
        "oovv[ac+|ki+] = (ki|ac)",
        "ooov[ki+|lc] = (lc|ik)",
        "f[a|i] = fock",
    ],
)
def test_a_constant_is_the_integral_that_it_is_called(definition, symmetry):
    reference = from_mean_field(mean_field("water"), symmetry=symmetry)
    equation, spaces = parse(f"constant {definition}"), spaces_of(reference)
    program = plan_program(equation, spaces)
    (name, found), *_ = constants(equation, program, reference, 1).items()
    n_occ, eri = reference.outline.n_occ, ao2mo.restore(1, reference.eri(), reference.n_orbitals)
    expected = dense_constants(equation, eri, spaces, {"o": 0, "v": n_occ}, reference.fock_rest())
    assert np.abs(Tensor(program.layouts[name], found).to_dense() - expected[name]).max() < 1e-10


@pytest.mark.parametrize(
    "definition",
    [
        "K[ia|jb] = 2 (ia|jb)",
        "K[ia|jb] = -(ia|jb)",
        "K[ia|jb] = 2 (ia|jb) - (ib|ja)",
        "K[ab|ij] = (ia|jb)",
        "K[ib|ja] = (ia|jb)",
        "K[iaj|b] = (ia|jb)",
        "K[ab+-|ij+-] = (ia|jb)",
        "K[ac+-|bd+-] = (ac|bd)",
        "K[ac-|bd-] = (ac|bd)",
        "K[ac+||bd+] = (ac|bd)",
        "K[ia|ia] = (ia|ia)",
        "K[i|a] = (ia|ia)",
        "K[l|c] = 2 (ii|lc) - (li|ic)",
        "K[ia|jb] = (ia|jb) (ia|jb)",
        "K[ia|] = fock",
        "K[i|a] = 2 fock",
        "K[i|a] = fock + fock",
        "K[ac|bd] = vectors",
    ],
)
def test_other_definitions_of_constants_are_refused_by_their_line(definition):
    reference = from_mean_field(mean_field("water"))
    equation = parse(f"constant ovov[ia|jb] = (ia|jb)\n\nconstant {definition}")
    program = plan_program(equation, spaces_of(reference))
    with pytest.raises(InputError, match=r"equations, line 3: constant K\[.*statements"):
        constants(equation, program, reference, 1)
