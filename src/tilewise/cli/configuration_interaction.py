"""`tilewise ci`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewise.cli.app import app, console_for, say
from tilewise.cli.options import (
    CALCULATION,
    ITERATIONS,
    MACHINE,
    OUTPUT,
    Basis,
    Charge,
    Frame,
    FrozenText,
    Json,
    MeanField,
    Memory,
    Multiplicity,
    Pin,
    ScfCycles,
    Spin,
    Symmetry,
    Threads,
    Unit,
)
from tilewise.errors import InputError

CISource = Annotated[
    Path,
    typer.Argument(
        help="An XYZ file, a FCIDUMP, a chkfile of PySCF, or a TOML file about an atom.",
        metavar="SOURCE",
        show_default=False,
    ),
]


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise ci neon.toml\n\n"
    "tilewise ci be.xyz --basis cc-pcvtz --rank full --term 1S --term 3Po --levels nist.txt\n\n"
    "tilewise ci water.xyz --basis cc-pvdz --rank 2 --irrep B1 --ms2 2 --roots 3\n\n"
    "tilewise ci water.fcidump --rank 4 --memory 4GB --json -\n\n"
    "tilewise ci water.xyz --rank 3 --plan                (what it would take; no integral is computed)"
)
def ci(
    source: CISource,
    rank: Annotated[
        str | None,
        typer.Option(
            help="Electrons that may leave the orbitals, or subshells, of a reference; full for all.",
            metavar="N",
            show_default="2",
            rich_help_panel=CALCULATION,
        ),
    ] = None,
    roots: Annotated[
        int | None,
        typer.Option(help="States, of each term.", min=1, show_default="1", rich_help_panel=CALCULATION),
    ] = None,
    irrep: Annotated[
        str | None,
        typer.Option(
            help="Of the states, such as B1.", show_default="the reference's", rich_help_panel=CALCULATION
        ),
    ] = None,
    ms2: Annotated[
        int | None,
        typer.Option(
            "--ms2",
            help="Unpaired electrons of the determinants, 2 M_S.",
            min=0,
            show_default="the mean field's",
            rich_help_panel=CALCULATION,
        ),
    ] = None,
    term: Annotated[
        list[str] | None,
        typer.Option(
            help="Of an atom, such as 1S or 3Po; may be given several times.",
            metavar="TERM",
            rich_help_panel=CALCULATION,
        ),
    ] = None,
    configuration: Annotated[
        list[str] | None,
        typer.Option(
            help='Reference: of an atom such as "1s2 2s2", of a molecule such as 2220; may be given again.',
            metavar="TEXT",
            show_default="ground state",
            rich_help_panel=CALCULATION,
        ),
    ] = None,
    max_n: Annotated[
        int | None,
        typer.Option(help="Of an atom: the largest n of orbitals.", min=1, rich_help_panel=CALCULATION),
    ] = None,
    max_l: Annotated[
        int | None,
        typer.Option(help="Of an atom: the largest l of orbitals.", min=0, rich_help_panel=CALCULATION),
    ] = None,
    basis: Basis = None,
    charge: Charge = None,
    spin: Spin = None,
    multiplicity: Multiplicity = None,
    reference: MeanField = None,
    unit: Unit = None,
    frame: Frame = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    threads: Threads = None,
    memory: Memory = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="How columns are shared: any policy that tilewise ccsd knows, with parameters.",
            show_default="factoring(f=2, delta=0.02)",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    pin: Pin = False,
    direct: Annotated[
        bool,
        typer.Option(
            "--direct", help="Store no column: make them again in each product.", rich_help_panel=MACHINE
        ),
    ] = False,
    conv_tol: Annotated[
        float, typer.Option(help="Change of the energies in hartree.", rich_help_panel=ITERATIONS)
    ] = 1e-9,
    conv_tol_residual: Annotated[
        float, typer.Option(help="Norm of the residuals.", rich_help_panel=ITERATIONS)
    ] = 1e-5,
    max_cycle: Annotated[int, typer.Option(help="Cycles at most.", min=1, rich_help_panel=ITERATIONS)] = 60,
    scf_max_cycle: ScfCycles = 100,
    levels: Annotated[
        Path | None,
        typer.Option(
            help="Known levels to set beside: a term and its energy in cm^-1 in each line.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File for the roots, written now and then.", metavar="FILE", rich_help_panel=OUTPUT
        ),
    ] = None,
    restart: Annotated[
        Path | None, typer.Option(help="File of roots to start from.", metavar="FILE", rich_help_panel=OUTPUT)
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what it would take, and end.", rich_help_panel=OUTPUT)
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Trace of the columns, for tilewise report and Perfetto.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Configuration interaction of an atom, a molecule or a FCIDUMP file, by self-scheduled columns."""
    from tilewise.ci.calculation import DEFAULT_POLICY
    from tilewise.cli.ci_inputs import AtomOptions, MoleculeOptions, atoms_of, molecules_of
    from tilewise.cli.inputs import Calculation, parse_frozen, parse_spin
    from tilewise.cli.run_ci import CIFiles, run_ci
    from tilewise.config import thread_limits, threads_note
    from tilewise.execute.mpi.world import world

    files = CIFiles(checkpoint, restart, json, trace, levels)
    files.check()
    settings = {
        "threads": threads,
        "policy": policy or DEFAULT_POLICY,
        "pin": pin,
        "memory": memory,
        "direct": True if direct else None,
        "conv_tol": conv_tol,
        "conv_tol_residual": conv_tol_residual,
        "max_cycle": max_cycle,
    }
    console = console_for(json)
    if source.suffix.lower() == ".toml" or term:
        molecular = {"--irrep": irrep, "--ms2": ms2, "--spin": spin, "--multiplicity": multiplicity}
        for option, value in (molecular | {"--reference": reference}).items():
            if value is not None:
                raise InputError(f"{option} {value}: of an atom say --term instead, such as 3Po")
        asked = AtomOptions(
            rank, roots, term, configuration, max_n, max_l, basis, charge, frozen, policy, memory, threads
        )
        return run_ci(atoms_of(source, asked, files, settings), files, console, plan)
    for option, value in (("--max-n", max_n), ("--max-l", max_l)):
        if value is not None:
            raise InputError(f"{option} {value}: it is for atoms, which have a --term or come in a TOML file")
    n_spin = parse_spin(spin, multiplicity)
    calculation = Calculation(
        source,
        basis,
        charge,
        parse_frozen(frozen),
        symmetry,
        unit=unit,
        frame=frame,
        spin=n_spin,
        reference_kind=reference or ("rohf" if n_spin else None),
    )
    with thread_limits(world().threads(threads)):
        say(console, *calculation.notes, threads_note(threads))
        wanted = MoleculeOptions(rank, roots, irrep, ms2, configuration, scf_max_cycle)
        return run_ci(molecules_of(calculation, wanted, files, settings, plan), files, console, plan)
