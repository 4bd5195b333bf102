"""Tiles of spin orbitals as the TCE has them."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.lazy import cached_property
from tilewise.spaces.space import DEFAULT_TILE, Space, Tiles
from tilewise.wording import counted


@dataclass(frozen=True)
class TileSpace:
    """Holes and particles of a closed shell: alpha before beta, each by irrep, cut into tiles.

    `occupied` and `virtual` are orbitals per irrep; n orbitals of one spin and irrep make ceil(n / tile)
    near-equal tiles. Holes may have tiles of another size.
    """

    occupied: tuple[int, ...]
    virtual: tuple[int, ...]
    tile: int = DEFAULT_TILE
    hole_tile: int | None = None

    @cached_property
    def holes(self) -> Tiles:
        return Space.spin_orbital("h", self.occupied, self.occupied, self.hole_tile or self.tile).tiles

    @cached_property
    def particles(self) -> Tiles:
        return Space.spin_orbital("p", self.virtual, self.virtual, self.tile).tiles

    def of(self, kind: str) -> Tiles:
        """Of the indices "h" or "p"."""
        return self.holes if kind == "h" else self.particles

    def __str__(self) -> str:
        counts = [len(tiles) // 2 for tiles in (self.holes, self.particles)]
        return f"{counts[0]} + {counts[1]} alpha tiles of up to {counted(self.tile, 'orbital')}"
