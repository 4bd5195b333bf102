"""Whether a term keeps the symmetry labels that its target is stored by."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from tilewise.equations.terms import Factor, Term
from tilewise.errors import InputError
from tilewise.tensor import Layout


def check_letters(target: Factor, terms: tuple[Term, ...], layouts: Mapping[str, Layout]) -> None:
    """Raises unless each term gives a totally symmetric result over the target's spaces.

    Each letter must stand twice (in two tensors, or twice in one: a trace), or else in all tensors of
    an elementwise product. Where spaces have spin, the upper and lower places of the letters must
    agree up to an overall exchange of upper and lower in each tensor.
    """
    for term in terms:
        tensors = [(target, layouts[target.name]), *((f, layouts[f.name]) for f in term.factors)]
        places: dict[str, list[tuple[int, int]]] = {}
        for k, (factor, _) in enumerate(tensors):
            for axis, letter in enumerate(factor.indices):
                places.setdefault(letter, []).append((k, axis))
        same = len({frozenset(factor.indices) for factor, _ in tensors}) == 1
        for letter, found in places.items():
            if len(found) != 2 and not same:
                raise InputError(
                    f"index {letter} stands {len(found)} times in {target} = {term}: it must stand twice, "
                    "or the result would break the symmetry that it is stored by"
                )
            spaces = {tensors[k][1].spaces[axis] for k, axis in found}
            if len(spaces) > 1:
                names = " and ".join(sorted(f"{s.name} {s.counts} tile {s.tile}" for s in spaces))
                raise InputError(f"index {letter} in {target} = {term} runs over different spaces: {names}")
        _check_spins(f"{target} = {term}", [layout for _, layout in tensors], places)


def _check_spins(text: str, layouts: list[Layout], places: dict[str, list[tuple[int, int]]]) -> None:
    if all(space.spins == (0,) for layout in layouts for space in layout.spaces):
        return
    for flips in product((1, -1), repeat=len(layouts)):
        if all(_keeps_spin(found, layouts, flips) for found in places.values()):
            return
    raise InputError(f"{text}: upper and lower indices do not match, so the result would not keep spin")


def _keeps_spin(found: list[tuple[int, int]], layouts: list[Layout], flips: tuple[int, ...]) -> bool:
    """Factors contract an upper with a lower index; an index of the target keeps its place."""
    signs = [flips[k] * layouts[k].signs[axis] for k, axis in found]
    if found[0][0] == 0:
        return all(sign == signs[0] for sign in signs)
    return signs[0] == -signs[1]
