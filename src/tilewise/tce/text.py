"""The TCE's routines as a text of equations over spin orbitals, which is planned and run like any other.

`r2(p3 p4|h1 h2) += -1/2 P(h1/h2) t1(p5|h1) v(p3 p4|h2 p5)` becomes
`r2[ab-|ij-] += -1/2 P(i/j) t1[c|i] v_pphp[ab|jc]`: particles are a, b, ..., holes i, j, ...; two indices of
one kind on one side are an antisymmetric pair.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewise.equations.permutations import Group
from tilewise.tce.routines import Indexed, Routine

LETTERS = {"p": "abcdefgh", "h": "ijklmnop"}
HEAD = """\
input t1[a|i]
input t2[ab-|ij-]
"""
TAU = """\
c2[ab-|ij-] = t2[ab|ij] + P(i/j) t1[a|i] t1[b|j]
e[] = f_ph[a|i] t1[a|i] + 1/4 v_pphh[ab|ij] c2[ab|ij]
"""
SOLVE = """\
solve t1[a|i] : r1[a|i] / (i - a)
solve t2[ab|ij] : r2[ab|ij] / (i + j - a - b)
"""


def equation_text(routines: Iterable[Routine]) -> str:
    """Constants, the energy, a line for each routine of CCSD in the order given, and the two steps."""
    every = tuple(routines)
    read = [part for routine in every for part in routine.inputs if part.name in ("f", "v")]
    energy = [Indexed("f", ("p1",), ("h1",)), Indexed("v", ("p1", "p2"), ("h1", "h2"))]
    constants = {_name(part): _constant(part) for part in (*energy, *read)}
    made: set[str] = set()
    lines = []
    for routine in every:
        sign = "+=" if routine.target.name in made else "="
        made.add(routine.target.name)
        lines.append(_line(routine, sign))
    return HEAD + "\n".join(constants.values()) + "\n" + TAU + "\n".join(lines) + "\n" + SOLVE


def _name(part: Indexed) -> str:
    """Blocks of f and v are tensors of their own: v_hhpp."""
    return f"{part.name}_{part.kinds}" if part.name in ("f", "v") else part.name


def _letters(parts: Iterable[Indexed]) -> dict[str, str]:
    """A letter for each index, in the order in which they stand."""
    found: dict[str, str] = {}
    for part in parts:
        for index in part.indices:
            used = sum(other[0] == index[0] for other in found)
            found.setdefault(index, LETTERS[index[0]][used])
    return found


def _form(part: Indexed, letters: dict[str, str]) -> str:
    """The form in which a tensor is stored: pairs of one kind are antisymmetric."""
    return "|".join(_side(side, letters) for side in (part.upper, part.lower))


def _side(side: Group, letters: dict[str, str]) -> str:
    pair = len(side) == 2 and side[0][0] == side[1][0]
    return "".join(letters[index] for index in side) + ("-" if pair else "")


def _factor(part: Indexed, letters: dict[str, str]) -> str:
    upper, lower = ("".join(letters[index] for index in side) for side in (part.upper, part.lower))
    return f"{_name(part)}[{upper}|{lower}]"


def _constant(part: Indexed) -> str:
    letters = _letters([part])
    form = _form(part, letters)
    if part.name == "f":
        return f"constant {_name(part)}[{form}] = fock"
    p, q, r, s = (letters[index] for index in part.indices)  # <pq||rs>
    return f"constant {_name(part)}[{form}] = ({p}{r}|{q}{s}) - ({p}{s}|{q}{r})"


def _line(routine: Routine, sign: str) -> str:
    letters = _letters([routine.target, *routine.inputs])
    exchanges = "".join(
        f"P({'/'.join(''.join(letters[index] for index in group) for group in groups)}) "
        for groups in routine.exchanges
    )
    factor = "" if abs(routine.factor) == 1 else f"{abs(routine.factor)} "
    minus = "- " if routine.factor < 0 else ""
    inputs = " ".join(_factor(part, letters) for part in routine.inputs)
    target = f"{routine.target.name}[{_form(routine.target, letters)}]"
    return f"{target} {sign} {minus}{factor}{exchanges}{inputs}  # {routine.name}"
