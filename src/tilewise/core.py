"""The C++ core, with the dgemm that it calls: that of the BLAS which SciPy ships."""

from __future__ import annotations

import scipy.linalg.cython_blas

from tilewise import _native as core

core.use_dgemm(scipy.linalg.cython_blas.__pyx_capi__["dgemm"])

__all__ = ["core"]
