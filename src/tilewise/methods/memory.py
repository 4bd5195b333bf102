"""What a calculation holds in memory, stage by stage, before anything is allocated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tilewise.chem.reference import Outline
from tilewise.chem.transform import PARTS, allowed_half
from tilewise.config import format_bytes
from tilewise.equations.program import Program
from tilewise.errors import MemoryBudgetError
from tilewise.execute.once import stages_of
from tilewise.lazy import cached_property
from tilewise.methods.diis import DIIS


def too_little(stages: dict[str, int], budget: int, ranks: int = 1) -> MemoryBudgetError:
    """What to say of stages, by name their bytes, of which one takes more than the budget of each rank."""
    where, more = (f" on one of {ranks} ranks", "use more ranks, ") if ranks > 1 else ("", "")
    stage = max(stages, key=lambda key: stages[key])
    enough = f"{np.ceil(stages[stage] / 1e8) / 10:g}GB"
    return MemoryBudgetError(
        f"not enough memory: {stage} would take {format_bytes(stages[stage])}{where}, the budget is "
        f"{format_bytes(budget)}; allow {enough} or more, {more}"
        "freeze the core, use more symmetry or a smaller basis",
        enough=enough,
    )


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes of one calculation; `scratch` are those of all workers, in doubles per worker times workers."""

    program: Program
    outline: Outline
    diis_space: int
    scratch: int
    has_vectors: bool
    """Whether the integrals are made of three-index ones, fitted or decomposed."""

    @property
    def stages(self) -> dict[str, int]:
        """Bytes at the peak of each stage, without what the process had before."""
        return {
            "integral transformation": self._transformation + self._given,
            "set-up": self._given + self._largest_setup,
            "iterations": self._kept + self._changing,
        }

    def _bytes(self, *kinds: str) -> int:
        return sum(self._bytes_by_kind[kind] for kind in kinds)

    @cached_property
    def _bytes_by_kind(self) -> Counter[str]:
        """Bytes of all tensors of a kind; a constant that only the set-up reads is an `integral`."""
        read_later = {name for op in self.program.operations for name in op.reads}
        sizes: Counter[str] = Counter()
        for name in self.program.layouts:
            kind = self.program.kinds[name]
            passing = kind == "constant" and name not in read_later
            sizes["integral" if passing else kind] += self.program.bytes_of(name)
        return sizes

    @property
    def _given(self) -> int:
        return self._bytes("integral", "constant")

    @property
    def _largest_given(self) -> int:
        names = [name for name, kind in self.program.kinds.items() if kind == "constant"]
        return max((self.program.bytes_of(name) for name in names), default=0)

    @property
    def _kept(self) -> int:
        return self._bytes("constant", "derived")

    @property
    def _changing(self) -> int:
        """Amplitudes and intermediates; new amplitudes and steps are kept in the memory of DIIS."""
        steps = sum(self.program.bytes_of(op.step) for op in self.program.updates)
        length = sum(self.program.layouts[op.amplitude].size for op in self.program.updates)
        own = self._bytes("input", "intermediate") - 2 * steps
        return own + DIIS.bytes(self.diis_space, length) + self.scratch

    @property
    def _transformation(self) -> int:
        """Besides its results: integrals over combinations and half-transformed ones, or vectors."""
        outline = self.outline
        n = outline.n_occ + outline.n_vir
        sets = 2 if outline.beta else 1
        if self.has_vectors:
            basis = outline.n_basis * (outline.n_basis + 1) // 2
            return 8 * outline.n_vectors * (basis + sets * n * (n + 1) // 2)
        if not outline.basis_pairs:
            return 8 * (n * (n + 1) // 2) ** 2
        most = allowed_half(self._given)
        half = 8 * self._largest_pairs * outline.basis_pairs
        at_once = half <= most and outline.beta is None  # two sets need the integrals over combinations twice
        if outline.group.order == 1 and outline.beta is None and not at_once:
            if not outline.is_direct:  # most of them lie in the place of later results
                return max(most // 2, 8 * n * outline.basis_pairs)
            # All but those of frozen orbitals are there when the first part of the results is written. That
            # part has some of every result but the largest one, which takes the place of the parts that are
            # given back.
            active = 8 * (n * (n + 1) // 2) * outline.basis_pairs
            return max(active - self._largest_given, 0) + active // PARTS
        return min(half, most + 8 * n * outline.basis_pairs) + self._adapted(at_once)

    @property
    def _largest_pairs(self) -> int:
        """Pairs of orbitals, frozen ones among them, in an irrep that has the most of them."""
        counts = np.add(self.outline.occ, self.outline.vir)
        counts[np.argmax(counts)] += self.outline.frozen_core
        irreps = np.arange(len(counts))
        return max(int(counts @ counts[irreps ^ h] + (h == 0) * counts.sum()) // 2 for h in irreps)

    def _adapted(self, at_once: bool) -> int:
        """Integrals over combinations: none if those of the SCF serve, or if the place of the results does
        until they are made."""
        outline = self.outline
        size = outline.basis_pairs * (outline.basis_pairs + 1) // 2
        room = np.zeros(outline.group.order, np.int64)
        for name, layout in self.program.layouts.items():
            if self.program.kinds[name] == "constant" and layout.rank == 4:
                np.maximum.at(room, layout.rows.labels[layout.sector_pairs[:, 0], 0], np.diff(layout.offsets))
        is_given = outline.group.order == 1 and not outline.is_direct
        return 0 if is_given or (at_once and room.min() >= size) else 8 * size * outline.group.order

    @property
    def _largest_setup(self) -> int:
        """Bytes of what the set-up makes, less the constants that it has let go by then."""
        made = gone = most = 0
        for operations, rest in stages_of(self.program):
            names = {name for op in operations for name in op.outputs}
            made += sum(self.program.bytes_of(name) for name in names)
            most = max(most, made - gone)
            later = {name for op in (*rest, *self.program.operations) for name in op.reads}
            passing = {name for op in operations for name in op.reads} - later
            gone += sum(self.program.bytes_of(name) for name in passing)
        return most
