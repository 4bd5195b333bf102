"""Constants of any definition are made of plain ones, and hold what they say."""

import numpy as np
import pytest

from random_programs import random_integrals, run_program
from random_spaces import LETTERS, assert_close
from tilewise import Space, Tensor
from tilewise.equations import parse, plan_program
from tilewise.equations.constants import is_plain, with_plain_constants
from tilewise.equations.dense import dense_constants
from tilewise.errors import InputError

WORLD = {
    LETTERS["o"]: Space.spatial("o", [2, 1, 0, 1], tile=2),
    LETTERS["v"]: Space.spatial("v", [2, 2, 1, 0], tile=2),
}
DEFINITIONS = [
    "K[ab+-|ij+-] = (ia|jb)",
    "K[ab+-|ij+-] = 2 (ia|jb)",
    "V[ab+-|cd+-] = (ac|bd)",
    "V[ab+-||cd+-] = (ac|bd)",
    "A[kb|cd+-] = (kc|bd)",
    "A[kb|cd+-] = (bd|ck)",
    "L[ia|jb] = 2 (ia|jb) - (ib|ja)",
    "J[ia|kc] = (ki|ac)",
    "W[ab-|cd-] = (ac|bd) - (ad|bc)",
    "q[l|c] = 2 (ii|lc) - 1/2 (li|ic)",
    "ooov[lc|ki+] = (lc|ki)",
    "g[a|i] = 3 fock",
    "h[i|a] = fock + 2 (jj|ia)",
]


def fock_of(world, seed=3):
    """A symmetric matrix that keeps the irreps."""
    irreps = np.concatenate([space.irreps for space in world.values()])
    matrix = np.random.default_rng(seed).standard_normal((len(irreps),) * 2)
    return np.where(irreps[:, None] == irreps, matrix + matrix.T, 0.0)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_a_constant_holds_what_its_definition_says(definition):
    equation = parse(f"constant {definition}\n")
    plain = with_plain_constants(equation, WORLD)
    assert all(is_plain(d) for d in plain.declarations.values() if d.kind == "constant")
    eri, starts, fock = random_integrals(WORLD), {"o": 0, "v": 4}, fock_of(WORLD)
    name = definition.partition("[")[0]
    expected = dense_constants(equation, eri, WORLD, starts, fock)[name]
    program = plan_program(plain, WORLD)
    given = dense_constants(plain, eri, WORLD, starts, fock)
    tensors = {n: Tensor.from_dense(x, program.layouts[n]) for n, x in given.items()}
    buffers = {n: t.data for n, t in tensors.items()}
    if program.setup:
        buffers, _, _ = run_program(program, tensors)
    assert_close(Tensor(program.layouts[name], buffers[name]).to_dense(), expected)


def test_definitions_share_the_plain_constants_of_the_text_and_those_of_each_other():
    text = "constant ovov[ia|jb] = (ia|jb)\nconstant K[ab+-|ij+-] = (jb|ia)\nconstant J[ia|kc] = (ki|ac)\n"
    plain = with_plain_constants(parse(text + "constant D[ac|ki] = 2 (ik|ca)\n"), WORLD)
    constants = [name for name, d in plain.declarations.items() if d.kind == "constant"]
    assert sorted(constants) == ["(oo|vv)", "ovov"]
    assert [s.target.name for s in plain.statements] == ["K", "J", "D"]


def test_a_text_of_plain_constants_stays_as_it_is():
    equation = parse("constant ooov[ki+|lc] = (ki|lc)\nconstant f[i|a] = fock\nx[ki|lc] = ooov[ki|lc]\n")
    assert with_plain_constants(equation, WORLD) == equation


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("constant K[ia|jb] = (ia|jb) (kc|kc)", "line 1: constant K has a product of integrals"),
        ("constant f[ia|jb] = fock", "line 1: fock has 2 indices, constant f has 4"),
    ],
)
def test_what_no_integral_is_is_refused_with_its_line(line, message):
    with pytest.raises(InputError, match=message):
        with_plain_constants(parse(line), WORLD)
