"""Constants of any definition, made of plain ones.

A plain constant is one integral in a form that the integral transformation fills: [pq|rs] = (pq|rs) with
pairs plain or packed `+`, [p|q] = fock, [pq|x] = vectors. Every other definition (coefficients, several
terms, another order of the indices, antisymmetric pairs) becomes a statement on plain constants, done once
before the first iteration: `constant K[ab+-|ij+-] = 2 (ia|jb)` is `constant (ov|ov)[ia|jb] = (ia|jb)` and
`K[ab+-|ij+-] = 2 (ov|ov)[ia|jb]`. Over spin orbitals the two of each pair have the same spin, and nothing
else is stored of a plain constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewise.equations.terms import FOCK, INTEGRAL, VECTORS, Declaration, Equation, Factor, Statement, Term
from tilewise.errors import InputError
from tilewise.spaces import Space
from tilewise.tensor.layout import Form


def with_plain_constants(equation: Equation, spaces: Mapping[str, Space]) -> Equation:
    """The same equation, in which every constant is plain; `spaces` maps letters ("ijkl") to their space."""
    made = _Plain(spaces)
    declarations: dict[str, Declaration] = {}
    statements: list[Statement] = []
    for name, declaration in equation.declarations.items():
        if declaration.kind == "constant" and is_plain(declaration):
            made.known.setdefault(made.key(declaration.form, declaration.definition[0].factors[0].name), name)
    for name, declaration in equation.declarations.items():
        if declaration.kind != "constant" or is_plain(declaration):
            declarations[name] = declaration
            continue
        terms = tuple(made.term(term, declaration) for term in declaration.definition)
        statements.append(Statement(Factor(name, declaration.form.letters), False, terms))
        declarations[name] = replace(declaration, kind="intermediate")  # its definition tells the places
    return Equation(made.declarations | declarations, (*statements, *equation.statements))


def is_plain(declaration: Declaration) -> bool:
    """Whether a constant can be filled as it is declared."""
    form, terms = declaration.form, declaration.definition
    if len(terms) != 1 or len(terms[0].factors) != 1 or terms[0].coefficient != 1.0 or form.half:
        return False
    if not {form.row_packing, form.col_packing} <= {"", "+"} or len(set(form.letters)) != len(form.letters):
        return False
    factor = terms[0].factors[0]
    if factor.name == INTEGRAL:
        pairs = [sorted(factor.indices[:2]), sorted(factor.indices[2:])]
        return sorted(pairs) == sorted([sorted(form.rows), sorted(form.cols)])
    return (len(form.rows), len(form.cols)) == ((1, 1) if factor.name == FOCK else (2, 1))


class _Plain:
    """Plain constants that definitions need, those of the text first."""

    def __init__(self, spaces: Mapping[str, Space]) -> None:
        self.kind = {letter: space.name for letters, space in spaces.items() for letter in letters}
        self.letters = {space.name: letters for letters, space in spaces.items()}
        self.rank = {name: k for k, name in enumerate(dict.fromkeys(self.kind.values()))}
        self.known: dict[tuple[str, ...], str] = {}
        self.declarations: dict[str, Declaration] = {}

    def kinds(self, letters: str) -> str:
        return "".join(self.kind.get(c, c) for c in letters)

    def key(self, form: Form, source: str) -> tuple[str, ...]:
        """Forms with the same key hold the same numbers in the same places."""
        return (source, self.kinds(form.rows), form.row_packing, self.kinds(form.cols), form.col_packing)

    def term(self, term: Term, declaration: Declaration) -> Term:
        """A term of a definition, on a plain constant."""
        if len(term.factors) != 1:
            raise InputError(
                f"equations, line {declaration.line}: constant {declaration.name} has a product of integrals "
                "in its definition; define its factors as constants and multiply them in a statement"
            )
        (factor,) = term.factors
        form, letters = self.form(factor, declaration)
        key = self.key(form, factor.name)
        if key not in self.known:
            kinds = f"{self.kinds(form.rows)}|{self.kinds(form.cols)}"
            name = f"({kinds})" if factor.name == INTEGRAL else f"{factor.name}({kinds})"
            self.known[key] = name
            source = Factor(factor.name, form.letters if factor.name == INTEGRAL else "")
            self.declarations[name] = Declaration(name, form, "constant", (Term(1.0, (source,)),))
        return Term(term.coefficient, (Factor(self.known[key], letters),))

    def form(self, factor: Factor, declaration: Declaration) -> tuple[Form, str]:
        """The plain form of an integral, and the letters of the integral in its order."""
        own = declaration.form.letters
        if factor.name != INTEGRAL:
            indices = 2 if factor.name == FOCK else 3
            rows, cols = own[: indices - 1], own[indices - 1 :]
            if len(own) != indices:
                raise InputError(
                    f"equations, line {declaration.line}: {factor.name} has {indices} indices, constant "
                    f"{declaration.name} has {len(own)}"
                )
            packing = "+" if factor.name == VECTORS and self.alike(rows) else ""
            return Form(*self.unlike(rows, cols), packing), own
        pairs = ["".join(sorted(pair, key=self.place)) for pair in (factor.indices[:2], factor.indices[2:])]
        pairs.sort(key=lambda pair: [self.place(c) for c in pair])
        rows, cols = self.unlike(*pairs)
        row_packing, col_packing = ("+" if self.alike(pair) else "" for pair in pairs)
        return Form(rows, cols, row_packing, col_packing), pairs[0] + pairs[1]

    def place(self, letter: str) -> int:
        return self.rank[self.kind[letter]] if letter in self.kind else len(self.rank)

    def alike(self, pair: str) -> bool:
        return self.kind.get(pair[0]) == self.kind.get(pair[1])

    def unlike(self, rows: str, cols: str) -> tuple[str, str]:
        """The groups of a form, in which no letter stands twice as it does in a trace."""
        used = ""
        for c in rows + cols:
            others = (x for x in self.letters[self.kind[c]] if x not in rows + cols + used)
            used += next(others) if c in used else c
        return used[: len(rows)], used[len(rows) :]
