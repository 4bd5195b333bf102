"""CCSD in blocks as libtensor runs it: an operation at a time, a task per block of its result.

The lists of tasks are those of the TCE's routines: libtensor too has canonical blocks of spin orbitals.
Before its products an operation copies each block that it reads into the order they need; the first task that
needs a block does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tilewise.hardware.machines import Rates
from tilewise.lazy import cached_property
from tilewise.schedule import Phase, Queue, Schedule
from tilewise.spaces import TileSpace
from tilewise.spaces.orbitals import OrbitalCounts, orbitals_named
from tilewise.symmetry.groups import group_named
from tilewise.tce.inspector import inspect_routines
from tilewise.tce.loops import Loops, label_of, opposite, signs_of, sizes
from tilewise.tce.routines import Indexed, Routine, tce_routines
from tilewise.tce.tasks import TileGraph

BASE = 4
"""Orbitals of a tile per unit of the tiling factor."""

HOLE_TILE = 16
"""Orbitals of a tile of occupied ones, whatever the factor."""


URACIL = orbitals_named("uracil")
DIMER = OrbitalCounts(
    "dimethyluracil-water",
    "C6H8N2O2 H2O",
    "6-311+g(d,p)",
    group_named("Cs"),
    (11, 0),
    (34, 8),
    (184, 76),
)
CLUSTER = OrbitalCounts(
    "dimethyluracil-dimer-water",
    "(C6H8N2O2)2 H2O",
    "6-31+g(d,p), six d functions",
    group_named("C1"),
    (21,),
    (79,),
    (410,),
)
"""The paper's problems P1, P2 and P3; the core is correlated."""


def tiled(molecule: OrbitalCounts, factor: int) -> TileSpace:
    return TileSpace(molecule.occupied, molecule.virtual, BASE * factor, HOLE_TILE)


@dataclass(frozen=True)
class BlockRun:
    """One iteration with tiles of one size."""

    molecule: OrbitalCounts
    factor: int

    @cached_property
    def graph(self) -> TileGraph:
        return inspect_routines(tce_routines("ccsd"), tiled(self.molecule, self.factor))

    @cached_property
    def copied(self) -> tuple[np.ndarray, np.ndarray]:
        """(blocks, words) that each task copies: operands that no earlier task of its operation has read."""
        graph, p = self.graph, self.graph.products
        operation = graph.tasks["operation"][graph.owners]
        blocks, words = np.zeros((2, len(graph)))
        for key, size in (("a", p["m"] * p["k"]), ("b", p["k"] * p["n"])):
            first = np.unique(operation * (p[key].max() + 1) + p[key], return_index=True)[1]
            owner = graph.owners[first]
            blocks += np.bincount(owner, minlength=len(graph))
            words += np.bincount(owner, weights=size[first], minlength=len(graph))
        return blocks, words

    @cached_property
    def results(self) -> np.ndarray:
        """Words of the block that each task adds to."""
        puts = np.maximum(self.graph.tasks["puts"], 1)
        return self.graph.tasks["bytes_put"] / 8 / puts

    @cached_property
    def allocations(self) -> np.ndarray:
        """Blocks that each task takes from the heap: copies, and its result unless that is there already."""
        first = np.unique(self.graph.tasks["writes"], return_index=True)[1]
        made = np.zeros(len(self.graph))
        made[first] = 1
        return self.copied[0] + made

    def seconds(self, rates: Rates) -> np.ndarray:
        """Of each task, without the heap."""
        return rates.seconds(self.graph.flops, self.copied[1] + self.results)

    def product_seconds(self, rates: Rates) -> np.ndarray:
        p = self.graph.products
        return rates.seconds(2.0 * p["m"] * p["n"] * p["k"], np.zeros(len(p)))

    def high_water(self, name: str, workers: int) -> float:
        """Bytes in the workers' heaps while a routine runs: its result, and what large tasks have in hand.

        That is a block of the result, and the operands of a product as they are stored and as it needs them.
        """
        operation = [routine.name for routine in self.graph.operations].index(name)
        mine = self.graph.tasks["operation"] == operation
        p = self.graph.products[mine[self.graph.owners]]
        in_hand = p["m"] * p["n"] + 2 * (p["m"] * p["k"] + p["k"] * p["n"])
        return 8.0 * (float(self.results[mine].sum()) + workers * int(in_hand.max()))

    def schedule(self, workers: int, quantum: int) -> Schedule:
        """One queue for each operation, and a barrier after it."""
        operation = self.graph.tasks["operation"]
        bounds = np.searchsorted(operation, np.arange(len(self.graph.operations) + 1))
        everyone, every = tuple(range(workers)), np.arange(len(self.graph))
        phases = (
            Phase((Queue(every[low:high], everyone, quantum),)) for low, high in pairwise(bounds.tolist())
        )
        return Schedule("libtensor", workers, tuple(phases))


def task_flops(routine: Routine, space: TileSpace) -> np.ndarray:
    """Of each task of a contraction, whose products are summed without being listed."""
    loops, sums = Loops(routine.loops, space), Loops(routine.sums, space)
    tiles = loops.tiles(loops.non_null(signs_of(routine.target)))
    lengths = sizes(sums.tiles(np.arange(len(sums))), space, len(sums))
    summed = _summed(routine, space, lengths)
    return 2.0 * sizes(tiles, space, len(summed)) * summed


def count_products(molecule: OrbitalCounts, factor: int) -> int:
    """Of all contractions, without listing them."""
    space = tiled(molecule, factor)
    contractions = (routine for routine in tce_routines("ccsd") if not routine.is_copy)
    return sum(
        int(_summed(routine, space, np.ones(len(Loops(routine.sums, space)))).sum())
        for routine in contractions
    )


def _summed(routine: Routine, space: TileSpace, values: np.ndarray) -> np.ndarray:
    """Of values of the tuples that are summed over, the sum for each task: what symmetry leaves."""
    loops, sums = Loops(routine.loops, space), Loops(routine.sums, space)
    place = loops.non_null(signs_of(routine.target))
    tiles, one = loops.tiles(place), routine.inputs[0]
    labels, which = np.unique(sums.labels(signs_of(one)), return_inverse=True)
    total = np.bincount(which, weights=values)
    free = {index: tiles[index] for index in one.indices if index in tiles}
    wanted = np.broadcast_to(opposite(label_of(free, signs_of(one), space)), len(place))
    at = np.minimum(np.searchsorted(labels, wanted), len(labels) - 1)
    return np.where(labels[at] == wanted, total[at], 0.0)


def parallelism(molecule: OrbitalCounts, factor: int, rates: Rates, coarse: float) -> float:
    """Tasks of at least `coarse` seconds that the operation of the moment has, averaged over their work."""
    space = tiled(molecule, factor)
    tasks = work = 0.0
    for routine in tce_routines("ccsd"):
        if not routine.is_copy:
            flops = task_flops(routine, space)
            seconds = rates.seconds(flops, np.zeros(len(flops)))
            long = seconds[seconds >= coarse]
            tasks += len(long) * float(long.sum())
            work += float(long.sum())
    return tasks / work


def stored_bytes(molecule: OrbitalCounts, factor: int) -> float:
    """Of all tensors that routines read or write: blocks on the diagonal of a group are stored in full."""
    space = tiled(molecule, factor)
    parts = {(part.name, part.kinds): part for routine in tce_routines("ccsd") for part in _parts(routine)}
    total = 0.0
    for part in parts.values():
        loops = Loops(part.groups, space)
        place = loops.non_null(signs_of(part))
        total += 8.0 * float(sizes(loops.tiles(place), space, len(place)).sum())
    return total


def _parts(routine: Routine) -> tuple[Indexed, ...]:
    return (routine.target, *routine.inputs)
