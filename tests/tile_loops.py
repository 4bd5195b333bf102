"""Routines over tiles by plain loops: slow, and short enough to be seen to be right."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod

from tilewise.spaces import TileSpace
from tilewise.tce.routines import Indexed, Routine


@dataclass
class PlainTask:
    tiles: dict[str, int]
    reads: set = field(default_factory=set)
    writes: tuple = ()
    shapes: list[tuple[int, int, int]] = field(default_factory=list)
    gets: int = 0
    puts: int = 0


class PlainLoops:
    def __init__(self, space: TileSpace) -> None:
        self.space = space

    def spin(self, index: str, tile: int) -> int:
        return int(self.space.of(index[0]).spin[tile])

    def size(self, indices: list[str], tiles: dict[str, int]) -> int:
        return prod(int(self.space.of(i[0]).size[tiles[i]]) for i in indices)

    def tuples(self, groups: tuple[tuple[str, ...], ...]) -> list[dict[str, int]]:
        indices = [i for group in groups for i in group]
        ranges = [range(len(self.space.of(i[0]))) for i in indices]
        every = [dict(zip(indices, tiles, strict=True)) for tiles in product(*ranges)]
        return [t for t in every if all(t[a] <= t[b] for g in groups for a, b in pairwise(g))]

    def symmetric(self, part: Indexed, tiles: dict[str, int]) -> bool:
        irrep = 0
        for i in part.indices:
            irrep ^= int(self.space.of(i[0]).irrep[tiles[i]])
        spins = [sum(self.spin(i, tiles[i]) for i in side) for side in (part.upper, part.lower)]
        return irrep == 0 and spins[0] == spins[1]

    def beta(self, part: Indexed, tiles: dict[str, int]) -> bool:
        return all(self.spin(i, tiles[i]) < 0 for i in part.indices)

    def block(self, part: Indexed, tiles: dict[str, int]) -> tuple:
        moved = dict(tiles)
        if self.beta(part, tiles):
            moved = {i: tiles[i] - len(self.space.of(i[0])) // 2 for i in part.indices}
        return part.name, part.kinds, *(tuple(sorted(moved[i] for i in group)) for group in part.groups)

    def gets(self, part: Indexed, tiles: dict[str, int]) -> int:
        if part.name != "v":
            return 1
        p, q, r, s = (self.spin(i, tiles[i]) for i in part.indices)
        return ((p, q) == (r, s)) + ((p, q) == (s, r))

    def tasks(self, routine: Routine) -> list[PlainTask]:
        found = []
        for tiles in self.tuples(routine.loops):
            if not self.symmetric(routine.target, tiles) or self.beta(routine.target, tiles):
                continue
            task = PlainTask(tiles, writes=self.block(routine.target, tiles))
            for _, order in routine.permutations:
                moved = {i: tiles[j] for i, j in zip(routine.target.indices, order, strict=True)}
                groups = routine.target.groups
                task.puts += all(list(t) == sorted(t) for g in groups for t in [[moved[i] for i in g]])
            for summed in self.tuples(routine.sums) if routine.sums else [{}]:
                every = tiles | summed
                if not all(self.symmetric(part, every) for part in routine.inputs):
                    continue
                for part in routine.inputs:
                    task.gets += self.gets(part, every)
                    task.reads.add(self.block(part, every))
                if not routine.is_copy:
                    free = [[i for i in part.indices if i in tiles] for part in routine.inputs]
                    task.shapes.append(
                        (self.size(free[0], every), self.size(free[1], every), self.size(list(summed), every))
                    )
            found.append(task)
        return found
