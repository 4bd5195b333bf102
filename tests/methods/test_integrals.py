"""Constants of equations, filled from the integrals of a mean field."""

import numpy as np
import pytest
from ccsd_oracles import mean_field
from pyscf import ao2mo

from tilewise import Space, Tensor, policies
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.equations import parse, plan_program
from tilewise.equations.constants import with_plain_constants
from tilewise.equations.dense import dense_constants
from tilewise.errors import InputError
from tilewise.execute.once import run_once
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


@pytest.mark.parametrize("symmetry", ["auto", "C1"])
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
        "K[ac+||bd+] = (ac|bd)",
        "K[l|c] = 2 (ii|lc) - (li|ic)",
        "K[ia|] = fock",
        "K[i|a] = 2 fock",
        "K[i|a] = fock + fock",
    ],
)
def test_other_definitions_mean_what_they_say(definition, symmetry):
    reference = from_mean_field(mean_field("water"), symmetry=symmetry)
    equation, spaces = parse(f"constant {definition}"), spaces_of(reference)
    plain = with_plain_constants(equation, spaces)
    program = plan_program(plain, spaces)
    buffers = constants(plain, program, reference, 1)
    tensors = {name: Tensor(program.layouts[name], data) for name, data in buffers.items()}
    buffers = run_once(program, tensors, setup=True, policy=policies["lpt"])
    n_occ, eri = reference.outline.n_occ, ao2mo.restore(1, reference.eri(), reference.n_orbitals)
    expected = dense_constants(equation, eri, spaces, {"o": 0, "v": n_occ}, reference.fock_rest())
    assert np.abs(Tensor(program.layouts["K"], buffers["K"]).to_dense() - expected["K"]).max() < 1e-10


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("K[i|a] = (ia|ia)", "index i stands 3 times"),
        ("K[ia|jb] = (ia|jb) (ia|jb)", "equations, line 3: constant K has a product of integrals"),
        ("K[ac|bd] = vectors", "equations, line 3: vectors has 3 indices, constant K has 4"),
    ],
)
def test_what_is_no_sum_of_integrals_is_refused(definition, message):
    reference = from_mean_field(mean_field("water"))
    equation = parse(f"constant ovov[ia|jb] = (ia|jb)\n\nconstant {definition}")
    spaces = spaces_of(reference)
    with pytest.raises(InputError, match=message):
        plan_program(with_plain_constants(equation, spaces), spaces)


def test_constants_that_are_not_plain_are_never_filled():
    reference = from_mean_field(mean_field("water"))
    equation = parse("constant K[ia|jb] = 2 (ia|jb)")
    with pytest.raises(InputError, match="constant K is not plain"):
        constants(equation, plan_program(equation, spaces_of(reference)), reference, 1)
