"""Connected triples: all of (T) that belongs to occupied orbitals i, j and a run of k, tile by tile.

`inspect.triples` finds the tasks and says where the operands lie; docs/triples.md has the equations.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tilewise.core import core
from tilewise.inspect.operations.kind import WORD, Kind, Work
from tilewise.inspect.operations.triples_twins import record_energy
from tilewise.inspect.records import F8, I8

if TYPE_CHECKING:
    from tilewise.inspect.graph import TaskGraph

FORMS: tuple[str, ...] = core.triples_forms
"""Of a record: a closed shell, three electrons of one spin, two of one and one of the other, or a closed
shell without symmetry by squares."""

TRIPLES = np.dtype(
    [(name, I8) for name in ("form", "s", "r", "i", "j", "k", "n_k", "first_tiles", "n_tiles", "part")]
    + [(name, F8) for name in ("needed", "done", "elements", "words")]
)
TILE_TRIPLE = np.dtype([(name, I8) for name in "abc"])
BY_SET = (
    *("n_occ", "n_vir", "n_tile", "occ_irrep", "n_sum", "n_in_irrep", "tile_irrep", "tile_size"),
    *("tile_first", "tile_inner", "occ_energy", "vir_energy", "t1", "fock"),
)
"""Fields of a space with a place for each set of orbitals."""
BY_SETS = ("direct", "crossed", "pair")
"""Fields with a place for each two sets."""
OUTPUTS = ("parts", "product_seconds")
"""Of each task: E[T], and the seconds in which its products were made (of a twin, all of its seconds)."""
BUFFERS = ("blocks", "pairs", "energies", "singles", *OUTPUTS)
SPACE = np.dtype(
    [(name, I8) for name in (*BUFFERS, "has_fock")]
    + [(name, I8, (2,)) for name in BY_SET]
    + [(name, I8, (4,)) for name in BY_SETS]
    + [("squares", I8, (5,)), ("scale", F8)]
)


class TriplesKind(Kind):
    """Triples (i, j, run of k) in a list of triples of virtual tiles."""

    name: ClassVar[str] = "triples"
    record: ClassVar[np.dtype] = TRIPLES
    tables: ClassVar[Mapping[str, np.dtype]] = {
        "tile_triple": TILE_TRIPLE,
        "triples_space": SPACE,
        "triples_numbers": np.dtype(I8),
    }
    features: ClassVar[tuple[str, ...]] = ("triples", "triples element")

    def flops(self, graph: TaskGraph) -> np.ndarray:
        return 2.0 * graph.records[self.name]["needed"]

    def bytes(self, graph: TaskGraph) -> np.ndarray:
        """Of the operands, each counted once: those of i and j are still in cache for the next k."""
        return WORD * graph.records[self.name]["words"]

    def moved(self, graph: TaskGraph) -> tuple[np.ndarray, np.ndarray]:
        got = self.bytes(graph)
        return got, np.full(len(got), float(WORD))

    def counted(self, graph: TaskGraph, far: float) -> np.ndarray:
        records = graph.records[self.name]
        return np.stack([records["done"], records["elements"]], axis=1)

    def outside(self, graph: TaskGraph, lengths: np.ndarray) -> np.ndarray:
        records, space = graph.records[self.name], graph.records["triples_space"]
        if not len(records):
            return np.zeros(0, bool)
        tiles = graph.records["tile_triple"]
        bad = (records["first_tiles"] < 0) | (records["first_tiles"] + records["n_tiles"] > len(tiles))
        for s, orbitals in (("s", ("i", "j")), ("r", ("k",))):
            n_occ = space["n_occ"][0][records[s]]
            for orbital in orbitals:
                bad |= (records[orbital] < 0) | (records[orbital] >= n_occ)
        bad |= records["k"] + records["n_k"] > space["n_occ"][0][records["r"]]
        for field in BUFFERS:
            bad |= not 0 <= space[field][0] < len(lengths)
        for field in OUTPUTS:
            number = space[field][0]
            room = lengths[number] if 0 <= number < len(lengths) else 0
            bad |= (records["part"] < 0) | (records["part"] >= room)
        return bad

    def twin(self, work: Work, record: np.void) -> float:
        began = time.perf_counter()
        fourth, fifth = record_energy(work, record)
        space = work.records["triples_space"]
        work.buffers[space["parts"][0]][record["part"]] = fourth
        work.buffers[space["product_seconds"][0]][record["part"]] = time.perf_counter() - began
        return fourth + fifth


__all__ = [
    "BUFFERS",
    "BY_SET",
    "BY_SETS",
    "FORMS",
    "OUTPUTS",
    "SPACE",
    "TILE_TRIPLE",
    "TRIPLES",
    "TriplesKind",
]
