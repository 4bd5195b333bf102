"""Which product a term is as it stands: its factors seen as matrices, and the special products they fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewise.equations.program import FormedContract, RowContract, RowInner
from tilewise.equations.terms import Factor, Statement, Term
from tilewise.errors import InputError
from tilewise.tensor import Compound


@dataclass(frozen=True)
class Operand:
    """A factor seen as a matrix: letters and compound of its two groups."""

    name: str
    rows: str
    cols: str
    row_group: Compound
    col_group: Compound

    def group(self, letters: set[str]) -> tuple[str, Compound, bool] | None:
        """The group with exactly these letters: its order, its compound, and whether it is the columns."""
        if set(self.rows) == letters and len(self.rows) == len(letters):
            return self.rows, self.row_group, False
        if set(self.cols) == letters and len(self.cols) == len(letters):
            return self.cols, self.col_group, True
        return None


def same(a: Compound, b: Compound) -> bool:
    """One index group up to the overall sign of its spin label."""
    if a is b:
        return True
    flipped = tuple(-s for s in b.signs)
    stored = (a.spaces, a.packing, a.one_spin) == (b.spaces, b.packing, b.one_spin)
    return stored and a.signs in (b.signs, flipped)


def _has_all_pairs(group: Compound) -> bool:
    return not group.packing and not group.one_spin


AsMatrix = Callable[[Factor], Operand]


def is_contraction(term: Term, target: Factor) -> bool:
    """Whether a term is a product of two tensors, summed over letters that both have."""
    if len(term.factors) != 2:
        return False
    a, b = (f.indices for f in term.factors)
    summed = (set(a) | set(b)) - set(target.indices)
    plain = len(set(a)) == len(a) and len(set(b)) == len(b)
    batch = set(a) & set(b) & set(target.indices)
    return plain and not batch and bool(summed) and summed <= (set(a) & set(b))


def statement_text(target: Factor, term: Term, accumulate: bool) -> str:
    return f"{target} {'+=' if accumulate else '='} {term}"


def formed_contract(
    target: Factor, term: Term, accumulate: bool, formed: Mapping[str, Statement]
) -> FormedContract | None:
    """C[pq|J] = A[pq|rs] B[rs|J] with A[pq|rs] = v[pr|x] v[qs|x] that is never stored."""
    a, b = term.factors if term.factors[0].name in formed else term.factors[::-1]
    if a.name not in formed:
        return None
    made = formed[a.name]
    fits = a.indices[:2] + b.indices[2:] == target.indices and a.indices[2:] == b.indices[:2]
    if not fits or b.name in formed or not _is_sum_of_vectors(made):
        raise InputError(
            f"{target} = {term}: {a.name} is formed, so it stands in products C[pq|J] = A[pq|rs] B[rs|J] "
            "alone, and is defined as A[pq|rs] = v[pr|x] v[qs|x]"
        )
    alpha = term.coefficient * made.terms[0].coefficient
    vectors = made.terms[0].factors[0].name
    text = statement_text(target, term, accumulate)
    return FormedContract(text, target.name, accumulate, alpha, vectors, b.name)


def _is_sum_of_vectors(made: Statement) -> bool:
    """A[pq|rs] = v[pr|x] v[qs|x], in whatever order."""
    factors = made.terms[0].factors
    if len(made.terms) != 1 or len(made.target.indices) != 4 or len(factors) != 2:
        return False
    p, q, r, s = list(made.target.indices)
    one, other = (f.indices for f in factors)
    return (
        factors[0].name == factors[1].name
        and len(one) == len(other) == 3
        and one[2] == other[2]
        and {frozenset(one[:2]), frozenset(other[:2])} == {frozenset(p + r), frozenset(q + s)}
    )


def row_contract(target: Factor, term: Term, accumulate: bool, as_matrix: AsMatrix) -> RowContract | None:
    """C[xq|J] = m[x|p] B[pq|J]: one index of the rows changes."""
    c = as_matrix(target)
    for matrix, operand in (term.factors, term.factors[::-1]):
        m, b = as_matrix(matrix), as_matrix(operand)
        if len(m.rows) != 1 or len(m.cols) != 1 or len(b.rows) != 2 or len(c.rows) != 2:
            continue
        if not (_has_all_pairs(b.row_group) and _has_all_pairs(c.row_group)) or b.cols != c.cols:
            continue
        if not same(b.col_group, c.col_group):
            continue
        transpose = m.rows not in target.indices
        kept, summed = (m.cols, m.rows) if transpose else (m.rows, m.cols)
        if kept not in c.rows or summed not in b.rows:
            continue
        at, of = c.rows.index(kept), b.rows.index(summed)
        if c.rows[1 - at] == b.rows[1 - of]:
            text = statement_text(target, term, accumulate)
            place = (m.name, b.name, transpose, at, of)
            return RowContract(text, c.name, accumulate, term.coefficient, *place)
    return None


def row_inner(target: Factor, term: Term, accumulate: bool, as_matrix: AsMatrix) -> RowInner | None:
    """C[x|y] = A[xq|J] B[qy|J]: all but one index of each factor is summed."""
    c = as_matrix(target)
    if len(c.rows) != 1 or len(c.cols) != 1:
        return None
    a, b = (as_matrix(f) for f in term.factors)
    if c.rows in b.rows:
        a, b = b, a
    if len(a.rows) != 2 or len(b.rows) != 2 or a.cols != b.cols or not a.cols:
        return None
    if c.rows not in a.rows or c.cols not in b.rows:
        return None
    if not (_has_all_pairs(a.row_group) and _has_all_pairs(b.row_group)):
        return None
    if not same(a.col_group, b.col_group):
        return None
    positions = a.rows.index(c.rows), b.rows.index(c.cols)
    text = statement_text(target, term, accumulate)
    return RowInner(text, c.name, accumulate, term.coefficient, a.name, b.name, *positions)
