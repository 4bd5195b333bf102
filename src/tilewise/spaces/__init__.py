"""Orbital spaces: occupied and virtual orbitals by spin and irrep, cut into tiles."""

from tilewise.spaces.groups import GROUPS, PointGroup, group_named
from tilewise.spaces.orbitals import OrbitalCounts, orbitals_named
from tilewise.spaces.space import Space, Tiles
from tilewise.spaces.tile_space import TileSpace

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
