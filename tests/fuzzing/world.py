"""Small molecules with energies by PySCF, and whole files to be damaged: what all cases start from."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.sectors import Sectors


@dataclass(frozen=True)
class System:
    """A molecule in a basis, with the numbers of frozen orbitals that are tried."""

    atoms: tuple[tuple[str, tuple[float, float, float]], ...]
    basis: str = "sto-3g"
    charge: int = 0
    frozen: tuple[int, ...] = (0,)
    spin: int = 0
    """Unpaired electrons."""

    @property
    def options(self) -> tuple[str, ...]:
        """Of the command line, to compute it."""
        charge = ("--charge", str(self.charge)) if self.charge else ()
        spin = ("--spin", str(self.spin)) if self.spin else ()
        return ("--basis", self.basis, *charge, *spin)

    @property
    def xyz(self) -> str:
        lines = [f"{symbol} {x:.6f} {y:.6f} {z:.6f}" for symbol, (x, y, z) in self.atoms]
        return "\n".join([str(len(lines)), "", *lines, ""])


SYSTEMS = {
    "h2": System((("H", (0, 0, 0)), ("H", (0, 0, 0.74)))),
    "heh": System((("He", (0, 0, 0)), ("H", (0, 0, 0.77))), charge=1),
    "he": System((("He", (0, 0, 0)),), basis="6-31g"),
    "lih": System((("Li", (0, 0, 0)), ("H", (0, 0, 1.6))), frozen=(0, 1)),
    "water": System(
        (("O", (0, 0, 0.1173)), ("H", (0, 0.7572, -0.4692)), ("H", (0, -0.7572, -0.4692))), frozen=(0, 1)
    ),
}
OPEN_SYSTEMS = {
    "h": System((("H", (0, 0, 0)),), basis="6-31g", spin=1),
    "li": System((("Li", (0, 0, 0)),), spin=1, frozen=(0, 1)),
    "h2-triplet": System((("H", (0, 0, 0)), ("H", (0, 0, 0.9))), basis="6-31g", spin=2),
    "lih-cation": System((("Li", (0, 0, 0)), ("H", (0, 0, 1.6))), charge=1, spin=1, frozen=(0, 1)),
    "nh2": System(
        (("N", (0, 0, 0.14)), ("H", (0, 0.80, -0.49)), ("H", (0, -0.80, -0.49))), spin=1, frozen=(0, 1)
    ),
}
OPEN_REFERENCES = ("uhf", "rohf")
ATOMS = {"be": System((("Be", (0, 0, 0)),), frozen=(0, 1))}
"""Beside the atoms among the systems: those of which terms are calculated."""
TRIPLES = ("lih", "nh2")
"""What triples are restarted of, from integrals of an RHF and of an ROHF."""
QUICK = ("h2", "heh", "he", "lih")
RESTARTED = ("h2", "lih")
ENERGIES = "energies.json"


class World:
    """Energies and files in a folder, which `prepare` fills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mean_fields: dict[tuple[str, str], Any] = {}
        self._sectors: dict[str, Sectors] = {}

    def prepare(self) -> None:
        """Runs PySCF for the energies, and tilewise for the files."""
        from tilewise.cli import main

        energies = {}
        for name, system in SYSTEMS.items():
            self.file(f"{name}.xyz").write_text(system.xyz)
            for frozen in system.frozen:
                energies[f"{name}:{frozen}"], energies[f"{name}:{frozen}:t"] = self._oracle(name, frozen)
            _quietly(
                main, "fcidump", self.file(f"{name}.xyz"), *system.options, "--out", self.file(f"{name}.dump")
            )
        for name in RESTARTED:
            kept = ("--checkpoint", self.file(f"{name}.h5"), "--max-cycle", 3)
            _quietly(main, "ccsd", self.file(f"{name}.xyz"), *SYSTEMS[name].options, *kept)
            self._write_chkfile(name)
        for name, system in OPEN_SYSTEMS.items():
            self.file(f"{name}.xyz").write_text(system.xyz)
            self._write_open_dump(name)
            for reference in OPEN_REFERENCES:
                for frozen in system.frozen:
                    key = f"{name}:{frozen}:{reference}"
                    energies[key], energies[f"{key}:t"] = self._oracle(name, frozen, reference)
                kept = ("--checkpoint", self.file(f"{name}-{reference}.h5"), "--max-cycle", 3)
                kind = ("--reference", reference)
                _quietly(main, "ccsd", self.file(f"{name}.xyz"), *system.options, *kind, *kept)
                self._write_chkfile(name, reference, f"{name}-{reference}.chk")
        self._prepare_ci()
        self._prepare_triples()
        self.file(ENERGIES).write_text(json.dumps(energies))

    @property
    def is_prepared(self) -> bool:
        return self.file(ENERGIES).exists()  # they are written last

    def file(self, name: str) -> Path:
        return self.folder / name

    def content(self, name: str) -> bytes:
        return self.file(name).read_bytes()

    def energy(self, name: str, frozen: int = 0, reference: str = "") -> float:
        """E(CCSD) of a system by PySCF; of an open shell E(UCCSD), by the kind of its mean field."""
        return self._energies[f"{name}:{frozen}:{reference}" if reference else f"{name}:{frozen}"]

    def triples_energy(self, name: str, frozen: int = 0, reference: str = "") -> float:
        """E(CCSD(T)) of a system by PySCF; of an open shell E(UCCSD(T))."""
        return self._energies[f"{name}:{frozen}:{reference}:t" if reference else f"{name}:{frozen}:t"]

    def levels(self, name: str, frozen: int = 0, **of: Any) -> np.ndarray:
        """All energies of a sector of CI, by the arguments of `Sectors.energies`."""
        if name not in self._sectors:
            self._sectors[name] = Sectors.read(self.file(f"{name}.npz"))
        known = self._sectors[name].frozen(frozen)
        return known.energies(**of)

    @cached_property
    def _energies(self) -> dict[str, float]:
        return json.loads(self.file(ENERGIES).read_text())

    def mean_field(self, name: str, kind: str = "rhf") -> Any:
        """PySCF's mean field of a system, run once; `kind` is rhf, uhf or rohf."""
        if (name, kind) not in self._mean_fields:
            from pyscf import gto, scf

            system = (SYSTEMS | OPEN_SYSTEMS)[name]
            molecule = gto.M(
                atom=list(system.atoms), basis=system.basis, charge=system.charge, spin=system.spin,
                symmetry=True, verbose=0,
            )  # fmt: skip
            solver = {"rhf": scf.RHF, "uhf": scf.UHF, "rohf": scf.ROHF}[kind](molecule)
            self._mean_fields[name, kind] = solver.run(conv_tol=1e-12, conv_tol_grad=1e-9, chkfile=None)
        return self._mean_fields[name, kind]

    def _write_chkfile(self, name: str, kind: str = "rhf", file: str = "") -> None:
        solved = self.mean_field(name, kind)
        solved.chkfile = str(self.file(file or f"{name}.chk"))
        solved.dump_chk(vars(solved))
        solved.chkfile = None

    def _write_open_dump(self, name: str) -> None:
        """The integrals over the orbitals of an ROHF, with MS2 in the header and no irreps."""
        from pyscf import ao2mo
        from pyscf.tools import fcidump

        solved = self.mean_field(name, "rohf")
        orbitals, molecule = solved.mo_coeff, solved.mol
        fcidump.from_integrals(
            str(self.file(f"{name}.dump")), orbitals.T @ solved.get_hcore() @ orbitals,
            ao2mo.kernel(molecule, orbitals), orbitals.shape[1], molecule.nelectron,
            nuc=molecule.energy_nuc(), ms=molecule.spin, tol=1e-18,
        )  # fmt: skip

    def _prepare_ci(self) -> None:
        """Integrals to know energies by, and files of roots."""
        from tilewise.cli import main

        for name, system in (SYSTEMS | OPEN_SYSTEMS | ATOMS).items():
            Sectors.solved(system).write(self.file(f"{name}.npz"))
        for name in RESTARTED:
            kept = ("--roots", 2, "--checkpoint", self.file(f"{name}.roots.h5"))
            _quietly(main, "ci", self.file(f"{name}.dump"), *kept)

    def _prepare_triples(self) -> None:
        """Checkpoints of converged amplitudes, and the energies of triples beside them."""
        from tilewise.cli import main

        for name in TRIPLES:
            kept = ("--triples", "--checkpoint", self.file(f"{name}.ccsd.h5"), "--conv-tol-residual", 1e-8)
            _quietly(main, "ccsd", self.file(f"{name}.dump"), *kept)

    def _oracle(self, name: str, frozen: int, reference: str = "") -> tuple[float, float]:
        """E(CCSD) and E(CCSD(T))."""
        from pyscf import cc

        method, field = cc.UCCSD if reference else cc.RCCSD, self.mean_field(name, reference or "rhf")
        if reference == "rohf":
            field = _semicanonical(field, frozen)
        solver = method(field, frozen=frozen or None)
        energy = float(solver.run(conv_tol=1e-11, conv_tol_normt=1e-9, max_cycle=200).e_tot)
        return energy, energy + float(solver.ccsd_t())


def _semicanonical(field: Any, frozen: int) -> Any:
    """A UHF with the orbitals of an ROHF, turned to diagonalise the Fock matrix of their spin."""
    from pyscf import scf

    made = scf.UHF(field.mol.copy().build(False, False, symmetry=False))
    made.mo_occ = np.array([field.mo_occ > 0, field.mo_occ == 2], float)
    density = [(field.mo_coeff * own) @ field.mo_coeff.T for own in made.mo_occ]
    turned, energies = [], []
    for fock, occupied in zip(made.get_fock(dm=np.array(density)), made.mo_occ, strict=True):
        orbitals, values = np.array(field.mo_coeff), np.zeros(len(occupied))
        kept = np.arange(len(occupied)) < frozen
        for part in (kept, (occupied > 0) & ~kept, occupied == 0):
            levels, states = np.linalg.eigh(orbitals[:, part].T @ fock @ orbitals[:, part])
            orbitals[:, part], values[part] = orbitals[:, part] @ states, levels
        turned.append(orbitals)
        energies.append(values)
    made.mo_coeff, made.mo_energy = np.array(turned), np.array(energies)
    made.converged, made.e_tot = True, field.e_tot
    return made


def _quietly(main: Any, *arguments: object) -> None:
    import io
    from contextlib import redirect_stderr, redirect_stdout

    before = os.getcwd()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        main([str(argument) for argument in arguments])
    os.chdir(before)
