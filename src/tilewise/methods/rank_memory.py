"""What each of several ranks holds in memory, stage by stage, and what it moves in an iteration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tilewise.chem.reference import Outline
from tilewise.chem.shared_rows import SLAB
from tilewise.chem.transform import allowed_half
from tilewise.equations.program import Program
from tilewise.execute.distribution import Distribution
from tilewise.lazy import cached_property
from tilewise.methods.diis import DIIS
from tilewise.methods.shared_rows import BATCH, HALF_SHARE


@dataclass(frozen=True, eq=False)
class RankMemory:
    """Bytes of each rank; `scratch` are those of the workers of one."""

    program: Program
    """As it was before operations were split between ranks."""
    distribution: Distribution
    outline: Outline
    diis_space: int
    scratch: int
    has_vectors: bool
    on_one_node: bool = False

    @property
    def ranks(self) -> int:
        return self.distribution.ranks

    @cached_property
    def by_rank(self) -> list[dict[str, int]]:
        """Bytes at the peak of each stage, without what the process had before."""
        return [
            {
                "integral transformation": large + self._small("constant") + self._transformation(constants),
                "set-up": constants + self._small("constant", "derived"),
                "iterations": iterations,
            }
            for large, constants, iterations in zip(
                *(self._large.tolist(), self._constants.tolist(), self._iterations.tolist()), strict=True
            )
        ]

    @property
    def stages(self) -> dict[str, int]:
        """Of each stage the rank that takes the most."""
        return {stage: max(own[stage] for own in self.by_rank) for stage in self.by_rank[0]}

    @cached_property
    def windows(self) -> list[int]:
        """Bytes of each rank that others get from, which ranks of one node have in its shared memory."""
        return self._bytes(self.distribution.fetched).tolist()

    @property
    def moved(self) -> list[int]:
        """Bytes that each rank gets from others in an iteration."""
        table, got = self.distribution.transfers.table, np.zeros(self.ranks, np.int64)
        np.add.at(got, table["target"], table["elements"])
        return (8 * got).tolist()

    def _bytes(self, names: Iterable[str]) -> np.ndarray:
        """(ranks,): what each rank holds of some tensors."""
        none = np.zeros(self.ranks, np.int64)
        return 8 * sum((self.distribution.elements[name] for name in names), start=none)

    @cached_property
    def _constants(self) -> np.ndarray:
        """(ranks,)"""
        return self._bytes(self.distribution.constants)

    @property
    def _large(self) -> np.ndarray:
        """(ranks,): constants that are made row by row; all others are made when these are there."""
        names = self.distribution.constants
        return self._bytes(name for name in names if not self._is_small(name))

    @property
    def _iterations(self) -> np.ndarray:
        """(ranks,): all tensors; steps and new amplitudes that no task reads are in the memory of DIIS."""
        d, updates = self.distribution, self.distribution.program.updates
        kept = {name for op in updates for name in (op.new, op.step)} - d.program.new_that_is_read
        steps = self._bytes(kept)
        lengths = sum((d.elements_at_home(op.amplitude) for op in updates), start=np.zeros_like(steps))
        of_diis = np.array([DIIS.bytes(self.diis_space, length) for length in lengths.tolist()])
        return self._bytes(d.graph.panels) - steps + of_diis + self.scratch

    def _small(self, *kinds: str) -> int:
        """Constants that every rank has whole for a while, and cuts its own from."""
        known = self.program.kinds
        names = [name for name in self.program.layouts if known[name] in kinds and self._is_small(name)]
        return sum(self.program.bytes_of(name) for name in names)

    def _is_small(self, name: str) -> bool:
        return sum(space.name == "v" for space in self.program.layouts[name].spaces) < 3

    def _transformation(self, constants: int) -> int:
        """Half-transformed integrals, a rank's integrals over functions, and rows on their way.

        Of integrals that the SCF has kept on one rank those of its node get a copy.
        """
        outline = self.outline
        n, sets = outline.n_occ + outline.n_vir, 2 if outline.beta else 1
        if self.has_vectors:
            basis = outline.n_basis * (outline.n_basis + 1) // 2
            return 8 * outline.n_vectors * (basis + sets * n * (n + 1) // 2)
        if not outline.basis_pairs:
            return 8 * (n * (n + 1) // 2) ** 2
        pairs = sets * n * (n + 1) // 2 // outline.group.order
        half = 8 * pairs * outline.basis_pairs * outline.group.order // self.ranks
        own = 0
        if outline.is_direct or self.on_one_node:
            own = 4 * outline.basis_pairs * (outline.basis_pairs + 1) * outline.group.order // self.ranks
        most = allowed_half(constants, HALF_SHARE)
        columns = 0 if self.on_one_node else 2 * SLAB
        return min(half, most) + own + columns + 3 * BATCH // self.ranks
