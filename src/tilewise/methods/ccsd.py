"""Closed-shell CCSD: the text of `equations.ccsd`, and what is read off its amplitudes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewise.equations.ccsd import CCSD as TEXT
from tilewise.equations.ccsd import CCSD_ON_THE_FLY
from tilewise.errors import InputError
from tilewise.methods.method import Method, register
from tilewise.methods.solver import Solver
from tilewise.tensor import Tensor

METHOD = register(
    Method("ccsd", TEXT, start={"T": "K"}, results={"t1": "t", "t2": "T"}, thrifty=CCSD_ON_THE_FLY)
)


class CCSD(Solver):
    __doc__ = f"Spin-adapted CCSD on a PySCF RHF object: `tilewise.CCSD(mf).run().e_tot`.\n\n{Solver.__doc__}"

    method: ClassVar[Method] = METHOD
    t1: Tensor | None
    t2: Tensor | None

    @property
    def t1_diagnostic(self) -> float:
        """Norm of the singles per square root of the number of correlated electrons (Lee and Taylor)."""
        if self.t1 is None:
            return float("nan")
        return float(self.t1.norm() / np.sqrt(2 * self.reference.outline.n_occ))

    @property
    def diagnostics(self) -> dict[str, float]:
        """The T1 diagnostic, by its name in documents."""
        return {"t1_diagnostic": self.t1_diagnostic}

    def to_pyscf(self) -> tuple[np.ndarray, np.ndarray]:
        """(t1[i,a], t2[i,j,a,b]) as dense arrays in PySCF's order of the active orbitals."""
        if self.t1 is None or self.t2 is None:
            raise InputError("no amplitudes yet: call run() first")
        n_occ = self.reference.outline.n_occ
        occ, vir = np.argsort(self.reference.order[:n_occ]), np.argsort(self.reference.order[n_occ:])
        t1 = self.t1.to_dense()[np.ix_(occ, vir)]
        t2 = self.t2.to_dense().transpose(2, 3, 0, 1)[np.ix_(occ, occ, vir, vir)]
        return t1, t2
