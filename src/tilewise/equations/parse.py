"""The readable text form of equations.

    input    T[ab+-|ij+-]                         a tensor that changes from call to call
    constant ovov[ia|jb] = (ia|jb)                integrals in Mulliken order; the dense oracle also takes
    constant q[l|c] = 2 (ii|lc) - (li|ic)         other forms and sums, which runs make by statements
    constant f[i|a] = fock                        the Fock matrix, less the orbital energies
    constant B[ac+|x] = vectors                   (ac|bd) = sum over x of B[ac|x] B[bd|x]
    tau[ab+-|ij+-] = T[ab|ij] + t[i|a] t[j|b]     a statement; the first time a tensor stands on the
    R[ab|ij] += 1/2 W[ab|cd] T[cd|ij]             left its form is declared, packing included
    W[ia|ic] += 1/2 E[a|c]                        an index twice: added on that diagonal, for each i
    e[] = 2 tau[ab|ij] K[ab|ij] - tau[ab|ij] K[ab|ji]
    R[ab|ij] -= 1/2 P(i/j) P(a/b) X[ia|jb]        P(i/j) x = x - x with i and j exchanged
    V[ab+-||cd+-] = v[ac|bd]                      two bars: symmetric, half of it is stored
    formed V[ab+-|cd+-] = B[ac|x] B[bd|x]         never stored: products make the blocks that they need
    solve T[ab|ij] : R[ab|ij] / (i + j - a - b)   a Jacobi step with orbital energies; statements after it
    S[ab|ij] = T.new[ab|ij] - T[ab|ij]            may read the new amplitudes

Letters that do not stand on the left are summed. `#` begins a comment; a line that is indented more than the
first one continues the line above.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from textwrap import dedent

from tilewise.equations.permutations import Group, shuffles
from tilewise.equations.terms import INTEGRAL, Declaration, Equation, Factor, Solve, Statement, Term
from tilewise.errors import InputError
from tilewise.tensor.layout import Form

_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[+-])|(?P<number>\d+(?:\.\d+)?(?:/\d+)?)|(?P<word>fock\b|vectors\b)"
    r"|P\((?P<exchange>[A-Za-z]+(?:/[A-Za-z]+)+)\)"
    r"|(?P<tensor>[A-Za-z_]\w*'*(?:\.new)?\[[^\]]*\])|(?P<integral>\([A-Za-z]{2}\|[A-Za-z]{2}\)))"
)
_TENSOR = re.compile(r"([A-Za-z_]\w*'*(?:\.new)?)\[([^\]]*)\]")
_STATEMENT = re.compile(r"([A-Za-z_]\w*'*\[[^\]]*\])\s*(=|\+=|-=)\s*(.+)$", re.S)
_SOLVE = re.compile(r"solve\s+(\S+)\s*:\s*(\S+)\s*/\s*\(([^)]*)\)$")


def parse(text: str) -> Equation:
    """Reads a text of equations; an error names the line."""
    declarations: dict[str, Declaration] = {}
    statements: list[Statement | Solve] = []
    for number, line in _lines(dedent(text)):
        known = set(declarations)
        try:
            _line(line, declarations, statements)
        except InputError as error:
            raise InputError(f"equations, line {number}: {error}") from None
        for name in set(declarations) - known:
            declarations[name] = replace(declarations[name], line=number)
    return Equation(declarations, tuple(statements))


def _lines(text: str) -> list[tuple[int, str]]:
    joined: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].rstrip()
        if not line.strip():
            continue
        if line[0].isspace() and joined:
            joined[-1] = (joined[-1][0], joined[-1][1] + " " + line.strip())
        else:
            joined.append((number, line.strip()))
    return joined


def _line(line: str, declarations: dict[str, Declaration], statements: list[Statement | Solve]) -> None:
    word, _, rest = line.partition(" ")
    if word in ("input", "constant"):
        left, _, right = rest.partition("=")
        name, form = _tensor(left.strip())
        if name in declarations:
            raise InputError(f"{name} is declared twice")
        if (word == "constant") != bool(right.strip()):
            raise InputError("a constant needs a definition, an input has none")
        terms = _terms(right, declarations, integrals=True, target=form.letters) if right.strip() else ()
        declarations[name] = Declaration(name, form, word, terms)
        return
    if word == "formed":
        name = _tensor(rest.partition("=")[0].strip())[0]
        _line(rest, declarations, statements)
        declarations[name] = replace(declarations[name], kind="formed")
        return
    if word == "solve":
        step = _solve(line, declarations)
        statements.append(step)
        amplitude = declarations[step.amplitude.name]
        declarations[step.new] = replace(amplitude, name=step.new, kind="intermediate")
        return
    match = _STATEMENT.match(line)
    if not match:
        raise InputError(f"'{line}' is neither a declaration nor a statement")
    name, form = _tensor(match[1])
    terms = _terms(match[3], declarations, integrals=False, target=form.letters)
    if name not in declarations:
        if match[2] != "=":
            raise InputError(f"{name} is accumulated before it is assigned")
        declarations[name] = Declaration(name, form, "intermediate")
    elif declarations[name].kind != "intermediate":
        raise InputError(f"{name} is an {declarations[name].kind} and cannot be assigned")
    _check_rank(name, form, declarations)
    twice = "".join(c for c in form.letters if form.letters.count(c) > 1)
    if twice:
        _check_diagonal(match[1], twice, form.letters, declarations[name].form)
        if match[2] == "=":
            raise InputError(
                f"{match[1]} is a diagonal, so += or -= must follow: = would leave the rest undefined"
            )
    missing = [c for c in form.letters if c not in twice and any(c not in term.letters for term in terms)]
    if missing:
        raise InputError(f"index {missing[0]} of {match[1]} is missing in a term on the right")
    if match[2] == "-=":
        terms = tuple(Term(-term.coefficient, term.factors) for term in terms)
    statements.append(Statement(Factor(name, form.letters), match[2] != "=", terms))


def _check_diagonal(text: str, twice: str, letters: str, stored: Form) -> None:
    """Each letter of `twice` must stand in the rows and in the columns of a tensor that is not packed."""
    rows, cols = letters[: len(stored.rows)], letters[len(stored.rows) :]
    for c in twice:
        if (rows.count(c), cols.count(c)) != (1, 1):
            raise InputError(
                f"index {c} stands {letters.count(c)} times in {text}: on a diagonal it stands once in the "
                "rows and once in the columns"
            )
    if stored.row_packing or stored.col_packing:
        raise InputError(f"index {twice[0]} stands twice in {text}: a tensor that is packed has no diagonals")


def _solve(line: str, declarations: dict[str, Declaration]) -> Solve:
    match = _SOLVE.match(line)
    if not match:
        raise InputError(f"'{line}': expected solve T[ab|ij] : R[ab|ij] / (i + j - a - b)")
    (amplitude, form), (residual, other) = _tensor(match[1]), _tensor(match[2])
    if amplitude.endswith(".new"):
        raise InputError(f"{amplitude} is made of {amplitude[:-4]}, which has a solve line")
    for name, used in ((amplitude, form), (residual, other)):
        _known(name, declarations)
        _check_rank(name, used, declarations)
    if form.letters != other.letters:
        raise InputError(f"{match[1]} and {match[2]} must have the same indices")
    tokens = re.findall(r"([+-]?)\s*([A-Za-z])", match[3])
    signs = {letter: -1 if sign == "-" else 1 for sign, letter in tokens}
    readable = re.fullmatch(r"\s*[+-]?\s*[A-Za-z]\s*([+-]\s*[A-Za-z]\s*)*", match[3])
    if not readable or sorted(letter for _, letter in tokens) != sorted(form.letters):
        raise InputError(f"the denominator ({match[3]}) must name each of {form.letters} once")
    return Solve(Factor(amplitude, form.letters), Factor(residual, form.letters), signs)


def _tensor(text: str) -> tuple[str, Form]:
    match = _TENSOR.fullmatch(text)
    if not match:
        raise InputError(f"'{text}': expected a tensor such as T[ab|ij]")
    return match[1], Form.parse(match[2])


def _known(name: str, declarations: dict[str, Declaration]) -> None:
    if name not in declarations:
        raise InputError(f"{name} is used before it is declared or assigned")


def _check_rank(name: str, form: Form, declarations: dict[str, Declaration]) -> None:
    rank = len(declarations[name].form.letters)
    if rank != len(form.letters):
        raise InputError(f"{name} has {rank} indices, not {len(form.letters)} as in [{form.letters}]")


@dataclass
class _Product:
    """A term while it is read."""

    coefficient: float = 1.0
    exchanges: list[tuple[Group, ...]] = field(default_factory=list)
    factors: list[Factor] = field(default_factory=list)

    def terms(self) -> list[Term]:
        """One for each way to permute its indices."""
        found = [Term(self.coefficient, tuple(self.factors))]
        for groups in self.exchanges:
            found = [
                Term(sign * term.coefficient, tuple(f.renamed(letters) for f in term.factors))
                for term in found
                for sign, letters in shuffles(groups)
            ]
        return found


def _terms(text: str, declarations: dict[str, Declaration], integrals: bool, target: str) -> tuple[Term, ...]:
    """The terms of a right-hand side, permutation operators expanded."""
    terms: list[Term] = []
    product, position, text = _Product(), 0, text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise InputError(f"cannot read '{text[position:].strip()}'")
        position = match.end()
        if match["sign"]:
            if product.factors:
                terms += product.terms()
            elif match.start() > 0:
                raise InputError(
                    f"a sign or a number stands without a tensor before '{text[match.start() :].strip()}'"
                )
            product = _Product(-1.0 if match["sign"] == "-" else 1.0)
        elif match["number"]:
            product.coefficient *= _number(match["number"])
        elif match["exchange"]:
            product.exchanges.append(_exchange(match["exchange"], target))
        elif match["tensor"]:
            name, form = _tensor(match["tensor"])
            _known(name, declarations)
            _check_rank(name, form, declarations)
            product.factors.append(Factor(name, form.letters))
        else:
            if not integrals:
                raise InputError("integrals, fock and vectors stand in definitions of constants alone")
            letters = match["integral"].translate(str.maketrans("", "", "(|)")) if match["integral"] else ""
            product.factors.append(Factor(INTEGRAL if letters else match["word"], letters))
    if not product.factors:
        raise InputError(f"'{text}' ends without a tensor")
    return (*terms, *product.terms())


def _number(text: str) -> float:
    try:
        return float(Fraction(text))
    except ZeroDivisionError:
        raise InputError(f"{text} divides by zero") from None
    except (OverflowError, ValueError):
        raise InputError(f"the number {text[:20]}... is too long") from None


def _exchange(text: str, target: str) -> tuple[Group, ...]:
    """The groups of a permutation operator, whose letters must stand on the left, each once."""
    letters = text.replace("/", "")
    strange = [c for c in letters if letters.count(c) > 1 or target.count(c) != 1]
    if strange:
        raise InputError(f"index {strange[0]} of P({text}) must stand once there and once on the left")
    return tuple(tuple(group) for group in text.split("/"))
