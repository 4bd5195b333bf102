"""Memory for large arrays of numbers."""

from __future__ import annotations

import numpy as np

from tilewise.core import core


def zeros(count: int) -> np.ndarray:
    """Zeros, none of which is written yet, in pages of the size that the system gives soonest.

    NumPy asks for huge pages always. That takes a tenth of some calculations where a virtual machine has to
    get each of them from its host.
    """
    made = np.zeros(count)
    core.choose_pages(made)
    return made
