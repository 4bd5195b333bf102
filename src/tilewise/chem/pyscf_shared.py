"""One mean field for all ranks: each has PySCF's object of its own, with the orbitals of rank 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ORBITALS = ("mo_coeff", "mo_energy", "mo_occ")
RESULTS = ("e_tot", "converged")


def share_orbitals(mean_field: Any, bcast: Callable[[Any], Any], rank: int) -> None:
    """Puts rank 0's orbitals in place of those of the others; degenerate ones come out turned on each rank.

    Other ranks need not have run the SCF. `bcast` gives the value of rank 0 on each rank.
    """
    own = None
    if rank == 0:
        own = {name: _plain(getattr(mean_field, name)) for name in ORBITALS}
        own |= {name: getattr(mean_field, name, None) for name in RESULTS}
    found = bcast(own)
    if rank != 0:
        mean_field.__dict__.update(found)


def _plain(orbitals: Any) -> Any:
    """Without the tags that PySCF hangs on arrays."""
    return None if orbitals is None else np.array(orbitals)
