"""Upper and lower places of indices, which spin labels need: they follow from the text of an equation.

1. An input has upper rows and lower columns, and so has the Fock matrix; in (pq|rs) p and r are upper, q and
   s are lower.
   New amplitudes are as the old ones.
2. A tensor that is assigned takes the places of its letters from its first statement. The factors of a term
   are turned over as a whole, upper for lower, until each summed letter stands upper in one and lower in the
   other.
3. A product of factors that share no letter does not say how they stand to each other: the other terms
   decide, or else the factors are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.equations.terms import INTEGRAL, Declaration, Equation, Factor, Solve, Statement, Term
from tilewise.tensor.layout import Form

Places = dict[str, int]
"""Of each letter +1 (upper), -1 (lower), or 0 if it has no spin."""


def inferred_places(equation: Equation) -> dict[str, str]:
    """Of each tensor a sign for each of its indices, such as "++--"."""
    found = {name: _declared(d) for name, d in equation.declarations.items()}
    for statement in equation.statements:
        if isinstance(statement, Solve):
            found[statement.new] = found[statement.amplitude.name]
            continue
        if statement.accumulate:
            continue
        name = statement.target.name
        if equation.declarations[name].kind in ("intermediate", "formed") and name not in _known(found):
            places = _of_statement(statement, found)
            found[name] = [places[c] for c in statement.target.indices]
    return {name: "".join("-" if s < 0 else "+" for s in signs or []) for name, signs in found.items()}


def _known(found: dict[str, list[int] | None]) -> set[str]:
    return {name for name, signs in found.items() if signs is not None}


def _declared(declaration: Declaration) -> list[int] | None:
    """The places of an input or of what integrals define; None for a tensor whose statement decides."""
    form = declaration.form
    integrals = [f for term in declaration.definition for f in term.factors if f.name == INTEGRAL]
    if integrals:
        places = dict(zip(integrals[0].indices, (1, -1, 1, -1), strict=True))
        return [places[c] for c in form.letters]
    if declaration.kind not in ("input", "constant") and not declaration.definition:
        return None
    if len(form.rows) == 2 and len(form.cols) == 1 and declaration.definition:  # vectors[pq|x]
        return [1, -1, 0]  # x has no spin
    return _plain(form)


def _plain(form: Form) -> list[int]:
    return [1] * len(form.rows) + [-1] * len(form.cols)


def _of_statement(statement: Statement, found: dict[str, list[int] | None]) -> Places:
    """The places of the target's letters, by the first term that leaves no doubt."""
    terms = [_of_term(term, statement.target, found) for term in statement.terms]
    certain = [places for places, connected in terms if connected]
    return certain[0] if certain else terms[0][0]


def _of_term(term: Term, target: Factor, found: dict[str, list[int] | None]) -> tuple[Places, bool]:
    """Places of all letters of the target, and whether the factors hang together."""
    turned = [0] * len(term.factors)
    pieces = 0
    for start in range(len(turned)):
        if turned[start]:
            continue
        pieces += 1
        turned[start] = 1
        waiting = [start]
        while waiting:
            k = waiting.pop()
            for other, relation in _meeting(k, term.factors, target, found):
                if not turned[other]:
                    turned[other] = relation * turned[k]
                    waiting.append(other)
    places: Places = {}
    for factor, turn in zip(term.factors, turned, strict=True):
        for letter, sign in zip(factor.indices, found[factor.name] or [], strict=True):
            places.setdefault(letter, turn * sign)
    return {c: places.get(c, 1) for c in target.indices}, pieces == 1


def _meeting(
    k: int, factors: tuple[Factor, ...], target: Factor, found: dict[str, list[int] | None]
) -> Iterator[tuple[int, int]]:
    """Factors that share a letter with one of them, and whether they stand as it does or turned over."""
    own = dict(zip(factors[k].indices, found[factors[k].name] or [], strict=True))
    for other, factor in enumerate(factors):
        if other == k:
            continue
        for letter, sign in zip(factor.indices, found[factor.name] or [], strict=True):
            if own.get(letter) and sign:
                wanted = 1 if letter in target.indices else -1
                yield other, wanted * own[letter] * sign
