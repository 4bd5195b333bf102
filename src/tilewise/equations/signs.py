"""Whether a term keeps the symmetry labels that its target is stored by."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from tilewise.equations.terms import Factor, Term
from tilewise.errors import InputError
from tilewise.spaces import Space
from tilewise.tensor import Layout


def check_letters(target: Factor, terms: tuple[Term, ...], layouts: Mapping[str, Layout]) -> None:
    """Raises unless each term gives a totally symmetric result over the target's spaces.

    Each letter must stand twice (in two tensors, or twice in one: a trace, or a diagonal of the target),
    or else equally often in all tensors of an elementwise product. Where spaces have spin, the upper and
    lower places of the letters must agree up to an overall exchange of upper and lower in each tensor, and in
    each pair of one spin.
    """
    for term in terms:
        factors = (target, *term.factors)
        letters = "".join(factor.indices for factor in factors)
        spaces: dict[str, Space] = {}
        for letter, space in zip(letters, (s for f in factors for s in layouts[f.name].spaces), strict=True):
            other = spaces.setdefault(letter, space)
            if other is not space and other != space:
                names = " and ".join(sorted(f"{s.name} {s.counts} tile {s.tile}" for s in (other, space)))
                raise InputError(f"index {letter} in {target} = {term} runs over different spaces: {names}")
        odd = [letter for letter in spaces if letters.count(letter) != 2]
        if odd and len({tuple(sorted(factor.indices)) for factor in factors}) > 1:
            raise InputError(
                f"index {odd[0]} stands {letters.count(odd[0])} times in {target} = {term}: it must stand "
                "twice, or the result would break the symmetry that it is stored by"
            )
        if any(space.spins != (0,) for space in spaces.values()):
            _check_spins(f"{target} = {term}", factors, [layouts[factor.name] for factor in factors])


def _check_spins(text: str, factors: tuple[Factor, ...], layouts: list[Layout]) -> None:
    places: dict[str, list[tuple[int, int]]] = {}
    for k, factor in enumerate(factors):
        for axis, letter in enumerate(factor.indices):
            places.setdefault(letter, []).append((k, axis))
    first, pieces = 0, []  # what can be turned over for itself, of each axis of each tensor
    for layout in layouts:
        split = int(layout.rows.one_spin or layout.cols.one_spin)
        pieces.append([first] * layout.rows.rank + [first + split] * layout.cols.rank)
        first += 1 + split
    for flips in product((1, -1), repeat=first):
        turned = [
            [flips[piece] * sign for piece, sign in zip(own, layout.signs, strict=True)]
            for own, layout in zip(pieces, layouts, strict=True)
        ]
        if all(_keeps_spin(found, turned) for found in places.values()):
            return
    raise InputError(f"{text}: upper and lower indices do not match, so the result would not keep spin")


def _keeps_spin(found: list[tuple[int, int]], turned: list[list[int]]) -> bool:
    """Factors contract an upper with a lower index; an index of the target keeps its place, or is one of a
    diagonal: upper and lower in each tensor that has it."""
    signs = [turned[k][axis] for k, axis in found]
    if found[0][0] == 0 and found[1][0] != 0:
        return all(sign == signs[0] for sign in signs)
    return all(one == -other for one, other in zip(signs[::2], signs[1::2], strict=True))
