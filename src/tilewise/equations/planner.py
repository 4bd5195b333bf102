"""From equations to programs: which terms are matrix products as they stand, which need sorts.

1. A term with two factors is a contraction. If the stored matricizations fit, it becomes a Contract;
   if one index alone changes, a RowContract or RowInner; otherwise the factors are sorted first, into
   forms that are kept and shared by later terms, and the result is sorted into its target.
2. All other terms (permutations, packing, products without a sum, traces) are reads of a Sort.
   Consecutive statements with nothing but reads and equal target layouts share one pass.
3. What depends on constants alone is done once, before the first call.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewise.equations.checks import check_stored_forms, refuse_own_target
from tilewise.equations.constants import is_plain
from tilewise.equations.matching import (
    Operand,
    formed_contract,
    is_contraction,
    row_contract,
    row_inner,
    same,
    statement_text,
)
from tilewise.equations.places import inferred_places
from tilewise.equations.program import (
    Contract,
    Dot,
    Operation,
    Program,
    Read,
    Sort,
    Update,
)
from tilewise.equations.signs import check_letters
from tilewise.equations.terms import Equation, Factor, Solve, Statement, Term
from tilewise.spaces import Space
from tilewise.tensor import Compound, Layout


def plan_program(equation: Equation, spaces: Mapping[str, Space]) -> Program:
    """The program of an equation over the given spaces (letters to space)."""
    # Equal groups and layouts are one object each, for the sake of the tables that they keep.
    by_letter = {letter: space for letters, space in spaces.items() for letter in letters}
    first_letter: dict[Space, str] = {}
    alike = str.maketrans({c: first_letter.setdefault(space, c) for c, space in by_letter.items()})
    groups: dict[Compound, Compound] = {}
    known: dict[tuple[str, str | None, bool], Layout] = {}
    layouts = {}
    has_spin = any(space.spins != (0,) for space in spaces.values())
    places = inferred_places(equation) if has_spin else {}
    for name, declaration in equation.declarations.items():
        one_spin = has_spin and declaration.kind == "constant" and is_plain(declaration)
        form = (str(declaration.form).translate(alike), places.get(name), one_spin)
        if form not in known:
            layout = Layout.of(declaration.form, by_letter, places.get(name), one_spin)
            rows, cols = (groups.setdefault(group, group) for group in (layout.rows, layout.cols))
            known[form] = Layout(rows, cols, layout.half)
        layouts[name] = known[form]
    kinds = {name: declaration.kind for name, declaration in equation.declarations.items()}
    return plan_statements(equation.statements, layouts, kinds)


def plan_statements(
    statements: tuple[Statement | Solve, ...], layouts: Mapping[str, Layout], kinds: Mapping[str, str]
) -> Program:
    """The program of statements on tensors of given layouts."""
    planner = _Planner(dict(layouts), _with_derived(statements, kinds))
    planner.stored_scalars = _stored_scalars(planner, statements)
    pending: list[Statement] = []
    for statement in statements:
        refuse_own_target(statement)
        if isinstance(statement, Statement) and kinds[statement.target.name] == "formed":
            planner.formed[statement.target.name] = statement
            continue
        if isinstance(statement, Statement):
            check_letters(statement.target, statement.terms, layouts)
        if isinstance(statement, Statement) and planner.joins(pending, statement):
            pending.append(statement)
            continue
        planner.sorts(pending)
        pending = []
        if isinstance(statement, Solve):
            planner.solve(statement)
        elif planner.only_reads(statement):
            pending = [statement]
        else:
            planner.statement(statement)
    planner.sorts(pending)
    return planner.program()


def _stored_scalars(planner: _Planner, statements: tuple[Statement | Solve, ...]) -> set[str]:
    """Scalars that need a place in memory: read by others, assigned twice, or not by dots alone."""
    own = [s for s in statements if isinstance(s, Statement)]
    read = {f.name for s in own for term in s.terms for f in term.factors}
    scalars = [s for s in own if not s.target.indices]
    return {
        s.target.name
        for k, s in enumerate(scalars)
        if s.target.name in read
        or not all(planner.dot_factors(term) for term in s.terms)
        or (not s.accumulate and any(t.target.name == s.target.name for t in scalars[:k]))
    }


def _with_derived(statements: tuple[Statement | Solve, ...], kinds: Mapping[str, str]) -> dict[str, str]:
    """The kinds, with `derived` for tensors that are made of constants in all of their statements."""
    known = dict(kinds)
    made = [
        (s.target.name, {f.name for term in s.terms for f in term.factors})
        for s in statements
        if isinstance(s, Statement) and kinds[s.target.name] != "formed"
    ]
    while True:
        changing = {
            target for target, read in made if any(known[n] not in ("constant", "derived") for n in read)
        }
        new = {target for target, _ in made if known[target] != "derived" and target not in changing}
        if not new:
            return known
        known |= dict.fromkeys(new, "derived")


class _Planner:
    def __init__(self, layouts: dict[str, Layout], kinds: dict[str, str]) -> None:
        self.layouts = layouts
        self.kinds = kinds
        self.setup: list[Operation] = []
        self.operations: list[Operation] = []
        self.scalars: list[str] = []
        self.stored_scalars: set[str] = set()
        self.formed: dict[str, Statement] = {}
        self.sorted_forms: dict[str, dict[tuple[str, str, str], str]] = {}  # of each tensor

    def program(self) -> Program:
        left_out = {*self.scalars, *self.formed}
        stored = {n: layout for n, layout in self.layouts.items() if n not in left_out}
        for op in (*self.setup, *self.operations):
            check_stored_forms(op, stored)
        return Program(stored, self.kinds, tuple(self.scalars), tuple(self.setup), tuple(self.operations))

    # Emission

    def emit(self, operation: Operation) -> None:
        """Appends an operation: to the setup if what it makes depends on constants alone."""
        once = bool(operation.outputs) and all(self.kinds.get(n) == "derived" for n in operation.outputs)
        (self.setup if once else self.operations).append(operation)
        for name in operation.outputs:
            self.sorted_forms.pop(name, None)

    def kind_of(self, *sources: str) -> str:
        """The kind of a tensor made of these."""
        fixed = all(self.kinds[name] in ("constant", "derived") for name in sources)
        return "derived" if fixed else "intermediate"

    def operand(self, factor: Factor) -> Operand:
        layout = self.layouts[factor.name]
        n = layout.rows.rank
        return Operand(factor.name, factor.indices[:n], factor.indices[n:], layout.rows, layout.cols)

    # Statements

    def joins(self, pending: list[Statement], statement: Statement) -> bool:
        """Whether a statement can share the pass of the pending ones."""
        if not pending or not self.only_reads(statement):
            return False
        first, targets = pending[0].target, {s.target.name for s in pending}
        read = {f.name for term in statement.terms for f in term.factors}
        return (
            statement.target.name not in targets
            and not read & targets
            and statement.target.indices == first.indices
            and self.layouts[statement.target.name] == self.layouts[first.name]
            and not any(
                statement.target.name == f.name for s in pending for term in s.terms for f in term.factors
            )
        )

    def only_reads(self, statement: Statement) -> bool:
        return bool(statement.target.indices) and not any(
            is_contraction(term, statement.target) for term in statement.terms
        )

    def statement(self, statement: Statement) -> None:
        """Contractions first, so that the first of them can overwrite the target."""
        accumulate = statement.accumulate
        if not statement.target.indices and statement.target.name not in self.stored_scalars:
            self.dot(statement)
            return
        reads = []
        for term in statement.terms:
            if is_contraction(term, statement.target):
                self.contraction(statement.target, term, accumulate)
                accumulate = True
            else:
                reads.append(term)
        if reads:
            self.sorts([Statement(statement.target, accumulate, tuple(reads))])

    def solve(self, statement: Solve) -> None:
        name, residual = statement.amplitude.name, statement.residual.name
        layout = self.layouts[name]
        n = layout.rows.rank
        signs = tuple(statement.signs[c] for c in statement.amplitude.indices)
        for made in (statement.new, statement.step):
            self.layouts[made], self.kinds[made] = layout, "intermediate"
        self.scalars.append(statement.norm2)
        names = {"new": statement.new, "step": statement.step, "norm2": statement.norm2}
        named = names | {"gaps": statement.gaps}
        self.emit(Update(str(statement), name, residual, **named, row_signs=signs[:n], col_signs=signs[n:]))

    # Scalars

    def dot_factors(self, term: Term) -> tuple[float, float, float] | None:
        """For two factors of one layout in one order: a factor per parity; an exchanged pair adds a sign."""
        if len(term.factors) != 2:
            return None
        a, b = (self.operand(f) for f in term.factors)
        if self.layouts[a.name] != self.layouts[b.name] or len(set(a.rows + a.cols)) != len(a.rows + a.cols):
            return None
        exchange = 0
        for mine, other, group in ((a.rows, b.rows, a.row_group), (a.cols, b.cols, a.col_group)):
            if mine != other:
                if not (group.packing == "+-" and mine == other[::-1]):
                    return None
                exchange += 1
        minus = -1.0 if exchange % 2 else 1.0
        c = term.coefficient
        return minus * c, c, c

    def dot(self, statement: Statement) -> None:
        name = statement.target.name
        totals: dict[tuple[str, str], tuple[float, float, float]] = {}
        for term in statement.terms:
            key = (term.factors[0].name, term.factors[1].name)
            factors, before = self.dot_factors(term) or (0.0, 0.0, 0.0), totals.get(key, (0.0, 0.0, 0.0))
            totals[key] = (before[0] + factors[0], before[1] + factors[1], before[2] + factors[2])
        if name not in self.scalars:
            self.scalars.append(name)
        for (a, b), factors in totals.items():
            self.emit(Dot(f"{name} += {a} . {b}", name, a, b, factors))

    # Contractions

    def contraction(self, target: Factor, term: Term, accumulate: bool) -> None:
        found = (
            formed_contract(target, term, accumulate, self.formed)
            or row_inner(target, term, accumulate, self.operand)
            or row_contract(target, term, accumulate, self.operand)
        )
        if found:
            self.emit(found)
            return
        letters = set(target.indices)
        a, b = (self.operand(f) for f in term.factors)
        left = set(a.rows + a.cols) & letters
        right = set(b.rows + b.cols) & letters
        summed = set(a.rows + a.cols) - letters
        c = self.operand(target)
        # The target's rows decide which factor stands on the left.
        if set(c.rows) == right and set(c.cols) == left and left != right:
            a, b, left, right = b, a, right, left
        shapes = [
            self.agree(a.group(left), c.group(left)),
            self.agree(b.group(right), c.group(right)),
            self.agree(a.group(summed), b.group(summed)),
        ]
        row_order, col_order, sum_order = (
            shape[0] if shape else self.order(wanted, source, c)
            for shape, wanted, source in zip(shapes, (left, right, summed), (a, b, a), strict=True)
        )
        row_group, col_group, sum_group = (
            shape[1] if shape else self.plain(order, source)
            for shape, order, source in zip(shapes, (row_order, col_order, sum_order), (a, b, a), strict=True)
        )
        a_name, transpose_a = self.in_form(a, (row_order, row_group), (sum_order, sum_group))
        b_name, transpose_b = self.in_form(b, (sum_order, sum_group), (col_order, col_group))
        direct = c.rows == row_order and c.cols == col_order
        direct = direct and same(c.row_group, row_group) and same(c.col_group, col_group)
        text = statement_text(target, term, accumulate)
        if direct:
            self.emit(
                Contract(text, c.name, accumulate, term.coefficient, a_name, b_name, transpose_a, transpose_b)
            )
            return
        product = self.fresh(f"({term.factors[0].name}.{term.factors[1].name})")
        signs = dict(zip(target.indices, self.layouts[target.name].signs, strict=True))
        self.layouts[product] = Layout(
            Compound(row_group.spaces, tuple(signs[x] for x in row_order), row_group.packing),
            Compound(col_group.spaces, tuple(signs[x] for x in col_order), col_group.packing),
        )
        self.kinds[product] = self.kind_of(a_name, b_name)
        self.emit(Contract(text, product, False, 1.0, a_name, b_name, transpose_a, transpose_b))
        read = Term(term.coefficient, (Factor(product, row_order + col_order),))
        self.sorts([Statement(target, accumulate, (read,))])

    @staticmethod
    def agree(
        one: tuple[str, Compound, bool] | None, other: tuple[str, Compound, bool] | None
    ) -> tuple[str, Compound] | None:
        """A group that both tensors store alike, packing included."""
        if one and other and one[0] == other[0] and same(one[1], other[1]):
            return one[0], one[1]
        return None

    @staticmethod
    def order(wanted: set[str], source: Operand, target: Operand) -> str:
        """An order for the letters of a group: the target's, else the one in which they are stored."""
        for tensor in (target, source):
            found = tensor.group(wanted)
            if found and not found[1].packing:
                return found[0]
        return "".join(c for c in source.rows + source.cols if c in wanted)

    @staticmethod
    def plain(order: str, source: Operand) -> Compound:
        spaces = dict(zip(source.rows, source.row_group.spaces, strict=True))
        spaces |= dict(zip(source.cols, source.col_group.spaces, strict=True))
        signs = dict(zip(source.rows, source.row_group.signs, strict=True))
        signs |= dict(zip(source.cols, source.col_group.signs, strict=True))
        return Compound(tuple(spaces[c] for c in order), tuple(signs[c] for c in order))

    def in_form(
        self, operand: Operand, rows: tuple[str, Compound], cols: tuple[str, Compound]
    ) -> tuple[str, bool]:
        """Name of the operand in the matricization rows|cols, and whether it lies transposed there."""
        for first, second, transposed in ((rows, cols, False), (cols, rows, True)):
            same_letters = operand.rows == first[0] and operand.cols == second[0]
            if same_letters and same(operand.row_group, first[1]) and same(operand.col_group, second[1]):
                return operand.name, transposed
        position = {c: str(k) for k, c in enumerate(operand.rows + operand.cols)}
        permutation = "".join(position[c] for c in rows[0] + cols[0])
        key = (permutation, rows[1].packing, f"{cols[1].packing}|{len(rows[0])}")
        if key not in self.sorted_forms.get(operand.name, {}):
            form = f"{rows[0]}{rows[1].packing}|{cols[0]}{cols[1].packing}"
            name = self.fresh(f"{operand.name}<{form}>")
            signs = dict(zip(operand.rows + operand.cols, self.layouts[operand.name].signs, strict=True))
            self.layouts[name] = Layout(
                Compound(rows[1].spaces, tuple(signs[c] for c in rows[0]), rows[1].packing),
                Compound(cols[1].spaces, tuple(signs[c] for c in cols[0]), cols[1].packing),
            )
            self.kinds[name] = self.kind_of(operand.name)
            read = Term(1.0, (Factor(operand.name, operand.rows + operand.cols),))
            self.sorts([Statement(Factor(name, rows[0] + cols[0]), False, (read,))])
            self.sorted_forms.setdefault(operand.name, {})[key] = name
        return self.sorted_forms[operand.name][key], False

    def fresh(self, name: str) -> str:
        candidate, k = name, 1
        while candidate in self.layouts:
            k += 1
            candidate = f"{name}#{k}"
        return candidate

    # Sorts

    def sorts(self, statements: list[Statement]) -> None:
        """One pass for all reads that keep their tensors' order, one for those that keep packed pairs
        together, one for the rest."""
        if not statements:
            return
        layout, letters = self.layouts[statements[0].target.name], statements[0].target.indices
        passes: dict[tuple[bool, tuple[bool, bool]], dict[tuple[tuple[Factor, ...], str], list[float]]] = {}
        for k, statement in enumerate(statements):
            for term in statement.terms:
                sums = "".join(c for c in term.letters if c not in letters)
                mode = self.read_mode(term, letters, layout)
                coefficients = passes.setdefault(mode, {}).setdefault(
                    (term.factors, sums), [0.0] * len(statements)
                )
                coefficients[k] += term.coefficient
        started = [statement.accumulate for statement in statements]
        cancelled = {
            k
            for k, statement in enumerate(statements)
            if not statement.accumulate and not any(c[k] for reads in passes.values() for c in reads.values())
        }
        # Passes that write every block come first, and those of most targets.
        for mode, reads in sorted(passes.items(), key=lambda item: (not item[0][0], item[0][1])):
            # A statement whose terms cancel still assigns: zeros, in the first pass.
            used = [k for k in range(len(statements)) if k in cancelled or any(c[k] for c in reads.values())]
            cancelled = set()
            if not used:
                continue
            terms = tuple(
                Read(factors, sums, tuple(c[k] for k in used))
                for (factors, sums), c in reads.items()
                if any(c[k] for k in used)
            )
            targets = tuple(statements[k].target.name for k in used)
            text = "; ".join(
                f"{statements[k].target} {'+=' if started[k] else '='} "
                + " ".join(
                    f"{c[k]:+g} {' '.join(map(str, factors))}" for (factors, _), c in reads.items() if c[k]
                )
                for k in used
            )
            accumulate = tuple(started[k] for k in used)
            self.emit(Sort(text, targets, accumulate, letters, terms, mode[0], mode[1]))
            for k in used:
                started[k] = True

    def read_mode(self, term: Term, letters: str, layout: Layout) -> tuple[bool, tuple[bool, bool]]:
        """(elementwise, (row pair stays packed, column pair stays packed))."""
        n = layout.rows.rank
        wanted = ((letters[:n], layout.rows), (letters[n:], layout.cols))
        if len(term.factors) != 1:
            return False, (False, False)
        operand = self.operand(term.factors[0])
        if (
            self.layouts[operand.name] == layout
            and len(set(letters)) == len(letters)
            and operand.rows == wanted[0][0]
            and operand.cols == wanted[1][0]
        ):
            return True, (bool(layout.rows.packing), bool(layout.cols.packing))
        own = ((operand.rows, operand.row_group), (operand.cols, operand.col_group))
        joined = [
            bool(group.packing) and any(same(group, g) and set(o) == set(order) for o, g in own)
            for order, group in wanted
        ]
        return False, (joined[0], joined[1])
