"""Orbital spaces: occupied and virtual orbitals by spin and irrep, cut into tiles."""

from tilewise.spaces.orbitals import OrbitalCounts, orbitals_named
from tilewise.spaces.space import Space, Tiles
from tilewise.spaces.tile_space import TileSpace
from tilewise.symmetry.groups import GROUPS, PointGroup, group_named

__all__ = [
    "GROUPS",
    "OrbitalCounts",
    "PointGroup",
    "Space",
    "TileSpace",
    "Tiles",
    "group_named",
    "orbitals_named",
]
