"""libcint, the integral library that PySCF ships: the C++ core calls it by the addresses of its functions."""

from __future__ import annotations

import ctypes

import numpy as np
from pyscf import gto
from pyscf.gto.moleintor import libcgto

from tilewise.core import core


def libcint_of(mol: gto.Mole) -> core.Libcint:
    """The shells of a molecule as they are now, with its functions and its range of the repulsion.

    The tables are copied: what happens to the molecule later changes nothing.
    """
    return core.Libcint(
        integral=_address("int2e_cart" if mol.cart else "int2e_sph"),
        optimizer=_address("int2e_optimizer"),
        release=_address("CINTdel_optimizer"),
        cartesian=bool(mol.cart),
        atm=np.ascontiguousarray(mol._atm, np.int32),
        bas=np.ascontiguousarray(mol._bas, np.int32),
        env=np.ascontiguousarray(mol._env, np.float64),
    )


def _address(name: str) -> int:
    address = ctypes.cast(getattr(libcgto, name), ctypes.c_void_p).value
    assert address is not None
    return address


def diagonal(mol: gto.Mole, workers: int) -> np.ndarray:
    """(mu nu|mu nu) for mu >= nu, packed."""
    libcint = libcint_of(mol)
    out = np.empty(libcint.n_functions * (libcint.n_functions + 1) // 2)
    core.diagonal(libcint, out, workers)
    return out


def schwarz(mol: gto.Mole, workers: int) -> np.ndarray:
    """(shells, shells): the square root of the largest (mu nu|mu nu) of each pair of shells.

    No integral (mu nu|lambda sigma) is larger than the product of the numbers of its two pairs.
    """
    libcint = libcint_of(mol)
    out = np.empty((libcint.n_shells, libcint.n_shells))
    core.schwarz(libcint, out, workers)
    return out
