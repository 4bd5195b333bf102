"""Configuration interaction: strings, determinants, columns; from a mean field or an atom to its levels."""

from tilewise.ci.calculation import CI
from tilewise.ci.levels import Level, NaturalOrbitals, read_levels
from tilewise.ci.plan import CIPlan

__all__ = ["CI", "CIPlan", "Level", "NaturalOrbitals", "read_levels"]
