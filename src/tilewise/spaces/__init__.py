"""Orbital spaces: occupied and virtual orbitals by spin and irrep, cut into tiles."""

from tilewise.spaces.groups import GROUPS, PointGroup, group_named
from tilewise.spaces.space import Space, Tiles

__all__ = ["GROUPS", "PointGroup", "Space", "Tiles", "group_named"]
