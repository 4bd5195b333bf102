"""Small molecules with energies by PySCF, and whole files to be damaged: what all cases start from."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class System:
    """A molecule in a basis, with the numbers of frozen orbitals that are tried."""

    atoms: tuple[tuple[str, tuple[float, float, float]], ...]
    basis: str = "sto-3g"
    charge: int = 0
    frozen: tuple[int, ...] = (0,)

    @property
    def options(self) -> tuple[str, ...]:
        """Of the command line, to compute it."""
        return ("--basis", self.basis, *(("--charge", str(self.charge)) if self.charge else ()))

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
QUICK = ("h2", "heh", "he", "lih")
RESTARTED = ("h2", "lih")
ENERGIES = "energies.json"


class World:
    """Energies and files in a folder, which `prepare` fills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mean_fields: dict[str, Any] = {}

    def prepare(self) -> None:
        """Runs PySCF for the energies, and tilewise for the files."""
        from tilewise.cli import main

        energies = {}
        for name, system in SYSTEMS.items():
            self.file(f"{name}.xyz").write_text(system.xyz)
            for frozen in system.frozen:
                energies[f"{name}:{frozen}"] = self._oracle(name, frozen)
            _quietly(
                main, "fcidump", self.file(f"{name}.xyz"), *system.options, "--out", self.file(f"{name}.dump")
            )
        for name in RESTARTED:
            kept = ("--checkpoint", self.file(f"{name}.h5"), "--max-cycle", 3)
            _quietly(main, "ccsd", self.file(f"{name}.xyz"), *SYSTEMS[name].options, *kept)
            self._write_chkfile(name)
        self.file(ENERGIES).write_text(json.dumps(energies))

    def file(self, name: str) -> Path:
        return self.folder / name

    def content(self, name: str) -> bytes:
        return self.file(name).read_bytes()

    def energy(self, name: str, frozen: int = 0) -> float:
        """E(CCSD) of a system by PySCF."""
        return self._energies[f"{name}:{frozen}"]

    @cached_property
    def _energies(self) -> dict[str, float]:
        return json.loads(self.file(ENERGIES).read_text())

    def mean_field(self, name: str) -> Any:
        """PySCF's RHF of a system, run once."""
        if name not in self._mean_fields:
            from pyscf import gto, scf

            system = SYSTEMS[name]
            molecule = gto.M(
                atom=list(system.atoms), basis=system.basis, charge=system.charge, symmetry=True, verbose=0
            )
            self._mean_fields[name] = scf.RHF(molecule).run(conv_tol=1e-12, conv_tol_grad=1e-9, chkfile=None)
        return self._mean_fields[name]

    def _write_chkfile(self, name: str) -> None:
        solved = self.mean_field(name)
        solved.chkfile = str(self.file(f"{name}.chk"))
        solved.dump_chk(vars(solved))
        solved.chkfile = None

    def _oracle(self, name: str, frozen: int) -> float:
        from pyscf import cc

        solver = cc.RCCSD(self.mean_field(name), frozen=frozen or None)
        return float(solver.run(conv_tol=1e-11, conv_tol_normt=1e-9, max_cycle=200).e_tot)


def _quietly(main: Any, *arguments: object) -> None:
    import io
    from contextlib import redirect_stderr, redirect_stdout

    before = os.getcwd()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        main([str(argument) for argument in arguments])
    os.chdir(before)
