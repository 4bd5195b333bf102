"""What a calculation holds in memory, stage by stage, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass

from tilewise.chem.reference import Outline
from tilewise.equations.program import Program
from tilewise.execute.once import stages_of
from tilewise.methods.diis import DIIS
from tilewise.methods.integrals import is_symmetric


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
            "integral transformation": max(self._transformation, 0) + self._given,
            "set-up": self._given + self._largest_setup,
            "iterations": self._kept + self._changing,
        }

    def _bytes(self, *kinds: str) -> int:
        return sum(size for name, size in self._sizes.items() if self._kind(name) in kinds)

    @property
    def _sizes(self) -> dict[str, int]:
        return {name: self.program.bytes_of(name) for name in self.program.layouts}

    def _kind(self, name: str) -> str:
        """The kind of a tensor; a constant that only the set-up reads is an `integral`."""
        kind = self.program.kinds[name]
        read_later = any(name in op.reads for op in self.program.operations)
        return "integral" if kind == "constant" and not read_later else kind

    @property
    def _given(self) -> int:
        return self._bytes("integral", "constant")

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
        """Half-transformed integrals, whose place those with symmetric pairs take; or vectors."""
        outline = self.outline
        n = outline.n_occ + outline.n_vir
        pairs, sets = n * (n + 1) // 2, 2 if outline.beta else 1
        if self.has_vectors:
            basis = outline.n_basis * (outline.n_basis + 1) // 2
            return 8 * outline.n_vectors * (basis + sets * pairs)
        if any(space.spins != (0,) for layout in self.program.layouts.values() for space in layout.spaces):
            return 8 * pairs * pairs * (3 if outline.beta else 1)  # (aa|aa), (aa|bb) and (bb|bb)
        if not outline.basis_pairs:
            return 8 * pairs * pairs
        symmetric = sum(
            self.program.bytes_of(name)
            for name, layout in self.program.layouts.items()
            if self.program.kinds[name] == "constant" and layout.rank == 4 and is_symmetric(layout)
        )
        return 8 * pairs * outline.basis_pairs - symmetric

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
