"""What `tilewise ci` calculates: one `CI` for a molecule, one for each term of an atom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewise.chem.configurations import configuration_text, ground_configuration
from tilewise.ci import CI
from tilewise.ci.inputs import AtomInput, parse_rank, read_atom
from tilewise.cli.inputs import DEFAULT_BASIS, Calculation
from tilewise.config import parse_memory
from tilewise.errors import InputError
from tilewise.execute.mpi.world import world


@dataclass(frozen=True)
class AtomOptions:
    """Of the command line; None where a TOML file or a default decides."""

    rank: str | None
    roots: int | None
    terms: Sequence[str] | None
    configurations: Sequence[str] | None
    max_n: int | None
    max_l: int | None
    basis: str | None
    charge: int | None
    frozen: str
    policy: str | None
    memory: str | None
    threads: int | None


@dataclass(frozen=True)
class MoleculeOptions:
    rank: str | None
    roots: int | None
    irrep: str | None
    ms2: int | None
    occupations: Sequence[str] | None
    scf_max_cycle: int


@dataclass(frozen=True)
class Run:
    """A calculation that is yet to be made: the SCF of a molecule comes first."""

    name: str
    """Of the term, or nothing."""
    make: Callable[[], CI]
    planned: CI | None = None
    """Before the SCF: its plan can be told, no more."""
    levels: Path | None = None


def atoms_of(source: Path, options: AtomOptions, files: Any, settings: dict[str, Any]) -> list[Run]:
    """A run for each term; the SCF is shared."""
    given = _atom_input(source, options)
    settings = settings | {
        "policy": options.policy or given.policy or settings["policy"],
        "memory": given.memory if options.memory is None else options.memory,
        "threads": given.threads if options.threads is None else options.threads,
    }
    shared: dict[str, Any] = {}

    def calculation(term: str | None) -> CI:
        made = CI.atom(
            given.atom,
            basis=given.basis,
            reference=given.reference,
            charge=given.charge,
            frozen=given.frozen,
            rank=given.rank,
            n=given.max_n,
            l=given.max_l,
            term=term,
            roots=given.roots,
            checkpoint=files.checkpoint_of(term if len(given.terms) > 1 else None),
            restart=files.restart_of(term if len(given.terms) > 1 else None),
            **settings,
        )
        return _sharing(made, shared)

    terms: list[str | None] = [*given.terms] or [None]
    runs = []
    for term in terms:
        made = calculation(term)
        runs.append(Run(term or "", lambda made=made: made, made, given.levels))  # type: ignore[misc]
    return runs


def _sharing(made: CI, shared: dict[str, Any]) -> CI:
    """All terms have the orbitals of one SCF."""
    made.problem = replace(made.problem, _solved=shared)  # type: ignore[type-var]
    return made


def _atom_input(source: Path, options: AtomOptions) -> AtomInput:
    """A TOML file, or an XYZ file with one atom, and what the options say instead."""
    if source.suffix.lower() == ".toml":
        given = read_atom(source)
    else:
        from tilewise.chem.xyz import read_xyz

        atoms, _ = read_xyz(source, None)
        if len(atoms) != 1:
            raise InputError(
                f"--term: {source.name} has {len(atoms)} atoms, and a term is that of a single one"
            )
        given = AtomInput(str(atoms[0][0]), DEFAULT_BASIS)
    changed: dict[str, Any] = {
        "basis": options.basis,
        "charge": options.charge,
        "rank": options.rank,
        "roots": options.roots,
        "max_n": options.max_n,
        "max_l": options.max_l,
        "terms": tuple(options.terms) if options.terms else None,
        "reference": tuple(options.configurations) if options.configurations else None,
        "frozen": None if options.frozen == "0" else tuple(options.frozen.replace(",", " ").split()),
    }
    given = replace(given, **{key: value for key, value in changed.items() if value is not None})
    if options.rank is not None:
        given = replace(given, rank=parse_rank(options.rank))
    if not given.reference:
        from tilewise.chem.pyscf_atom import build_atom

        electrons = int(build_atom(given.atom, given.basis, given.charge).nelectron)
        given = replace(given, reference=(configuration_text(ground_configuration(electrons)),))
    return given


def molecules_of(
    calculation: Calculation, options: MoleculeOptions, files: Any, settings: dict[str, Any], planning: bool
) -> list[Run]:
    """One run; before the SCF its plan is that of the orbitals that are guessed to be filled."""

    def made(source: Any) -> CI:
        return CI(
            source,
            rank=parse_rank(options.rank or 2),
            roots=options.roots or 1,
            irrep=options.irrep,
            spin=options.ms2,
            reference=options.occupations or None,
            checkpoint=files.checkpoint_of(None),
            restart=files.restart_of(None),
            **settings,
        )

    def solved() -> CI:
        ranks = world()
        budget = parse_memory(settings["memory"]) if settings["memory"] else ranks.default_budget()
        shared = ranks if ranks.size > 1 else None
        threads = ranks.threads(settings["threads"])
        return made(calculation.reference(options.scf_max_cycle, budget, ranks=shared, threads=threads))

    planned = made(calculation.outline) if not options.occupations or planning else None
    return [Run("", solved, planned)]
