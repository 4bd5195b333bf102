"""Exchange integrals (pi|qi), summed over the orbitals i of each kind, from half-transformed integrals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewise.chem.orbital_pairs import OrbitalSet
from tilewise.core import core

# A group of exchange integrals, as the native core has it.
EXCHANGE = np.dtype([(name, np.int64) for name in ("i", "irrep_i", "irrep_q", "first", "count")])


def add_exchange(
    tables: Mapping[str, Any],
    orbitals: OrbitalSet,
    filled: Sequence[int],
    half: Sequence[np.ndarray],
    pairs: np.ndarray,
    exchange: np.ndarray,
    scratch: core.Scratch,
) -> None:
    """Adds the integrals of the pairs (q, i), q not frozen and i of a filled kind, to exchange[kind, q, p].

    The pairs are those of the rows of `half`, all of one irrep; its matrices stand side by side. Orbitals are
    told by their numbers.
    """
    kinds, irreps = orbitals.kinds[orbitals.by_rank], orbitals.irreps[orbitals.by_rank]
    row, p, q = np.arange(len(pairs)), orbitals.p[pairs], orbitals.q[pairs]
    both = (np.append(row, row[p != q]), np.append(p, q[p != q]), np.append(q, p[p != q]))
    chosen = np.isin(kinds[both[1]], filled) & (kinds[both[2]] != orbitals.frozen)
    row, i, q = (x[chosen] for x in both)
    order = np.lexsort([q, irreps[q], i])
    row, i, q = row[order], i[order], q[order]
    starts = np.flatnonzero(np.diff(i, prepend=-1) | np.diff(irreps[q], prepend=-1))
    if not len(starts):
        return
    start = orbitals.first[:, 0]
    groups = np.zeros(len(starts), EXCHANGE)
    groups["i"], groups["irrep_i"] = i[starts] - start[irreps[i[starts]]], irreps[i[starts]]
    groups["irrep_q"], groups["first"] = irreps[q[starts]], starts
    groups["count"] = np.diff(starts, append=len(row))
    out = np.zeros((len(row), int((orbitals.first[:, -1] - start).max())))
    core.exchange_half(
        **tables,
        half=half,
        groups=groups.view(np.uint8),
        column=row,
        out=out,
        scratch=scratch,
    )
    # Exchange integrals of one q are summed over the orbitals i of each kind.
    order = np.lexsort([q, kinds[i], irreps[q]])
    q, kind = q[order], kinds[i][order]
    starts = np.flatnonzero(np.diff(q, prepend=-1) | np.diff(kind, prepend=-1))
    sums, q, kind = np.add.reduceat(out[order], starts, axis=0), q[starts], kind[starts]
    by_number = orbitals.by_rank
    for irrep in range(orbitals.n_irreps):
        here, mine = by_number[start[irrep] : orbitals.first[irrep, -1]], irreps[q] == irrep
        exchange[kind[mine, None], by_number[q[mine], None], here] += sums[mine, : len(here)]
