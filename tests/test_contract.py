"""`contract` and the sorts and products under it, against numpy.einsum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewise as tw
from random_programs import run_program
from random_spaces import (
    POLICIES,
    RULES,
    SEEDS,
    WORKERS,
    Expression,
    assert_close,
    pair_expressions,
    plan_expression,
    result_forms,
    single_expressions,
)
from tilewise import Layout, Space, Tensor, contract, policies
from tilewise.errors import InputError
from tilewise.execute.once import run_once
from tilewise.inspect import PanelRule


def check_in_both_executors(data, expression):
    """Any valid form of the result, any policy, panels and workers; serial twins and native threads."""
    alpha = data.draw(st.sampled_from([1.0, -0.5, 2.0]), label="alpha")
    dense = alpha * expression.dense()
    form = data.draw(result_forms(expression, dense), label="form")
    rule, policy = data.draw(st.sampled_from(RULES), label="rule"), data.draw(POLICIES, label="policy")
    program, inputs = plan_expression(expression, form, alpha)
    for executor, workers in (("serial", 1), ("threads", data.draw(WORKERS, label="workers"))):
        buffers, scalars, _ = run_program(
            program, inputs, policy=policy, workers=workers, executor=executor, rule=rule
        )
        if "C" in scalars:
            assert_close(scalars["C"], dense)
        else:
            assert_close(Tensor(program.layouts["C"], buffers["C"]).to_dense(), dense)
        for name, tensor in inputs.items():
            assert np.array_equal(buffers[name], tensor.data), "an input was changed"


@settings(max_examples=50)
@given(st.data(), single_expressions(traces=(0,)))
def test_sorts_between_any_two_matricizations_are_transposes(data, expression):
    check_in_both_executors(data, expression)


@settings(max_examples=50)
@given(st.data(), single_expressions(traces=(1, 2)))
def test_partial_traces(data, expression):
    check_in_both_executors(data, expression)


@settings(max_examples=60)
@given(st.data(), pair_expressions())
def test_contractions_of_two_tensors(data, expression):
    check_in_both_executors(data, expression)


@settings(max_examples=40)
@given(st.data(), pair_expressions(outer=True))
def test_outer_products(data, expression):
    check_in_both_executors(data, expression)


@settings(max_examples=60)
@given(st.one_of(single_expressions(), pair_expressions(), pair_expressions(outer=True)), POLICIES, WORKERS)
def test_contract_chooses_a_layout_of_its_own(expression, policy, threads):
    result = contract(expression.einsum, *expression.tensors, threads=threads, policy=policy)
    assert_close(result.to_dense(), expression.dense())


# Fixed spaces, large enough to have several tiles, panels and chunks

OCC = Space.spatial("o", [3, 1, 0, 2], tile=2)
VIR = Space.spatial("v", [4, 3, 2, 0], tile=2)
SPATIAL = {"ijklmn": OCC, "abcdef": VIR}
SO = Space.spin_orbital("o", [2, 1], [2, 1], tile=2)
SV = Space.spin_orbital("v", [1, 2], [1, 2], tile=2)
SPIN = {"ijklmn": SO, "abcdef": SV}


def random(form, seed=0, spaces=SPATIAL, signs=None):
    return Tensor.random(Layout.parse(form, spaces, signs), seed)


CASES = [
    ("ijcd,abcd->ijab", ("ij|cd", "ab|cd"), SPATIAL),
    ("ijcd,abcd->ij+-|ab+-", ("ij+-|cd+-", "ab+-|cd+-"), SPATIAL),
    ("abcd,cdij->ab+-|ij+-", ("ab+-|cd+-", "cd+-|ij+-"), SPATIAL),
    ("kbcd,cdij->kb|ij+-", ("kb|cd+-", "cd+-|ij+-"), SPATIAL),
    ("ka,kbij->ab|ij+-", ("k|a", "kb|ij+-"), SPATIAL),
    ("ka,bkij->ba|ij+-", ("k|a", "bk|ij+-"), SPATIAL),
    ("iajb,ikbc->ajck", ("ia|jb", "ik|bc"), SPATIAL),
    ("icjd,abcd->iajb", ("ic|jd", "ab+|cd+"), SPATIAL),
    ("iakb,jakb->i|j", ("ia|kb", "ja|kb"), SPATIAL),
    ("iajb,jb->ia", ("ia|jb", "j|b"), SPATIAL),
    ("iajb,iajb->", ("ia|jb", "ia|jb"), SPATIAL),
    ("abij,abji->", ("ab+-|ij+-", "ab+-|ij+-"), SPATIAL),
    ("iajb,jbia->", ("ia|jb", "ia|jb"), SPATIAL),
    ("ijkabc,kc->ijab", ("ijk|abc", "k|c"), SPATIAL),
    ("ijkabc,kl->ijlabc", ("ijk|abc", "k|l"), SPATIAL),
    ("ia,ia->ia", ("i|a", "i|a"), SPATIAL),
    ("iajb,bjia->iajb", ("ia|jb", "bj|ia"), SPATIAL),
    ("ijcd,cdab->ij-|ab-", ("ij-|cd-", "cd-|ab-"), SPIN),
    ("ijcd,abcd->ijab", ("ij-|cd-", "ab-|cd-"), SPIN),
    ("ikac,cbkj->iabj", ("ik-|ac-", "cb|kj"), SPIN),
    ("klcd,cdij->kl-|ij-", ("kl-|cd-", "cd-|ij-"), SPIN),
    ("iabj->aibj", ("ia|bj",), SPIN),
    ("ijkabc->cbajik", ("ijk|abc",), SPIN),
]


@pytest.mark.parametrize(("expression", "forms", "spaces"), CASES)
@pytest.mark.parametrize("policy", policies)
def test_known_expressions_under_every_policy(expression, forms, spaces, policy):
    tensors = [random(form, seed, spaces) for seed, form in enumerate(forms)]
    plain = "".join(c for c in expression.replace("->", ">") if c not in "|+-").replace(">", "->")
    expected = np.einsum(plain, *(t.to_dense() for t in tensors))
    for threads in (1, 2, 3, 4):
        found = contract(expression, *tensors, alpha=-0.5, policy=policy, threads=threads)
        assert_close(found.to_dense(), -0.5 * expected)


@pytest.mark.parametrize(("expression", "forms", "spaces"), CASES)
def test_known_expressions_with_the_serial_twins(expression, forms, spaces):
    tensors = [random(form, seed, spaces) for seed, form in enumerate(forms)]
    plain = "".join(c for c in expression.replace("->", ">") if c not in "|+-").replace(">", "->")
    found = contract(expression, *tensors, executor="serial")
    assert_close(found.to_dense(), np.einsum(plain, *(t.to_dense() for t in tensors)))


@pytest.mark.parametrize("rule", [PanelRule(1, 1), PanelRule(2, 3), PanelRule(16, 16), PanelRule(10**6, 1)])
def test_the_result_does_not_depend_on_the_panels(rule):
    tensors = (random("ij+-|cd+-"), random("ab|cd", 1))
    expression = Expression(("ijcd", "abcd"), "aibj", tensors, SPATIAL, dict.fromkeys("aibj", "+"))
    program, inputs = plan_expression(expression, "ai|bj")
    buffers = run_once(program, inputs, policy=policies["lpt"], workers=2, rule=rule)
    assert_close(Tensor(program.layouts["C"], buffers["C"]).to_dense(), expression.dense())


LARGE = {"ijkl": Space.spatial("o", [9, 2], tile=9), "abcd": Space.spatial("v", [10, 3], tile=10)}


@pytest.mark.parametrize("source", ["ij|ab", "ij+-|ab+-", "ij-|ab+", "ij+|ab-", "i|jab", "|ijab", "ijab|"])
@pytest.mark.parametrize("target", ["ijab", "ia|jb", "ba+-|ij", "ij|ba+-", "|abij", "baji|", "j|bai"])
def test_blocks_larger_than_a_chunk_are_sorted_piece_by_piece(source, target):
    tensor = random(source, 3, LARGE)
    letters = "".join(c for c in target if c.isalpha())
    found = contract(f"ijab->{target}", tensor, threads=2)
    assert_close(found.to_dense(), np.einsum(f"ijab->{letters}", tensor.to_dense()))


@pytest.mark.parametrize("packing", ["+", "-", "+-"])
def test_large_packed_pairs_stay_packed(packing):
    tensor = random(f"ij{packing}|ab{packing}", 3, LARGE)
    for target in (f"ji{packing}|ba{packing}", f"ab{packing}|ij{packing}", f"ba{packing}|ij{packing}"):
        letters = "".join(c for c in target if c.isalpha())
        found = contract(f"ijab->{target}", tensor)
        assert_close(found.to_dense(), np.einsum(f"ijab->{letters}", tensor.to_dense()))


# Nothing to do


EVEN, ODD = Space.spatial("x", [2, 0]), Space.spatial("y", [0, 3])
BOTH, NONE = Space.spatial("p", [2, 2]), Space.spatial("z", [0, 0])


def test_tensors_that_have_no_sector_give_zeros():
    spaces = {"i": EVEN, "a": ODD, "j": EVEN, "b": ODD}
    a, b = random("i|a", 0, spaces), random("a|j", 1, spaces)
    assert a.layout.size == 0
    assert_close(contract("ia,aj->ij", a, b).to_dense(), np.zeros((2, 2)))
    assert contract("ia->ai", a).to_dense().shape == (3, 2)


def begins_as_nan(expression, tensors, spaces, executor):
    """Runs an expression whose target begins as NaN, and holds it against einsum."""
    letters, result = expression.split("->")
    case = Expression(tuple(letters.split(",")), result, tensors, spaces, dict.fromkeys(result, "+"))
    half = (len(result) + 1) // 2
    program, inputs = plan_expression(case, result[:half] + "|" + result[half:])
    buffers, scalars, _ = run_program(program, inputs, executor=executor)
    found = scalars["C"] if "C" in scalars else Tensor(program.layouts["C"], buffers["C"]).to_dense()
    assert_close(found, case.dense())


@pytest.mark.parametrize("executor", ["threads", "serial"])
@pytest.mark.parametrize(
    ("expression", "forms"),
    [
        ("xy,xy->xy", ("x|y", "x|y")),
        ("xy,xy->", ("x|y", "x|y")),
        ("xy,pyrs->pxrs", ("x|y", "py|rs")),
        ("xy,yprs->xprs", ("x|y", "yp|rs")),
        ("xy,yp->xp", ("x|y", "y|p")),
        ("xyac,xpac->yp", ("xy|ac", "xp|ac")),
        ("xpac,yxac->py", ("xp|ac", "yx|ac")),
        ("xy,ab->xayb", ("x|y", "a|b")),
        ("xy,ab->xyab", ("x|y", "a|b")),
        ("xy,pq->xypq", ("x|y", "p|q")),
        ("xypp->xy", ("xy|pp",)),
    ],
)
def test_factors_that_symmetry_makes_zero_give_zeros(expression, forms, executor):
    spaces = {"xac": EVEN, "yb": ODD, "pqrs": BOTH}
    tensors = tuple(random(form, seed, spaces) for seed, form in enumerate(forms))
    begins_as_nan(expression, tensors, spaces, executor)


@pytest.mark.parametrize("executor", ["threads", "serial"])
@pytest.mark.parametrize(
    ("expression", "forms"),
    [
        ("ijab,ak->ijkb", ("ij-|ab", "a|k")),
        ("ijab->iajb", ("ij-|ab",)),
        ("ijab,ijcd->abcd", ("ij-|ab", "ij-|cd")),
        ("ijab,ijcd->abcd", ("ij-|ab", "ij|cd")),
    ],
)
def test_an_antisymmetric_pair_of_one_orbital_is_zero(expression, forms, executor):
    spaces = {"ijkl": Space.spatial("o", [1]), "abcd": Space.spatial("v", [2])}
    tensors = [random(form, seed, spaces) for seed, form in enumerate(forms)]
    found = contract(expression, *tensors, executor=executor)
    assert_close(found.to_dense(), np.einsum(expression, *(t.to_dense() for t in tensors)))


@pytest.mark.parametrize("executor", ["threads", "serial"])
@pytest.mark.parametrize(
    ("expression", "forms"),
    [
        ("pz,zq->pq", ("p|z", "z|q")),
        ("pz,zqrs->pqrs", ("p|z", "zq|rs")),
        ("pz,qzrs->qprs", ("p|z", "qz|rs")),
        ("pzrs,zqrs->pq", ("pz|rs", "zq|rs")),
        ("pzqz->pq", ("pz|qz",)),
        ("pz->zp", ("p|z",)),
        ("zp,pq->zq", ("z|p", "p|q")),
        ("pz,pz->", ("p|z", "p|z")),
        ("pq,zz->pq", ("p|q", "z|z")),
    ],
)
def test_sums_over_an_empty_space_overwrite_their_target_with_zeros(expression, forms, executor):
    spaces = {"pqrs": BOTH, "z": NONE}
    tensors = tuple(random(form, seed, spaces) for seed, form in enumerate(forms))
    begins_as_nan(expression, tensors, spaces, executor)


# Wrong expressions


@pytest.mark.parametrize(
    ("expression", "forms", "message"),
    [
        ("ia,ia->i", ("i|a", "i|a"), "index i stands 3 times"),
        ("ia->i", ("i|a",), "index a stands 1 times"),
        ("ia", ("i|a",), "expected one like 'ijcd,abcd->ijab'"),
        ("ia,jb,kc->iajbkc", ("i|a",), "expected one like"),
        ("ia,jb->iajb", ("i|a",), "names 2 tensors, 1 are given"),
        ("iab->iab", ("i|a",), "iab has 3 letters for a tensor of rank 2"),
        ("ia->ij", ("i|a",), "the result must name letters of the tensors, each once"),
        ("ia->ii", ("i|a",), "the result must name letters of the tensors, each once"),
        ("ia,aj->ij", ("i|a", "i|j"), "index a in .* runs over different spaces"),
        ("ia->ia+", ("i|a",), "needs a pair of indices of one space"),
        ("ia->i|a|", ("i|a",), r"expected rows\|columns"),
        ("iiaabbjj->", (), "names 1 tensors, 0 are given"),
    ],
)
def test_wrong_expressions_are_refused_with_a_reason(expression, forms, message):
    with pytest.raises(InputError, match=message):
        contract(expression, *(random(form) for form in forms))


def test_the_same_letter_over_spaces_with_other_tiles_is_refused():
    a = random("i|j")
    b = random("i|j", 1, {"ij": OCC.tiled(3)})
    with pytest.raises(InputError, match=r"index j .* runs over different spaces: .*tile 2 and .*tile 3"):
        contract("ij,jk->ik", a, b)


def test_indices_that_meet_upper_with_upper_are_refused():
    a, b = random("i|a", 0, SPIN, "++"), random("a|j", 1, SPIN)
    with pytest.raises(InputError, match="upper and lower indices do not match"):
        contract("iiab->ab", random("ij|ab", 0, SPIN))
    assert_close(contract("ia,aj->ij", a, b).to_dense(), a.to_dense() @ b.to_dense())


def test_a_trace_of_three_indices_is_refused_before_anything_runs():
    with pytest.raises(InputError, match="more than 2 indices are summed without a product"):
        contract("ijkijk->", random("ijk|lmn"))


def test_unknown_names_list_the_valid_ones():
    with pytest.raises(InputError, match="unknown policy 'ltp': did you mean lpt"):
        contract("ia->ai", random("i|a"), policy="ltp")
    with pytest.raises(InputError, match="unknown executor 'gpu': valid are threads, serial"):
        contract("ia->ai", random("i|a"), executor="gpu")
    with pytest.raises(InputError, match="threads=0"):
        contract("ia->ai", random("i|a"), threads=0)


@settings(max_examples=5)
@given(SEEDS)
def test_results_do_not_depend_on_policy_executor_or_workers(seed):
    a, b = random("ij+-|cd+-", seed), random("ab+-|cd+-", seed + 1)
    results = [
        contract("ijcd,abcd->iajb", a, b, policy=policy, threads=threads).data
        for policy in policies
        for threads in (1, 3)
    ]
    results.append(contract("ijcd,abcd->iajb", a, b, executor="serial").data)
    for other in results[1:]:
        assert_close(other, results[0])


def test_the_public_names():
    assert set(tw.__all__) >= {"Layout", "Space", "Tensor", "TilewiseError", "contract", "policies"}
