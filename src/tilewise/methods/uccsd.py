"""Open-shell CCSD: the text of `equations.uccsd`, and what is read off its amplitudes by spin."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewise.chem.open_shell import OpenReference
from tilewise.equations.uccsd import UCCSD as TEXT
from tilewise.equations.uccsd import UCCSD_ON_THE_FLY
from tilewise.errors import InputError
from tilewise.methods.ccsd import CCSD, pyscf_order
from tilewise.methods.method import Method, register
from tilewise.methods.solver import Solver

METHOD = register(
    Method(
        "uccsd",
        TEXT,
        start={"T": "K"},
        results={"t1": "t", "t2": "T"},
        thrifty=UCCSD_ON_THE_FLY,
        spin_orbitals=True,
    )
)


class UCCSD(CCSD):
    __doc__ = (
        "CCSD over spin orbitals on a PySCF UHF, ROHF or RHF object: `tilewise.UCCSD(mf).run().e_tot`.\n\n"
        f"t1 and t2 are over spin orbitals, alpha before beta.\n\n{Solver.__doc__}"
    )

    method: ClassVar[Method] = METHOD

    def to_pyscf(self) -> tuple[Any, Any]:
        """((t1a, t1b), (t2aa, t2ab, t2bb)) as dense arrays in PySCF's order of the active orbitals.

        t2ab[i,j,a,b] has i and a of alpha, j and b of beta spin.
        """
        if self.t1 is None or self.t2 is None:
            raise InputError("no amplitudes yet: call run() first")
        (occ, vir), t2 = self._orbitals, self.t2
        doubles = tuple(
            np.ascontiguousarray(t2.at(*np.ix_(vir[s], vir[r], occ[s], occ[r])).transpose(2, 3, 0, 1))
            for s, r in ((0, 0), (0, 1), (1, 1))
        )
        return tuple(self.t1.at(*np.ix_(occ[s], vir[s])) for s in (0, 1)), doubles

    @property
    def _orbitals(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Of each spin the occupied and the virtual spin orbitals in PySCF's order."""
        orders = [pyscf_order(own) for own in self.reference.by_spin]
        return tuple([orders[0][k], len(orders[0][k]) + orders[1][k]] for k in (0, 1))  # type: ignore[return-value]

    @property
    def t1_diagnostic(self) -> float:
        """Norm of the singles per square root of twice the correlated electrons: Lee and Taylor's in a closed
        shell."""
        return self._diagnostic(0, 1)

    def _diagnostic(self, *spins: int) -> float:
        """The same for the electrons of some spins."""
        if self.t1 is None:
            return float("nan")
        occ, vir = self._orbitals
        norm2 = sum(float((self.t1.at(*np.ix_(occ[s], vir[s])) ** 2).sum()) for s in spins)
        electrons = sum(len(occ[s]) for s in spins)
        return float(np.sqrt(norm2 / (2 * electrons))) if electrons else 0.0

    @property
    def s_squared(self) -> float | None:
        """<S^2> projected on the reference, <0| S^2 exp(T) |0>; None if <alpha|beta> is not known.

        It is that of the exact state where CCSD is exact, and of a pure spin state for every ROHF.
        """
        if not isinstance(self.reference, OpenReference) or self.t1 is None:
            return None if self.t1 is None else 0.0
        start, overlap = self.reference.s_squared, self.reference.overlap
        if start is None or overlap is None:
            return None
        (t1a, t1b), (_, t2ab, _) = self.to_pyscf()
        (oa, va), (ob, vb) = (_active(own) for own in self.reference.by_spin)
        filled = self.reference.occupied
        with_beta, with_alpha = overlap[:, filled[1]], overlap[filled[0]]
        alpha = np.einsum("ia,ik,ak->", t1a, with_beta[oa], with_beta[va])
        beta = np.einsum("ia,ki,ka->", t1b, with_alpha[:, ob], with_alpha[:, vb])
        pairs = t2ab + np.einsum("ia,jb->ijab", t1a, t1b)
        mixed = np.einsum("ijab,ib,aj->", pairs, overlap[np.ix_(oa, vb)], overlap[np.ix_(va, ob)])
        return float(start - alpha - beta - mixed)

    @property
    def diagnostics(self) -> dict[str, float]:
        """T1 diagnostics of all electrons and of each spin, and <S^2> as far as it is known, by name."""
        by_spin = {"alpha": self._diagnostic(0), "beta": self._diagnostic(1)}
        found = {"t1_diagnostic": self.t1_diagnostic}
        found |= {f"t1_diagnostic_{spin}": value for spin, value in by_spin.items()}
        if isinstance(self.reference, OpenReference) and self.reference.s_squared is not None:
            found["s2_reference"] = self.reference.s_squared
        if self.s_squared is not None:
            found["s2_projected"] = self.s_squared
        return found


def _active(reference: Any) -> tuple[np.ndarray, np.ndarray]:
    """Active occupied and virtual orbitals in the source's numbering, ascending."""
    n_occ = reference.outline.n_occ
    return np.sort(reference.order[:n_occ]), np.sort(reference.order[n_occ:])
