"""Integrals over basis functions, of which those over orbitals are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.chem.orbital_pairs import OrbitalSet
from tilewise.chem.pair_classes import Operations, PairClasses
from tilewise.core import core
from tilewise.lazy import cached_property
from tilewise.new_memory import empty

NEGLIGIBLE = 1e-13
"""Integrals over basis functions whose Schwarz bound is smaller are not computed, in hartree."""


@dataclass(frozen=True, eq=False)
class Density:
    """What the Fock matrix is made of besides the integrals, over basis functions, in hartree."""

    total: np.ndarray
    core: np.ndarray  # the core Hamiltonian


@dataclass(frozen=True, eq=False)
class BasisIntegrals:
    """Integrals over the basis functions: packed in both pairs (a vector), a matrix over pairs, or yet to be
    made by libcint."""

    operations: Operations
    source: np.ndarray | core.Libcint
    irreps: np.ndarray
    """For each irrep of the group that orbitals are labelled by: its irrep in these operations."""
    density: Density | None = None

    @cached_property
    def classes(self) -> PairClasses:
        return PairClasses(self.operations)

    @property
    def is_direct(self) -> bool:
        """Whether the integrals are yet to be made."""
        return not isinstance(self.source, np.ndarray)

    def orbital_set(
        self, frozen: np.ndarray, active: np.ndarray, labels: np.ndarray, kinds: np.ndarray, n_kinds: int
    ) -> OrbitalSet:
        """Active orbitals with their irreps (`labels`) and kinds, frozen ones (the last kind) before them.

        Both are columns of coefficients. Which irrep a frozen orbital has is told by its coefficients.
        """
        n = frozen.shape[1]
        parts = [(self.classes.adapted(h).T @ frozen) ** 2 for h in range(self.operations.count)]
        irreps = np.argmax([part.sum(axis=0) for part in parts], axis=0)
        return OrbitalSet(
            np.hstack([frozen, active]),
            np.concatenate([irreps, self.irreps[labels]]).astype(np.int64),
            np.concatenate([np.full(n, n_kinds - 1), kinds]),
            np.concatenate([np.zeros(n, np.int64), labels]),
            self.operations.count,
            n_kinds,
        )

    def adapted(self, room: list[np.ndarray], workers: int) -> list[np.ndarray]:
        """X_h for each irrep, a packed triangle; in the memory of `room` where that is large enough.

        Without symmetry these are the integrals themselves.
        """
        source, classes = self.source, self.classes
        if self.operations.count == 1 and isinstance(source, np.ndarray):
            return [source]
        out = []
        for n, given in zip(classes.n_classes, room, strict=True):
            size = n * (n + 1) // 2
            out.append(given[:size] if len(given) >= size else empty(size))
        if isinstance(source, np.ndarray):
            n = self.operations.n_functions
            n_pairs = n * (n + 1) // 2
            core.adapt_pairs(**classes.tables, integrals=source, n_pairs=n_pairs, out=out, n_workers=workers)
        else:
            core.adapt_quartets(
                **classes.tables,
                **classes.of_functions,
                libcint=source,
                threshold=NEGLIGIBLE,
                first_shell=0,
                last_shell=source.n_shells,
                start=np.zeros(len(out), np.int64),
                out=out,
                n_workers=workers,
            )
        return out
