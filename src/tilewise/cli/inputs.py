"""What the command line calculates: from a file and a few words to a plan, and on to a Reference."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.arguments import digits
from tilewise.chem.basis_names import auxiliary_name, parse_basis
from tilewise.chem.identity import OrbitalIdentity
from tilewise.chem.open_shell import AnyReference
from tilewise.chem.reference import Outline
from tilewise.chem.selection import REFERENCES, Frozen
from tilewise.chem.sources import share_source
from tilewise.chem.xyz import ANGSTROM, GHOST, UNITS, contradicted_unit, read_xyz
from tilewise.config import thread_limits
from tilewise.errors import CheckpointError, InputError, one_of
from tilewise.execute.mpi.world import World
from tilewise.lazy import cached_property
from tilewise.methods.checkpoint import Checkpoint
from tilewise.symmetry.groups import group_named

Progress = Callable[[int, float, float], None]
"""Called in each cycle of the SCF with its number, the energy and the change."""

DEFAULT_BASIS = "cc-pvdz"
STANDARD_INPUT = "-"
EXACT, DENSITY_FITTING, CHOLESKY = "exact", "density fitting", "cholesky"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")  # of a molecule rather than of a file
_HDF5 = b"\x89HDF\r\n\x1a\n"  # what a chkfile of PySCF begins with
_HEADER_BYTES = 4096  # a FCIDUMP names itself in its first lines


@dataclass(frozen=True)
class IntegralKind:
    """How the two-electron integrals of CCSD are made, in words; those of the SCF are always exact."""

    kind: str = EXACT
    auxbasis: str | None = None
    threshold: float | None = None

    @property
    def text(self) -> str:
        if self.auxbasis is not None:
            return f"density fitting, auxiliary basis {self.auxbasis}"
        if self.threshold is not None:
            threshold = np.format_float_scientific(self.threshold, trim="-", exp_digits=1)
            return f"Cholesky decomposition, threshold {threshold}"
        return self.kind


@dataclass(frozen=True)
class Calculation:
    """A molecule (XYZ file), an SCF of PySCF (chkfile) or integrals (FCIDUMP), and how to treat them."""

    source: Path
    basis: str | None = None
    """A name, or names for some elements: "cc-pvdz,O=aug-cc-pvdz"."""
    charge: int | None = None
    frozen: Frozen = None
    symmetry: str = "auto"
    fitting: bool | str | float = False
    """True or an auxiliary basis for density fitting, or the threshold of a Cholesky decomposition."""
    unit: str | None = None
    frame: int | None = None
    """Which geometry of an XYZ file that holds several."""
    spin: int | None = None
    """Unpaired electrons."""
    reference_kind: str | None = None
    """Of the mean field: "rhf", "uhf" or "rohf"."""

    def __post_init__(self) -> None:
        if not self.source.is_file():
            what = "is not a file" if self.source.exists() else "no such file"
            near = sorted(path.name for path in self.source.parent.glob("*.xyz"))
            there = f"; in this folder are {', '.join(near)}" if near else ""
            raise InputError(
                f"{self.source}: {what}; an XYZ, a FCIDUMP or a chkfile of PySCF is needed{there}"
            )
        if self.symmetry.lower() != "auto":
            group_named(self.symmetry)
        if self.unit is not None and self.unit.lower() not in UNITS:
            raise one_of("unit", self.unit, UNITS)
        if self.reference_kind is not None and self.reference_kind.lower() not in REFERENCES:
            raise one_of("reference", self.reference_kind, REFERENCES)
        if self.is_fcidump or self.is_chkfile:
            kind = "FCIDUMP" if self.is_fcidump else "chkfile"
            own = {"--basis": self.basis, "--charge": self.charge, "--spin": self.spin}
            for option, value in (own | {"--reference": self.reference_kind}).items():
                if value is not None:
                    raise InputError(f"{option} {value}: {self.source.name} is a {kind}, which has its own")
            for option, value in (("--unit", self.unit), ("--frame", self.frame)):
                if value is not None:
                    raise InputError(f"{option} {value}: {self.source.name} is a {kind}, not an XYZ file")
        if self.is_fcidump:
            if self.fitting is not False:
                raise InputError(
                    f"{_fitting_option(self.fitting)}: {self.source.name} is a FCIDUMP, "
                    "and to fit integrals a molecule is needed (an XYZ file)"
                )
        else:
            import_module("tilewise.chem.pyscf_source")  # now, so that `thread_limits` finds PySCF's threads

    @cached_property
    def is_fcidump(self) -> bool:
        """Decided by the content, whatever the file is called."""
        with open(self.source, "rb") as file:
            head = file.read(_HEADER_BYTES).upper()
        return b"&FCI" in head or b"$FCI" in head

    @cached_property
    def is_chkfile(self) -> bool:
        """Whether PySCF has run the SCF and kept its results in this file; decided by the content."""
        with open(self.source, "rb") as file:
            return file.read(len(_HDF5)) == _HDF5

    @property
    def runs_scf(self) -> bool:
        return not (self.is_fcidump or self.is_chkfile)

    @cached_property
    def molecule(self) -> Any:
        """PySCF's molecule, always in the largest abelian group: restarts in a subgroup need its orbitals."""
        if self.is_chkfile:
            return self._restored.mol
        from tilewise.chem.pyscf_molecule import build_molecule

        return build_molecule(
            self.source,
            self._basis,
            self.charge or 0,
            unit=self._unit,
            frame=self.frame,
            spin=self.spin or 0,
        )

    @property
    def _basis(self) -> str | dict[str, str]:
        return parse_basis(DEFAULT_BASIS if self.basis is None else self.basis)

    @property
    def _unit(self) -> str:
        return (self.unit or ANGSTROM).lower()

    @cached_property
    def notes(self) -> list[str]:
        """What looks odd about the input, but is taken as it is."""
        if self.is_fcidump or self.is_chkfile:
            return []
        name, notes = self.source.name, []
        atoms, comment = read_xyz(self.source, self.frame)
        other = contradicted_unit(comment, self._unit)
        if other is not None and self.unit is None:
            notes.append(
                f"the comment of {name} speaks of {other}, but coordinates are read in {self._unit}: "
                f"give --unit {other} or --unit {self._unit} to say which is right"
            )
        named = [] if isinstance(self._basis, str) else [*self._basis]
        unused = set(named) - {"default"} - {symbol.removeprefix(GHOST) for symbol, _ in atoms}
        unused -= {symbol for symbol, _ in atoms}
        if unused:
            notes.append(f"{name} has no {', '.join(sorted(unused))}: a basis given for it is not used")
        return notes

    @cached_property
    def outline(self) -> Outline:
        """Orbital counts, before any integral of the molecule is computed."""
        if self.is_fcidump:
            return self._integral_file.outline
        from tilewise.chem.pyscf_source import outline, outline_of_orbitals

        if self.is_chkfile:
            return outline_of_orbitals(
                self._restored, self.frozen, self.symmetry, self.source.name, self.fitting
            )
        full = outline(
            self.molecule,
            self.frozen,
            title=self.source.name,
            fitting=self.fitting,
            reference=self.reference_kind,
        )
        if self.symmetry.lower() == "auto":
            return full
        wanted = group_named(self.symmetry).name
        if wanted not in full.group.subgroups:
            raise InputError(
                f"{self.source.name}: the molecule lacks the symmetry {wanted}; "
                f"valid are auto, {', '.join(full.group.subgroups)}"
            )
        return full.restrict(wanted)

    @cached_property
    def integrals(self) -> IntegralKind:
        """What is done with the integrals; an unknown auxiliary basis is refused before the SCF."""
        if self.fitting is False:
            return IntegralKind()
        if isinstance(self.fitting, float):
            return IntegralKind(CHOLESKY, threshold=self.fitting)
        from tilewise.chem.pyscf_integrals import auxiliary_basis

        auxiliary = auxiliary_basis(self.molecule, self.fitting)
        return IntegralKind(DENSITY_FITTING, auxbasis=auxiliary_name(auxiliary))

    def known_orbitals(self, path: Path) -> tuple[OrbitalIdentity, ...]:
        """The orbitals of a restart file; a damaged one, or one of other atoms, is refused before the SCF."""
        every = Checkpoint.read(path).identities
        saved = every[0]
        if self.is_fcidump or saved.kind != "molecule":
            return every
        from tilewise.chem.pyscf_functions import atoms_and_charge

        atoms = " ".join(atoms_and_charge(self.molecule))
        if saved.atoms != atoms:
            raise CheckpointError(
                f"{path}: the restart file is of another molecule: {saved.atoms} there, {atoms} here"
            )
        return every

    def reference(
        self,
        max_cycle: int,
        max_memory: int,
        progress: Progress | None = None,
        known: tuple[OrbitalIdentity, ...] = (),
        ranks: World | None = None,
        threads: int = 1,
    ) -> AnyReference:
        """Orbitals and integrals; runs the SCF unless they come from a file, on rank 0 for all of some ranks.
        What it did otherwise than usual is added to the notes.

        Meanwhile the ranks of its node lend it their threads, so many from each. Degenerate orbitals are made
        to agree with `known` ones, those of a restart file.
        """
        if self.is_fcidump:
            return self._integral_file
        from tilewise.chem.pyscf_source import from_mean_field, run_scf, unsolved

        if self.is_chkfile:
            mean_field = self._solution(max_memory)
        elif ranks and ranks.rank:
            mean_field = unsolved(self.molecule, max_memory, self.reference_kind)
        else:
            with thread_limits(threads * len(ranks.local_ranks)) if ranks else nullcontext():
                mean_field = run_scf(
                    self.molecule,
                    max_cycle=max_cycle,
                    max_memory=max_memory,
                    progress=progress,
                    reference=self.reference_kind,
                    note=self.notes.append,
                )
        if known and not (ranks and ranks.rank):
            mean_field.mo_coeff = _aligned(mean_field, known)
        if ranks:
            share_source(mean_field, ranks.bcast, ranks.rank)
        return from_mean_field(
            mean_field, self.frozen, self.symmetry, title=self.source.name, fitting=self.fitting
        )

    def _solution(self, max_memory: int) -> Any:
        """The mean field of a chkfile, once its orbitals are known to be right."""
        from tilewise.chem.pyscf_chkfile import check_solution

        self._restored.max_memory = max_memory / 1e6
        check_solution(self._restored, self.source.name)
        return self._restored

    @cached_property
    def _restored(self) -> Any:
        from tilewise.chem.pyscf_chkfile import restored_mean_field

        return restored_mean_field(self.source)

    @cached_property
    def _integral_file(self) -> AnyReference:
        from tilewise.chem.fcidump import read_fcidump

        return read_fcidump(self.source, self.frozen, self.symmetry)


def _aligned(mean_field: Any, known: tuple[OrbitalIdentity, ...]) -> np.ndarray:
    """The orbitals of a mean field, those of each spin, as they agree best with known ones."""
    coefficients, energies = np.asarray(mean_field.mo_coeff), np.asarray(mean_field.mo_energy)
    if coefficients.ndim == 2:
        return known[0].align(coefficients, energies)
    each = zip((known[0], known[-1]), coefficients, energies, strict=True)
    return np.array([own.align(c, e) for own, c, e in each])


def outline_of_source(
    source: Path, frozen: Frozen, symmetry: str, **options: Any
) -> tuple[Outline, list[str]]:
    """Of a file, or of a molecule that is known by its orbitals, such as water-10; and notes for the user.

    `options` are those that a geometry has besides: basis, charge, unit, frame, spin, reference_kind.
    """
    if source.exists() or not _NAME.fullmatch(str(source)):
        calculation = Calculation(source, frozen=frozen, symmetry=symmetry, **options)
        return calculation.outline, calculation.notes
    from tilewise.chem.orbital_source import orbital_outline

    found = orbital_outline(str(source), frozen, symmetry)
    for option, value in options.items():
        if value is not None:
            option = option.removesuffix("_kind")
            raise InputError(f"--{option} {value}: {source} is known by its orbitals alone, in {found.basis}")
    return found, []


def source_file(source: Path) -> Path:
    """The file itself, or for "-" one with what comes from the standard input, removed at the end."""
    if str(source) != STANDARD_INPUT:
        return source
    if sys.stdin is None:
        raise InputError("-: the standard input is closed; an XYZ or FCIDUMP is expected there")
    folder = Path(tempfile.mkdtemp(prefix="tilewise-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "stdin"
    file.write_bytes(sys.stdin.buffer.read())
    return file


def parse_fitting(df: bool, auxbasis: str | None, cholesky: float | None) -> bool | str | float:
    """One wish from three options."""
    if cholesky is None:
        return df if auxbasis is None else auxbasis
    if df or auxbasis is not None:
        option = _fitting_option(df if auxbasis is None else auxbasis)
        raise InputError(f"{option} and --cholesky exclude each other: choose one")
    if not 0 < cholesky < 1:
        raise InputError(f"--cholesky {cholesky:g}: a number between 0 and 1 is expected, such as 1e-6")
    return float(cholesky)


def _fitting_option(fitting: bool | str | float) -> str:
    if isinstance(fitting, str):
        return "--auxbasis"
    return "--cholesky" if isinstance(fitting, float) else "--df"


def parse_spin(spin: int | None, multiplicity: int | None) -> int | None:
    """Unpaired electrons, from one of two options."""
    if multiplicity is None:
        return spin
    if spin is not None and spin != multiplicity - 1:
        raise InputError(
            f"--spin {spin} is a multiplicity of {spin + 1}, not {multiplicity}: give one of the two options"
        )
    return multiplicity - 1


def parse_tiles(text: str) -> list[int]:
    """ "16" or "16,32": orbitals per tile."""
    found = [digits(word.strip()) or 0 for word in text.split(",")]
    if not all(found):
        raise InputError(f"--tile {text}: whole numbers from 1 up are expected, such as 16 or 16 32")
    return found


def parse_frozen(text: str) -> Frozen:
    """ "auto", "none", "2" (that many of the lowest) or "0,1,5" (these orbitals, counted from 0)."""
    words = [word.strip() for word in text.split(",")]
    if text.strip().lower() in ("auto", "none"):
        return "auto" if text.strip().lower() == "auto" else 0
    try:
        numbers = [int(word) for word in words if word]
    except ValueError:
        numbers = []
    if not numbers:
        raise InputError(
            f"--frozen {text}: expected none, auto, a number such as 2, or orbitals such as 0,1,5"
        )
    return numbers if "," in text else numbers[0]
