"""`tilewise.contract`: one einsum-like expression on user tensors, planned and run like a method's."""

from __future__ import annotations

import re

from tilewise.arguments import number, plain_text
from tilewise.config import resolve_threads
from tilewise.equations.planner import plan_statements
from tilewise.equations.program import Program
from tilewise.equations.terms import Factor, Statement, Term
from tilewise.errors import InputError
from tilewise.execute.once import run_once
from tilewise.schedule import Policy, policy_named
from tilewise.schedule.policies import DEFAULT_POLICY
from tilewise.tensor import Layout, Tensor
from tilewise.tensor.layout import Form


def contract(
    expression: str,
    *tensors: Tensor,
    alpha: float = 1.0,
    threads: int | None = None,
    policy: str | Policy = DEFAULT_POLICY,
    executor: str = "threads",
) -> Tensor:
    """Contracts one or two tensors: `contract("ijcd,abcd->ijab", A, B)`.

    Letters name the indices of each tensor, rows then columns. The result may be given a form with a
    bar and packings (`->ab+-|ij+-`), which must hold the result's symmetry; without a bar, what comes
    from the first tensor makes the rows if it stands in front, else the first half of the letters do.
    """
    program, factors, layout = _plan(expression, tensors, number("alpha", alpha))
    inputs = {factor.name: tensor for factor, tensor in zip(factors, tensors, strict=True)}
    workers = resolve_threads(threads)
    chosen = policy_named(policy)
    plain_text("executor", executor)
    buffers = run_once(program, inputs, policy=chosen, workers=workers, executor=executor)
    return Tensor(layout, buffers["C"], expression)


def _plan(expression: str, tensors: tuple[Tensor, ...], alpha: float) -> tuple[Program, list[Factor], Layout]:
    plain = plain_text("expression", expression).replace(" ", "")
    match = re.fullmatch(r"([A-Za-z]*)(?:,([A-Za-z]*))?->([A-Za-z|+-]*)", plain)
    if not match:
        raise InputError(f"expression '{expression}': expected one like 'ijcd,abcd->ijab'")
    letters = [group for group in match.groups()[:2] if group is not None]
    if len(letters) != len(tensors):
        raise InputError(f"expression '{expression}' names {len(letters)} tensors, {len(tensors)} are given")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise InputError(f"expression '{expression}': expected a Tensor, not {type(tensor).__name__}")
    factors, layouts = [], {}
    for name, indices, tensor in zip("AB", letters, tensors, strict=False):
        if len(indices) != tensor.layout.rank:
            raise InputError(
                f"expression '{expression}': {indices} has {len(indices)} letters for a tensor of rank "
                f"{tensor.layout.rank}"
            )
        factors.append(Factor(name, indices))
        layouts[name] = tensor.layout
    form = _result_form(match[3], letters)
    unknown = set(form.letters) - set("".join(letters))
    if unknown or len(set(form.letters)) != len(form.letters):
        raise InputError(f"expression '{expression}': the result must name letters of the tensors, each once")
    spaces = {c: s for f in factors for c, s in zip(f.indices, layouts[f.name].spaces, strict=True)}
    signs = _result_signs(form.letters, factors, layouts)
    layouts["C"] = Layout.parse(str(form), spaces, signs)
    result = Factor("C", form.letters)
    statement = Statement(result, False, (Term(alpha, tuple(factors)),))
    kinds = {"A": "input", "B": "input", "C": "intermediate"}
    return plan_statements((statement,), layouts, kinds), factors, layouts["C"]


def _result_form(text: str, letters: list[str]) -> Form:
    if "|" in text or "+" in text or "-" in text:
        return Form.parse(text)
    own = sum(c in letters[0] for c in text)
    split = own if len(letters) == 2 and all(c in letters[0] for c in text[:own]) else (len(text) + 1) // 2
    return Form(text[:split], text[split:])


def _result_signs(result: str, factors: list[Factor], layouts: dict[str, Layout]) -> str:
    """Upper or lower place of each index of the result: as in its tensor, the second tensor turned
    round if that lets the summed indices meet upper with lower."""
    signs = dict(zip(factors[0].indices, layouts["A"].signs, strict=True))
    if len(factors) == 2:
        other = dict(zip(factors[1].indices, layouts["B"].signs, strict=True))
        summed = [c for c in other if c in signs and c not in result]
        flip = -signs[summed[0]] * other[summed[0]] if summed else 1
        signs |= {c: flip * s for c, s in other.items() if c not in signs}
    return "".join("+" if signs[c] > 0 else "-" for c in result)
