"""Programs: which operations the planner makes of equations."""

from itertools import product

import numpy as np
import pytest

from random_programs import run_program
from random_spaces import assert_close
from tilewise import Layout, Space, Tensor
from tilewise.equations import (
    Contract,
    Dot,
    Factor,
    RowContract,
    Sort,
    Statement,
    Term,
    evaluate_dense,
    parse,
    plan_program,
)
from tilewise.equations.ccsd import CCSD
from tilewise.equations.planner import plan_statements
from tilewise.equations.program import RowInner
from tilewise.errors import InputError
from tilewise.inspect import PanelRule

SPACES = {
    "ijklmn": Space.spatial("o", [3, 2], tile=2),
    "abcdef": Space.spatial("v", [2, 3], tile=2),
}


def plan(text):
    return plan_program(parse(text), SPACES)


def kinds(program):
    return [op.kind for op in program.operations]


def holds(text, spaces=SPACES):
    """The program of a text gives what the dense oracle gives, by large and by smallest panels."""
    equation = parse(text)
    program = plan_program(equation, spaces)
    inputs = {
        name: Tensor.random(program.layouts[name], seed)
        for seed, (name, kind) in enumerate(program.kinds.items())
        if kind in ("input", "constant")
    }
    expected = evaluate_dense(equation, {name: t.to_dense() for name, t in inputs.items()})
    for executor, rule in product(("serial", "threads"), (PanelRule(), PanelRule(1, 1))):
        buffers, scalars, _ = run_program(program, inputs, executor=executor, rule=rule)
        for name in equation.declarations:
            found = (
                scalars[name] if name in scalars else Tensor(program.layouts[name], buffers[name]).to_dense()
            )
            assert_close(found, expected[name])
    return program


def test_fitting_matricizations_need_no_sort():
    program = holds("input A[ij|cd]\ninput B[cd|ab]\nC[ij|ab] = A[ij|cd] B[cd|ab]")
    assert kinds(program) == ["contract"]
    transposed = holds("input A[cd|ij]\ninput B[ab|cd]\nC[ij|ab] = A[cd|ij] B[ab|cd]")
    (op,) = transposed.operations
    assert isinstance(op, Contract) and op.transpose_a and op.transpose_b
    swapped = holds("input A[ij|cd]\ninput B[cd|ab]\nC[ab|ij] = A[ij|cd] B[cd|ab]")
    assert kinds(swapped) == ["contract"]


def test_packed_pairs_are_contracted_packed():
    program = holds("input A[ij+-|cd+-]\ninput B[cd+-|ab+-]\nC[ij+-|ab+-] = A[ij|cd] B[cd|ab]")
    assert kinds(program) == ["contract"]


def test_one_index_contractions_need_no_sort():
    program = holds("input t[i|c]\ninput B[ca|kd]\nC[ia|kd] = t[i|c] B[ca|kd]\nC[ia|kd] += 2 t[i|c] B[ca|kd]")
    assert [type(op) for op in program.operations] == [RowContract, RowContract]
    program = holds("input t[l|a]\ninput B[il|kc]\nC[ia|kc] = t[l|a] B[il|kc]")
    assert [type(op) for op in program.operations] == [RowContract]
    program = holds("input A[ka|lc]\ninput B[ki|lc]\nr[i|a] = B[ki|lc] A[ka|lc]")
    assert [type(op) for op in program.operations] == [RowInner]


@pytest.mark.parametrize("target", ["xq", "qx"])
@pytest.mark.parametrize("source", ["pq", "qp"])
@pytest.mark.parametrize("matrix", ["x|p", "p|x"])
@pytest.mark.parametrize("size", [3, 24])
def test_one_index_contractions_of_short_and_of_long_rows(target, source, matrix, size):
    spaces = {"xr": Space.spatial("x", [5, 2], tile=3), "pqs": Space.spatial("p", [size, 1], tile=size)}
    program = holds(
        f"input m[{matrix}]\ninput B[{source}|rs]\nC[{target}|rs] = m[{matrix}] B[{source}|rs]\n"
        f"C[{target}|rs] -= 1/2 m[{matrix}] B[{source}|rs]",
        spaces,
    )
    assert [type(op) for op in program.operations] == [RowContract, RowContract]


@pytest.mark.parametrize("left", ["xq", "qx"])
@pytest.mark.parametrize("right", ["yq", "qy"])
def test_inner_products_of_rows(left, right):
    spaces = {"xyr": Space.spatial("x", [4, 2], tile=3), "qs": Space.spatial("q", [5, 1], tile=2)}
    program = holds(
        f"input A[{left}|rs]\ninput B[{right}|rs]\nC[x|y] = A[{left}|rs] B[{right}|rs]\n"
        f"C[x|y] += 2 A[{left}|rs] B[{right}|rs]",
        spaces,
    )
    assert [type(op) for op in program.operations] == [RowInner, RowInner]


def test_blocks_that_meet_nothing_are_assigned_zeros():
    """Irrep 1 of x and y has no partner: C is there, what would be summed into it is not."""
    both, even = Space.spatial("x", [2, 2], tile=1), Space.spatial("q", [2, 0], tile=1)
    spaces = {"xy": both, "pqrs": even}
    program = holds("input A[xq|rs]\ninput B[yq|rs]\nC[x|y] = A[xq|rs] B[yq|rs]", spaces)
    assert [type(op) for op in program.operations] == [RowInner]
    program = holds("input m[x|p]\ninput B[pq|yz]\nC[xq|yz] = m[x|p] B[pq|yz]", spaces | {"z": both})
    assert [type(op) for op in program.operations] == [RowContract]


def test_a_pass_that_assigns_one_target_and_adds_to_another_writes_every_block_of_the_first():
    program = holds(
        "input t[i|a]\ninput A[ia|jb]\nC[ia|jb] = 2 A[jb|ia]\nD[ij|ab] = A[ia|jb]\n"
        "U[ia|jb] = t[i|b] t[j|a]\nC[ia|jb] += t[i|b] t[j|a]"
    )
    assert program.operations[-1].outputs == {"U": False, "C": True}


def test_a_sorted_form_that_two_terms_need_is_made_once():
    program = holds(
        "input A[ij|ab]\ninput B[kb|jc]\ninput D[kb|jc]\n"
        "C[ia|kc] = A[ij|ab] B[kb|jc]\nC[ia|kc] += 1/2 A[ij|ab] D[kb|jc]"
    )
    sorts_of_a = [op for op in program.operations if isinstance(op, Sort) and op.reads == ("A",)]
    assert len(sorts_of_a) == 1
    assert kinds(program).count("contract") == 2


def test_a_sorted_form_is_shared_whatever_the_letters_are_called():
    program = holds(
        "input A[ij|ab]\ninput B[kb|jc]\nC[ia|kc] = A[ij|ab] B[kb|jc]\nE[lb|md] = A[lk|bc] B[mc|kd]"
    )
    assert sum(op.reads == ("A",) for op in program.operations if isinstance(op, Sort)) == 1


def test_a_sorted_form_is_made_again_when_its_tensor_has_changed():
    program = holds(
        "input A[ij|ab]\ninput B[kb|jc]\nT[ij|ab] = 2 A[ij|ab]\n"
        "C[ia|kc] = T[ij|ab] B[kb|jc]\nT[ij|ab] += A[ij|ab]\nC[ia|kc] += T[ij|ab] B[kb|jc]"
    )
    sorts_of_t = [op for op in program.operations if isinstance(op, Sort) and op.reads == ("T",)]
    assert len(sorts_of_t) == 2


def test_what_depends_on_constants_alone_is_done_once_before_the_first_call():
    program = holds(
        "input t[i|a]\nconstant K[ia|jb] = (ia|jb)\nL[ia|jb] = 2 K[ia|jb] - K[ib|ja]\n"
        "M[ij|ab] = L[ia|jb]\nP[ij|kl] = M[ij|ab] M[kl|ab]\nr[i|a] = L[ia|jb] t[j|b]"
    )
    made = {name for op in program.setup for name in op.outputs}
    assert {"L", "M", "P"} <= made
    assert all("t" in op.reads or set(op.outputs) & {"r"} or op.reads for op in program.operations)
    assert not {name for op in program.operations for name in op.outputs} & {"L", "M", "P"}
    assert {program.kinds[n] for n in ("L", "M", "P")} == {"derived"} and program.kinds["r"] == "intermediate"


def test_sorted_forms_of_constants_belong_to_the_setup():
    program = holds("input T[jb|kc]\nconstant K[ij|ab] = (ia|jb)\nR[ia|kc] = K[ij|ab] T[jb|kc]")
    assert [op.reads for op in program.setup] == [("K",)]
    assert kinds(program) == ["contract"]


@pytest.mark.parametrize(
    "statements", ["L[i|a] = 2 K[i|a]\nL[i|a] += t[i|a]", "L[i|a] = t[i|a]\nL[i|a] += 2 K[i|a]"]
)
def test_a_tensor_that_ever_takes_an_input_is_not_hoisted(statements):
    program = holds(f"input t[i|a]\nconstant K[i|a] = (ia|jj)\n{statements}\nM[i|a] = L[i|a] + K[i|a]")
    assert not program.setup


def test_ccsd_hoists_its_constants_and_sorts_no_constant_in_an_iteration():
    program = plan(CCSD)
    assert {"Kx", "L"} <= {name for op in program.setup for name in op.outputs}
    fixed = {name for name, kind in program.kinds.items() if kind in ("constant", "derived")}
    for op in program.operations:
        if isinstance(op, Sort) and not op.elementwise:  # adding a constant in its own order is no sort
            assert set(op.reads) - fixed, f"{op.text} could be done once"
    for op in program.setup:
        assert set(op.reads) <= fixed


def test_energies_are_dots_and_both_orders_of_a_pair_share_one():
    program = holds(
        "input T[ab+-|ij+-]\ninput K[ab+-|ij+-]\n"
        "e[] = 2 T[ab|ij] K[ab|ij] - T[ab|ij] K[ab|ji] + T[ba|ij] K[ab|ji]"
    )
    assert [type(op) for op in program.operations] == [Dot]
    assert program.scalars == ("e",)


def test_statements_of_one_layout_share_a_pass():
    program = holds("input T[ab+-|ij+-]\nU[ia|jb] = 2 T[ab|ij] - T[ba|ij]\nX[ia|jb] = T[ba|ij]")
    (op,) = program.operations
    assert op.targets == ("U", "X")


def test_a_statement_that_reads_the_one_before_is_not_joined_to_it():
    program = holds("input T[ab+-|ij+-]\nU[ia|jb] = 2 T[ab|ij]\nX[ia|jb] = U[ib|ja]")
    assert len(program.operations) == 2
    holds("input A[i|j]\nB[i|j] = A[i|j]\nC[i|j] = B[j|i]\nB[i|j] = 2 A[j|i]\nD[i|j] = B[i|j]")


def test_products_with_a_unit_matrix_and_elementwise_products():
    holds("input A[i|k]\ninput E[a|c]\nW[ia|kc] = A[i|k] E[a|c]\nW[ia|kc] += 1/2 A[k|i] E[c|a]")
    holds("input A[ia|jb]\ninput B[jb|ia]\nC[ia|jb] = A[ia|jb] B[jb|ia]")
    holds("input t[i|a]\ninput T[ab+-|ij+-]\ntau[ab+-|ij+-] = T[ab|ij] + t[i|a] t[j|b]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("C[i|j] = A[ii|ab] B[ab|ij]", "index i stands 4 times"),
        ("C[ij|ab] = A[ij|ab] A[ij|ab] t[i|a]", "index [ia] stands"),
        ("C[i|j] = A[ij|aa] t[i|a]", "index [ia] stands"),
        ("C[i|a] = A[ii|aa]", "index i stands 3 times"),
    ],
)
def test_terms_that_would_break_the_symmetry_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        plan(f"input A[ij|ab]\ninput B[ab|ij]\ninput t[i|a]\n{text}")


def test_a_letter_without_a_space_is_refused():
    with pytest.raises(InputError, match="no space is given for index x"):
        plan("input A[i|x]")


# Statements on diagonals

DIAGONAL_SPACES = {
    "several tiles": SPACES,
    "an irrep without orbitals": {
        "ijklmn": Space.spatial("o", [3, 0, 2, 1], tile=1),
        "abcdef": Space.spatial("v", [0, 4, 1, 3], tile=3),
    },
    "large tiles": {
        "ijklmn": Space.spatial("o", [9], tile=9),
        "abcdef": Space.spatial("v", [21], tile=21),
    },
    "one orbital": {"ijklmn": Space.spatial("o", [1]), "abcdef": Space.spatial("v", [1])},
    "no orbitals": {"ijklmn": Space.spatial("o", [0, 0]), "abcdef": Space.spatial("v", [2, 1])},
    "spin": {
        "ijklmn": Space("o", ((2, 1), (1, 0)), (1, -1), 1),
        "abcdef": Space("v", ((3, 1), (2, 2)), (1, -1), 2),
    },
}
W = "input A[ia|jb]\ninput E[a|b]\ninput F[i|j]\nW[ia|jb] = A[ia|jb]\nX[ia|jb] = 2 A[ia|jb]\n"


@pytest.mark.parametrize("spaces", DIAGONAL_SPACES.values(), ids=list(DIAGONAL_SPACES))
@pytest.mark.parametrize(
    "statements",
    [
        "W[ia|ib] += 1/2 E[a|b]",
        "W[ia|ja] -= 2 F[j|i]",
        "W[ia|ib] += 1/2 E[a|b]\nX[ia|ib] -= E[a|b] + 3 E[b|a]\nW[ia|ja] += F[j|i]\nX[ia|ja] += -2 F[j|i]",
        "W[ia|ib] += A[ia|ib]\nW[ia|ja] += 2 A[ja|ia]",
        "W[ia|ia] += A[ia|ia] + 2 E[b|b]",
        "W[ia|ib] += 2 A[ja|jb] - A[jc|jc] E[a|b]",
        "V[ai|jb] = A[ia|jb]\nV[ai|ib] += 1/2 E[a|b]\nV[ai|ja] += 1/2 F[j|i]",
        "D[i|j] = F[j|i]\nD[i|i] += E[a|a]\nD[i|i] += 2 F[i|i]\nC[ia|jb] = D[i|j] E[a|b]",
    ],
)
def test_an_index_twice_on_the_left_adds_on_the_diagonal(spaces, statements):
    holds(W + statements, spaces)


def test_products_go_to_a_diagonal_too():
    for spaces in DIAGONAL_SPACES.values():
        holds(W + "W[ia|ib] += 2 E[a|c] E[c|b] + E[a|b]\nX[ia|ia] -= A[jb|kc] A[kc|jb]", spaces)


def test_a_packed_pair_is_read_on_a_diagonal_of_its_own():
    for tile in (1, 2, 3):
        spaces = {"ij": Space.spatial("o", [3, 2], tile=tile)}
        holds("input S[ij+|]\ninput F[i|j]\nD[i|j] = F[i|j]\nD[i|i] += S[ii|]", spaces)


def test_statements_on_one_diagonal_share_a_pass():
    program = plan(W + "W[ia|ib] += E[a|b]\nX[ia|ib] -= E[a|b]\nW[ia|ja] += F[j|i]\nX[ia|ja] -= F[j|i]")
    assert [op.targets for op in program.operations] == [("W", "X")] * 3
    assert [op.letters for op in program.operations] == ["iajb", "iaib", "iaja"]
    assert [op.elementwise for op in program.operations] == [True, False, False]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("W[ia|ib] += E[a|b] F[i|i]", "index i stands 4 times"),
        ("W[ia|ia] += F[i|i]", "index i stands 4 times"),
        ("C[ia|b] = F[i|i] E[a|b]", "index i stands 3 times"),
        ("W[ia|ib] += G[ia|b]", "index i stands 3 times"),
        ("V[ia|bj] = A[ia|jb]\nV[ia|ib] += E[a|b]", "index i in V.* runs over different spaces"),
    ],
)
def test_what_does_not_fit_a_diagonal_is_refused(statement, message):
    with pytest.raises(InputError, match=message):
        plan("input G[ia|b]\n" + W + statement)


def test_a_diagonal_that_would_not_keep_spin_is_refused():
    """(ij|ia) = A(j, a) has spin, unless one index of the diagonal is upper and the other lower."""
    spaces = DIAGONAL_SPACES["spin"]
    upper = Layout.parse("ia|jb", spaces, "+++-")
    layouts = {"E": Layout.parse("a|b", spaces, "+-"), "W": upper}
    statement = Statement(Factor("W", "iaib"), True, (Term(1.0, (Factor("E", "ab"),)),))
    with pytest.raises(InputError, match="upper and lower indices do not match"):
        plan_statements((statement,), layouts, {"E": "input", "W": "intermediate"})


# Statements that are legal and unusual


def test_a_statement_whose_terms_cancel_assigns_zeros():
    holds("input A[i|j]\nB[i|j] = A[i|j]\nB[i|j] = A[j|i] - A[j|i]\nC[i|j] = B[i|j]")


def test_a_zero_coefficient_assigns_zeros():
    holds("input A[i|j]\nB[i|j] = 0 A[i|j]\nC[i|j] = B[i|j] + A[i|j]")


def test_a_scalar_that_is_assigned_twice_keeps_the_second_value():
    holds("input A[i|j]\ninput B[i|j]\ne[] = A[i|j] B[i|j]\ne[] = A[i|j] A[i|j]")


def test_a_scalar_can_be_accumulated():
    holds("input A[i|j]\ninput B[i|j]\ne[] = A[i|j] B[i|j]\ne[] += 2 A[i|j] A[i|j]")
    holds("input A[i|j]\ninput B[j|i]\ne[] = A[i|j] B[j|i]\ne[] += 2 A[i|j] A[i|j]")


def test_a_scalar_can_be_a_factor():
    holds("input A[i|j]\ninput B[i|j]\ne[] = A[i|j] B[i|j]\nC[i|j] = e[] A[i|j]")


def test_a_trace_of_one_tensor_is_a_scalar():
    holds("input A[i|j]\ne[] = A[i|i]")
    holds("input A[ij|kl]\ninput B[i|j]\ne[] = A[ij|ij] + B[i|j] B[i|j]")


@pytest.mark.parametrize(
    "statement",
    ["B[ia|jb] += B[jb|ia]", "B[ia|jb] = B[jb|ia]", "B[ia|jb] += B[ia|kc] A[kc|jb]", "B[ia|jb] = 2 B[ia|jb]"],
)
def test_a_statement_that_reads_its_own_target_is_right_or_refused(statement):
    text = f"input A[ia|jb]\nB[ia|jb] = 2 A[ia|jb]\n{statement}\nC[ia|jb] = B[ia|jb]"
    try:
        equation = parse(text)
        plan_program(equation, SPACES)
    except InputError:
        return
    holds(text)


def test_programs_print_what_is_done_once_and_what_in_every_call():
    text = str(
        plan("input t[i|a]\nconstant K[ia|jb] = (ia|jb)\nL[ia|jb] = K[ib|ja]\nr[i|a] = L[ia|jb] t[j|b]")
    )
    assert "  once  L[iajb]" in text and "contract" in text
    assert len(text.splitlines()) >= 2


def test_bytes_of_a_tensor():
    program = plan("input A[i|j]\nB[i|j] = A[i|j]")
    assert program.bytes_of("A") == 8 * (9 + 4)
    assert np.prod(program.layouts["A"].shape) == 25
