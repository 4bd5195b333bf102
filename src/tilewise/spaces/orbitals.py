"""Molecules of which the orbitals alone are known: how many of each irrep. Enough to plan and to simulate."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tilewise.arguments import plain_text
from tilewise.errors import one_of
from tilewise.spaces.space import DEFAULT_TILE
from tilewise.spaces.tile_space import TileSpace
from tilewise.symmetry.groups import PointGroup, group_named

_WATER = re.compile(r"water-([1-9]\d{0,8})")


@dataclass(frozen=True)
class OrbitalCounts:
    """A closed-shell molecule in a basis; counts are by irrep, and `core` is part of `occupied`."""

    name: str
    formula: str
    basis: str
    group: PointGroup
    core: tuple[int, ...]
    occupied: tuple[int, ...]
    virtual: tuple[int, ...]
    frozen: bool = False
    """Whether the core is left out of `occupied`."""

    @property
    def n_electrons(self) -> int:
        """All electrons, frozen ones included."""
        return 2 * (sum(self.occupied) + (sum(self.core) if self.frozen else 0))

    @property
    def n_basis(self) -> int:
        return self.n_electrons // 2 + sum(self.virtual)

    def without_core(self) -> OrbitalCounts:
        """The same with its core frozen."""
        if self.frozen:
            return self
        kept = tuple(n - c for n, c in zip(self.occupied, self.core, strict=True))
        return replace(self, occupied=kept, frozen=True)

    def tiles(self, tile: int = DEFAULT_TILE) -> TileSpace:
        """Its spin orbitals, cut into tiles."""
        return TileSpace(self.occupied, self.virtual, tile)


def _water(n: int) -> OrbitalCounts:
    """(H2O)n: 41 functions and 10 electrons each."""
    counts = ((n,), (5 * n,), (36 * n,))
    return OrbitalCounts(f"water-{n}", f"(H2O){n}", "aug-cc-pvdz", group_named("C1"), *counts)


_D2H, _C2V, _CS, _C1 = (group_named(name) for name in ("D2h", "C2v", "Cs", "C1"))
_BENZENE = ((2, 1, 0, 0, 0, 0, 1, 2), (6, 3, 1, 1, 0, 1, 4, 5))
_NITROGEN = ((1, 0, 0, 0, 0, 1, 0, 0), (3, 0, 0, 0, 0, 2, 1, 1))

_KNOWN = {
    counts.name: counts
    for counts in (
        OrbitalCounts(
            "benzene-aug-cc-pvtz", "C6H6", "aug-cc-pvtz", _D2H, *_BENZENE, (70, 59, 38, 29, 30, 38, 58, 71)
        ),
        OrbitalCounts(
            "benzene-aug-cc-pvqz",
            "C6H6",
            "aug-cc-pvqz",
            _D2H,
            *_BENZENE,
            (124, 107, 75, 61, 62, 75, 106, 125),
        ),
        OrbitalCounts(
            "n2-aug-cc-pvtz", "N2", "aug-cc-pvtz", _D2H, *_NITROGEN, (16, 5, 11, 11, 5, 17, 10, 10)
        ),
        OrbitalCounts(
            "n2-aug-cc-pvqz", "N2", "aug-cc-pvqz", _D2H, *_NITROGEN, (28, 11, 19, 19, 11, 29, 18, 18)
        ),
        OrbitalCounts(
            "water-aug-cc-pvdz", "H2O", "aug-cc-pvdz", _C2V, (1, 0, 0, 0), (3, 0, 1, 1), (15, 4, 6, 11)
        ),
        OrbitalCounts("beta-carotene", "C40H56", "6-31g", _C1, (40,), (148,), (324,)),
        OrbitalCounts("uracil", "C4H4N2O2", "cc-pvtz", _CS, (8, 0), (24, 5), (176, 91)),
    )
}

ORBITAL_NAMES = ("water-1", "water-2", "... water-n", *_KNOWN)
"""What `orbitals_named` knows, for people."""


def orbitals_named(name: str, *, frozen: bool = False) -> OrbitalCounts:
    """A molecule by name, such as "water-10" or "beta-carotene"; `frozen` leaves out its core."""
    water = _WATER.fullmatch(plain_text("name", name))
    if water is None and name not in _KNOWN:
        raise one_of("molecule", name, ORBITAL_NAMES)
    found = _water(int(water[1])) if water else _KNOWN[name]
    return found.without_core() if frozen else found
