"""The text form of equations: what is read, and which line an error names."""

import pytest

from tilewise.equations import Factor, Statement, Term, parse
from tilewise.equations.ccsd import CCSD
from tilewise.equations.terms import INTEGRAL, Solve
from tilewise.errors import InputError

HEAD = """
input T[ab+-|ij+-]   # the doubles
input t[i|a]
constant K[ab+-|ij+-] = (ia|jb)
"""  # four lines


def test_declarations_keep_forms_kinds_and_definitions():
    equation = parse(HEAD + "constant q[l|c] = 2 (ii|lc) - 1/2 (li|ic)\n")
    declarations = equation.declarations
    assert [d.kind for d in declarations.values()] == ["input", "input", "constant", "constant"]
    assert str(declarations["T"].form) == "ab+-|ij+-" and str(declarations["t"].form) == "i|a"
    assert declarations["K"].definition == (Term(1.0, (Factor(INTEGRAL, "iajb"),)),)
    assert [t.coefficient for t in declarations["q"].definition] == [2.0, -0.5]
    assert equation.statements == ()


def test_statements_have_signed_coefficients_and_continue_over_indented_lines():
    equation = parse(
        HEAD + "R[ab+-|ij+-] = - T[ab|ij] + 2 1/4 K[ab|ij]  # first\n    # a comment\n    - t[i|a] t[j|b]\n"
        "R[ab|ij] -= 3/2 T[ba|ji]\nx'[] = T[ab|ij] K[ab|ij]\n"
    )
    first, second, third = equation.statements
    assert not first.accumulate and second.accumulate
    assert [t.coefficient for t in first.terms] == [-1.0, 0.5, -1.0]
    assert first.terms[2].factors == (Factor("t", "ia"), Factor("t", "jb"))
    assert second == Statement(Factor("R", "abij"), True, (Term(-1.5, (Factor("T", "baji"),)),))
    assert third.target == Factor("x'", "")
    assert equation.declarations["R"].kind == "intermediate"
    assert str(equation.declarations["R"].form) == "ab+-|ij+-"


def test_solve_lines_give_the_sign_of_each_energy():
    equation = parse(HEAD + "R[ab|ij] = K[ab|ij]\nsolve T[ab|ij] : R[ab|ij] / (i + j - a - b)\n")
    solve = equation.statements[-1]
    assert solve == Solve(Factor("T", "abij"), Factor("R", "abij"), {"i": 1, "j": 1, "a": -1, "b": -1})


def test_what_follows_a_solve_line_may_read_the_new_amplitudes_and_not_assign_them():
    solve = "R[ab|ij] = K[ab|ij]\nsolve T[ab|ij] : R[ab|ij] / (i + j - a - b)\n"
    equation = parse(HEAD + solve + "S[ab|ij] = T.new[ab|ij] - T[ab|ij]\n")
    assert [f.name for term in equation.statements[-1].terms for f in term.factors] == ["T.new", "T"]
    assert equation.declarations["T.new"].form == equation.declarations["T"].form
    for line, message in (
        ("S[ab|ij] = t.new[a|i]", "t.new is used before"),
        ("T.new[ab|ij] = T[ab|ij]", "neither a declaration nor a statement"),
        ("solve T.new[ab|ij] : R[ab|ij] / (i + j - a - b)", "T.new is made of T, which has a solve line"),
    ):
        with pytest.raises(InputError, match=f"equations, line 7: .*{message}"):
            parse(HEAD + solve + line + "\n")


def test_an_equation_prints_as_text_that_can_be_read_again():
    equation = parse(CCSD)
    declared = [line for line in CCSD.splitlines() if line.startswith(("input", "constant"))]
    forms = {n: d.form for n, d in equation.declarations.items() if d.kind == "intermediate"}
    again, seen = list(declared), set()
    for statement in equation.statements:
        line = str(statement)
        name = getattr(statement, "target", Factor("", "")).name
        if name in forms and name not in seen:  # the form stands where a tensor is made
            seen.add(name)
            form = str(forms[name])
            if sorted(forms[name].letters) == sorted(statement.target.indices):
                line = f"{name}[{form}]" + line[line.index("]") + 1 :]
        again.append(line)
    assert parse("\n".join(again)) == equation


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("input T[ab|ij]", "T is declared twice"),
        ("input S", "'S': expected a tensor such as"),
        ("input S[a|i] = (ia|jb)", "a constant needs a definition, an input has none"),
        ("constant S[a|i]", "a constant needs a definition, an input has none"),
        ("input S[a|b|c]", r"form 'a\|b\|c': expected rows\|columns"),
        ("hello", "'hello' is neither a declaration nor a statement"),
        ("R[i|a] = t[i|a] *", "cannot read '\\*'"),
        ("R[i|a] = 2", "'2' ends without a tensor"),
        ("R[i|a] = t[i|a] +", "ends without a tensor"),
        ("R[i|a] = s[i|a]", "s is used before it is declared or assigned"),
        ("R[i|a] += t[i|a]", "R is accumulated before it is assigned"),
        ("t[i|a] = t[i|a]", "t is an input and cannot be assigned"),
        ("K[ab|ij] = T[ab|ij]", "K is a.* constant and cannot be assigned"),
        ("R[i|a] = T[ia|j]", r"T has 4 indices, not 3 as in \[iaj\]"),
        ("R[i|i] = T[ab|ii]", r"R\[i\|i\] is a diagonal, so \+= or -= must follow: = would leave the rest"),
        ("R[i|b] = t[i|a]", r"index b of R\[i\|b\] is missing in a term on the right"),
        ("R[i|a] = (ia|jb)", "integrals, fock and vectors stand in definitions of constants alone"),
        ("R[i|a] = fock", "integrals, fock and vectors stand in definitions of constants alone"),
        ("solve T[ab|ij] : R[ab|ij] / (i + j - a - b)", "R is used before"),
        ("solve T[ab|ij] : K[ab|ij] (i + j)", "expected solve T"),
        ("solve T[ab|ij] : K[ab|ij] / (i + j - a)", r"the denominator \(i \+ j - a\) must name each of abij"),
        ("solve T[ab|ij] : K[ab|ji] / (i + j - a - b)", "must have the same indices"),
        ("solve T[ab|ij] : t[i|a] / (i - a)", "must have the same indices"),
    ],
)
def test_a_wrong_line_is_named_with_the_reason(line, message):
    with pytest.raises(InputError, match=f"equations, line 5: .*{message}"):
        parse(HEAD + line + "\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("P[ia|ib] = S[ia|ib]", r"P\[ia\|ib\] is a diagonal, so \+= or -= must follow"),
        ("R[ia|ib] = S[ia|ib]", r"R\[ia\|ib\] is a diagonal, so \+= or -= must follow"),
        ("R[ii|ib] += t[i|b]", r"index i stands 3 times in R\[ii\|ib\]: on a diagonal it stands once in"),
        ("R[ii|ab] += S[ja|jb]", r"index i stands 2 times in R\[ii\|ab\]: on a diagonal it stands once in"),
        ("R[iiab] += S[ja|jb]", r"index i stands 2 times in R\[iiab\]: on a diagonal it stands once in"),
        ("R[ab|jj] -= S[ia|ib]", r"index j stands 2 times in R\[ab\|jj\]: on a diagonal it stands once in"),
        ("Q[ij|il] += S[ja|la]", r"index i stands twice in Q\[ij\|il\]: a tensor that is packed has no diag"),
        ("R[ia|ib] += t[i|a]", r"index b of R\[ia\|ib\] is missing in a term on the right"),
    ],
)
def test_a_mistake_on_a_diagonal_is_named(line, message):
    head = HEAD + "input S[ia|jb]\nR[ia|jb] = S[ia|jb]\nQ[ij|kl+-] = S[ia|ka] S[jb|lb]\n"
    with pytest.raises(InputError, match=f"equations, line 8: {message}"):
        parse(head + line + "\n")


def test_an_index_twice_on_the_left_need_not_stand_on_the_right():
    equation = parse("input E[a|b]\ninput S[ia|jb]\nR[ia|jb] = S[ia|jb]\nR[ia|ib] -= 1/2 E[a|b]\n")
    assert equation.statements[-1] == Statement(
        Factor("R", "iaib"), True, (Term(-0.5, (Factor("E", "ab"),)),)
    )


def test_an_error_in_a_continued_statement_names_its_first_line():
    with pytest.raises(InputError, match="equations, line 6: s is used before"):
        parse(HEAD + "\nR[i|a] = t[i|a]\n    + 2 t[i|a]\n    + s[i|a]\n")


def test_a_repeated_energy_in_a_denominator_is_refused():
    with pytest.raises(InputError, match="line 5: the denominator"):
        parse(HEAD + "solve T[ab|ij] : K[ab|ij] / (i + i + j - a - b)\n")


@pytest.mark.parametrize(
    "text", ["T[ab|ij] : K[ab|ij] / (i ++ j - a - b)", "T[ab|ij] : K[ab|ij] / (2 i + j - a - b)"]
)
def test_a_denominator_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="line 5: "):
        parse(HEAD + f"solve {text}\n")


@pytest.mark.parametrize(
    "line", ["R[i|a] = 2 - t[i|a]", "R[i|a] = t[i|a] - 3 + t[i|a]", "R[i|a] = t[i|a] - + t[i|a]"]
)
def test_a_number_or_a_sign_without_a_tensor_is_refused_wherever_it_stands(line):
    with pytest.raises(InputError, match="line 5: "):
        parse(HEAD + line + "\n")


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 400, "1/" + "9" * 5000], ids=["long", "large", "small"])
def test_a_number_beyond_all_measure_is_an_input_error(number):
    with pytest.raises(InputError, match=r"line 2: the number .* is too long"):
        parse(f"input t[i|a]\nR[i|a] = {number} t[i|a]")


@pytest.mark.parametrize("line", ["R[i|a] = t[i|a] 1/0", "R[i|a] = 1/0 t[i|a]"])
def test_a_division_by_zero_is_an_input_error(line):
    with pytest.raises(InputError, match="line 5: "):
        parse(HEAD + line + "\n")
