"""CCSD. For closed shells: the text of `equations.ccsd`, and what is read off its amplitudes."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

import numpy as np

from tilewise.chem.reference import Reference
from tilewise.chem.sources import is_open_shell
from tilewise.config import thread_limits
from tilewise.equations.ccsd import CCSD as TEXT
from tilewise.equations.ccsd import CCSD_ON_THE_FLY
from tilewise.errors import InputError
from tilewise.execute.mpi.failure import together
from tilewise.methods.ccsd_t import Triples, TriplesPass
from tilewise.methods.method import Method, register
from tilewise.methods.semicanonical import semicanonical
from tilewise.methods.solver import Solver
from tilewise.methods.triples_file import TriplesFile
from tilewise.tensor import Tensor

METHOD = register(
    Method(
        "ccsd",
        TEXT,
        start={"T": "K"},
        results={"t1": "t", "t2": "T"},
        thrifty=CCSD_ON_THE_FLY,
        open_shell="uccsd",
    )
)


class CCSD(Solver):
    __doc__ = (
        "CCSD on a PySCF mean field: `tilewise.CCSD(mf).run().e_tot`.\n\n"
        f"An RHF object is treated spin-adapted, a UHF or ROHF object by UCCSD.\n\n{Solver.__doc__}"
    )

    __signature__ = signature(Solver)  # `__new__` would hide it
    method: ClassVar[Method] = METHOD
    t1: Tensor | None
    t2: Tensor | None
    e_t: float = float("nan")
    e_tot_t: float = float("nan")
    triples: Triples | None = None

    def __new__(cls, mf: Any, *args: Any, **settings: Any) -> CCSD:
        from tilewise.methods.uccsd import UCCSD

        return super().__new__(UCCSD if cls is CCSD and is_open_shell(mf) else cls)

    def ccsd_t(self) -> float:
        """E(T), the energy of connected triples in hartree, which CCSD(T) adds to that of CCSD.

        `e_t` and `e_tot_t` = E(CCSD(T)) hold it afterwards, `triples` its parts and what it took. CCSD is run
        before if it has not been, unless `restart` names a file with converged amplitudes: these are taken.
        """
        if self.t1 is None and not self.take():
            self.run()
        assert self.t1 is not None and self.t2 is not None
        if not self.converged:
            self._note("CCSD is not converged: (T) is that of its last amplitudes")
        plan = self.plan.triples_plan
        plan.check_memory()
        reference, amplitudes = semicanonical(self.reference, (self.t1, self.t2))
        found = TriplesPass(
            plan,
            reference,
            amplitudes,
            self.executor,
            self.processors,
            None if self.world.rank else TriplesFile.beside(self.checkpoint, self.restart),
            self.progress,
            self._note,
            self.seconds,
            self.world,
            self._trace_file() if self.trace else None,
        )
        with together(self.world), thread_limits(plan.threads):
            self.triples = found.run()
        self._write_trace()
        self.e_t, self.e_tot_t = self.triples.e_t, self.e_tot + self.triples.e_t
        return self.e_t

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

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

    def to_pyscf(self) -> tuple[Any, Any]:
        """(t1[i,a], t2[i,j,a,b]) as dense arrays in PySCF's order of the active orbitals."""
        if self.t1 is None or self.t2 is None:
            raise InputError("no amplitudes yet: call run() first")
        occ, vir = pyscf_order(self.reference.by_spin[0])
        t1 = self.t1.to_dense()[np.ix_(occ, vir)]
        t2 = self.t2.to_dense().transpose(2, 3, 0, 1)[np.ix_(occ, occ, vir, vir)]
        return t1, np.ascontiguousarray(t2)


def pyscf_order(reference: Reference) -> tuple[np.ndarray, np.ndarray]:
    """Active occupied and virtual orbitals in the order of their numbers in the source."""
    n_occ = reference.outline.n_occ
    return np.argsort(reference.order[:n_occ]), np.argsort(reference.order[n_occ:])
