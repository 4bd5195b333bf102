"""What each of several ranks holds in memory, stage by stage, and what it moves in an iteration."""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def ranks(self) -> int:
        return self.distribution.ranks

    @cached_property
    def by_rank(self) -> list[dict[str, int]]:
        """Bytes at the peak of each stage, without what the process had before."""
        return [
            {
                "integral transformation": self._constants(rank) + self._small + self._transformation(rank),
                "set-up": self._constants(rank) + self._small,
                "iterations": self._iterations(rank),
            }
            for rank in range(self.ranks)
        ]

    @property
    def stages(self) -> dict[str, int]:
        """Of each stage the rank that takes the most."""
        return {stage: max(own[stage] for own in self.by_rank) for stage in self.by_rank[0]}

    @cached_property
    def windows(self) -> list[int]:
        """Bytes of each rank that others get from, which ranks of one node have in its shared memory."""
        d = self.distribution
        return [8 * sum(d.shard(name, rank).size for name in d.moved) for rank in range(self.ranks)]

    @property
    def moved(self) -> list[int]:
        """Bytes that each rank gets from others in an iteration."""
        return [self.distribution.counted(rank).bytes for rank in range(self.ranks)]

    def _constants(self, rank: int) -> int:
        d = self.distribution
        return 8 * sum(d.shard(name, rank).size for name in d.constants)

    def _iterations(self, rank: int) -> int:
        """All tensors; new amplitudes and steps are kept in the memory of DIIS."""
        d, updates = self.distribution, self.distribution.program.updates
        steps = sum(d.shard(name, rank).size for op in updates for name in (op.new, op.step))
        length = sum(d.home(op.amplitude, rank).size for op in updates)
        return d.bytes(rank) - 8 * steps + DIIS.bytes(self.diis_space, length) + self.scratch

    @cached_property
    def _small(self) -> int:
        """Constants that every rank has whole for a while, and cuts its own from."""
        names = [
            name
            for name, layout in self.program.layouts.items()
            if self.program.kinds[name] in ("constant", "derived")
            and sum(space.name == "v" for space in layout.spaces) < 3
        ]
        return sum(self.program.bytes_of(name) for name in names)

    def _transformation(self, rank: int) -> int:
        """Half-transformed integrals, this rank's integrals over functions, and rows on their way."""
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
        if outline.is_direct:
            own = 4 * outline.basis_pairs * (outline.basis_pairs + 1) * outline.group.order // self.ranks
        most = allowed_half(self._constants(rank), HALF_SHARE)
        return min(half, most) + own + 3 * BATCH // self.ranks + 2 * SLAB
