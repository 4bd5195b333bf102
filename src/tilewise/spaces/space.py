"""An orbital space and its tiles.

The orbitals of a space are ordered by spin, then by irrep. Tiles cut the orbitals of one spin and
irrep into ceil(n / tile) near-equal runs, as the TCE's tilesize does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewise.arguments import plain_text, whole_number
from tilewise.errors import InputError
from tilewise.lazy import cached_property

MOST_ORBITALS = 1_000_000
"""Of a space; what was meant to be more is a mistake, and would not fit any memory."""

DEFAULT_TILE = 16
"""Orbitals per tile: a block of four indices then fits the second-level cache of one core."""


@dataclass(frozen=True)
class Tiles:
    """The tiles of a space as parallel arrays; `start` counts orbitals of the whole space."""

    spin: np.ndarray
    irrep: np.ndarray
    start: np.ndarray
    size: np.ndarray

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True)
class Space:
    """Orbitals of one kind: `counts[s][h]` of them have spin projection `spins[s]/2` and irrep h."""

    name: str
    counts: tuple[tuple[int, ...], ...]
    spins: tuple[int, ...] = (0,)
    tile: int = DEFAULT_TILE

    def __post_init__(self) -> None:
        orders = {len(row) for row in self.counts}
        if len(self.counts) != len(self.spins) or len(orders) != 1:
            raise InputError(f"space {self.name}: counts must have one row per spin, all of one length")
        order = orders.pop()
        if order not in (1, 2, 4, 8):
            raise InputError(f"space {self.name}: {order} irreps given; abelian groups have 1, 2, 4 or 8")
        if any(n < 0 for row in self.counts for n in row):
            raise InputError(f"space {self.name}: negative orbital count in {self.counts}")
        if sum(map(sum, self.counts)) > MOST_ORBITALS:
            raise InputError(f"space {self.name}: more than {MOST_ORBITALS} orbitals")
        plain_text("name", self.name)
        object.__setattr__(self, "tile", min(whole_number("tile", self.tile), MOST_ORBITALS))

    @classmethod
    def spatial(cls, name: str, counts: Sequence[int], tile: int = DEFAULT_TILE) -> Space:
        """Spatial orbitals, as a spin-adapted method uses them: counts per irrep."""
        return cls(name, (_whole_numbers(name, counts),), (0,), tile)

    @classmethod
    def spin_orbital(
        cls, name: str, alpha: Sequence[int], beta: Sequence[int], tile: int = DEFAULT_TILE
    ) -> Space:
        """Spin orbitals: alpha (2 m_s = +1) first, then beta, each by irrep."""
        return cls(name, (_whole_numbers(name, alpha), _whole_numbers(name, beta)), (1, -1), tile)

    def tiled(self, tile: int) -> Space:
        """The same orbitals in tiles of at most `tile`."""
        return replace(self, tile=tile)

    @property
    def order(self) -> int:
        """Number of irreps."""
        return len(self.counts[0])

    @cached_property
    def size(self) -> int:
        """Number of orbitals, of all spins and irreps."""
        return sum(map(sum, self.counts))

    @cached_property
    def irreps(self) -> np.ndarray:
        """Irrep of each orbital."""
        return np.concatenate([np.repeat(np.arange(self.order), row) for row in self.counts])

    @cached_property
    def tiles(self) -> Tiles:
        """The tiles: near-equal parts of the orbitals of each spin and irrep."""
        spin, irrep, start, size = [], [], [], []
        first = 0
        for s, row in zip(self.spins, self.counts, strict=True):
            for h, n in enumerate(row):
                pieces = -(-n // self.tile)
                for piece in range(pieces):
                    low, high = n * piece // pieces, n * (piece + 1) // pieces
                    spin.append(s)
                    irrep.append(h)
                    start.append(first + low)
                    size.append(high - low)
                first += n
        return Tiles(*(np.array(x, dtype=np.int64) for x in (spin, irrep, start, size)))

    @cached_property
    def tile_of(self) -> np.ndarray:
        """Tile of each orbital."""
        return np.repeat(np.arange(len(self.tiles)), self.tiles.size)


def _whole_numbers(name: str, counts: Sequence[int]) -> tuple[int, ...]:
    """Orbitals per irrep, as they are given."""
    try:
        given = [*counts]
    except TypeError:
        raise InputError(f"counts={counts!r}: expected a list, orbitals of space {name} per irrep") from None
    return tuple(whole_number("count", n, least=0) for n in given)
