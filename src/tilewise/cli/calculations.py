"""`tilewise ccsd`, `plan` and `fcidump`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from tilewise.cli.app import app, console_for, say, say_of_wisdom
from tilewise.cli.options import (
    CALCULATION,
    ITERATIONS,
    MACHINE,
    OUTPUT,
    Basis,
    Charge,
    Deterministic,
    DiisSpace,
    Frame,
    FrozenText,
    Json,
    MachineName,
    MeanField,
    Memory,
    Multiplicity,
    Pattern,
    Pin,
    Policy,
    Ranks,
    ScfCycles,
    Source,
    Spin,
    StoreName,
    Symmetry,
    Threads,
    Tile,
    TripleExcitations,
    Unit,
    Verbose,
    Workers,
)
from tilewise.errors import InputError, UnwrittenFileError, one_of

NAMELESS = "no checkpoint is written, for the standard input has no name: give one with --checkpoint FILE"


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise ccsd water.xyz --basis cc-pvtz --frozen auto\n\n"
    "tilewise ccsd water.xyz --basis cc-pvtz --df\n\n"
    "tilewise ccsd water.xyz --triples\n\n"
    "tilewise ccsd water.xyz --charge 1 --spin 1 --reference rohf\n\n"
    "tilewise ccsd water.xyz --threads 4 --memory 8GB --json water.json\n\n"
    "tilewise ccsd water.xyz --restart water.tilewise.h5 --conv-tol 1e-10\n\n"
    "tilewise ccsd integrals.fcidump --no-checkpoint"
)
def ccsd(
    source: Source,
    basis: Basis = None,
    charge: Charge = None,
    spin: Spin = None,
    multiplicity: Multiplicity = None,
    reference: MeanField = None,
    unit: Unit = None,
    frame: Frame = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    df: Annotated[
        bool,
        typer.Option(
            "--df",
            help="Density fitting of the integrals, in PySCF's default auxiliary basis; the SCF stays exact.",
            rich_help_panel=CALCULATION,
        ),
    ] = False,
    auxbasis: Annotated[
        str | None,
        typer.Option(
            help="Density fitting in this auxiliary basis, such as cc-pvdz-ri.",
            metavar="NAME",
            rich_help_panel=CALCULATION,
        ),
    ] = None,
    cholesky: Annotated[
        float | None,
        typer.Option(
            help="Cholesky decomposition of the integrals, with this threshold, such as 1e-6.",
            metavar="THRESHOLD",
            rich_help_panel=CALCULATION,
        ),
    ] = None,
    triples: TripleExcitations = False,
    tile: Tile = None,
    threads: Threads = None,
    memory: Memory = None,
    policy: Policy = "dataflow",
    pin: Pin = False,
    deterministic: Deterministic = False,
    pattern: Pattern = "cache",
    store: StoreName = "auto",
    conv_tol: Annotated[
        float, typer.Option(help="Change of the energy in hartree.", rich_help_panel=ITERATIONS)
    ] = 1e-8,
    conv_tol_residual: Annotated[
        float, typer.Option(help="Norm of the residual.", rich_help_panel=ITERATIONS)
    ] = 1e-6,
    max_cycle: Annotated[
        int, typer.Option(help="Iterations at most.", min=1, rich_help_panel=ITERATIONS)
    ] = 50,
    level_shift: Annotated[
        float, typer.Option(help="Added to the gaps, in hartree.", rich_help_panel=ITERATIONS)
    ] = 0.0,
    diis_space: DiisSpace = 10,
    scf_max_cycle: ScfCycles = 100,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File written after each iteration.",
            metavar="FILE",
            show_default="SOURCE's name, .tilewise.h5",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    no_checkpoint: Annotated[
        bool, typer.Option("--no-checkpoint", help="Write none.", rich_help_panel=OUTPUT)
    ] = False,
    restart: Annotated[
        Path | None,
        typer.Option(help="Checkpoint to start from.", metavar="FILE", rich_help_panel=OUTPUT),
    ] = None,
    json: Json = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Trace of all tasks, for tilewise report and Perfetto.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    verbose: Verbose = False,
) -> int:
    """CCSD or CCSD(T) energy of a molecule or of a FCIDUMP file, with a closed or an open shell."""
    from tilewise.cli.inputs import (
        STANDARD_INPUT,
        Calculation,
        parse_fitting,
        parse_frozen,
        parse_spin,
        source_file,
    )
    from tilewise.cli.run_ccsd import Files, Settings, run_ccsd
    from tilewise.config import processor_of_each, thread_limits, threads_note
    from tilewise.execute.mpi.stores import STORES, kind_of
    from tilewise.execute.mpi.world import world
    from tilewise.methods.checkpoint_file import CheckpointFile
    from tilewise.methods.plan import plan_outline
    from tilewise.methods.ranks import PATTERNS

    for option, value in (("--conv-tol", conv_tol), ("--conv-tol-residual", conv_tol_residual)):
        if not 0 < value < math.inf:
            raise InputError(f"{option} {value}: a positive number is expected")
    if not 0 <= level_shift < math.inf:
        raise InputError(f"--level-shift {level_shift}: a number from 0 up is expected")
    fitting = parse_fitting(df, auxbasis, cholesky)
    if no_checkpoint and checkpoint:
        raise InputError("--checkpoint and --no-checkpoint exclude each other")
    is_nameless = str(source) == STANDARD_INPUT
    kept = CheckpointFile(checkpoint) if checkpoint else CheckpointFile.of_input(source, frame)
    has_none = no_checkpoint or (is_nameless and not checkpoint)
    files = Files(None if has_none else kept, restart, json, trace)
    files.check()
    ranks = world()
    for name, chosen, valid in (("--pattern", pattern, PATTERNS), ("--store", store, STORES)):
        if chosen not in valid:
            raise one_of(name, chosen, valid)
    settings = Settings(
        conv_tol, conv_tol_residual, max_cycle, level_shift, scf_max_cycle, pin, ranks, pattern, store
    )
    workers = ranks.threads(threads)
    if pin:
        processor_of_each(workers)  # refused now rather than after the SCF
    calculation = Calculation(
        source_file(source),
        basis,
        charge,
        parse_frozen(frozen),
        symmetry,
        fitting,
        unit,
        frame,
        parse_spin(spin, multiplicity),
        reference,
    )
    with thread_limits(workers):
        outline, console = calculation.outline, console_for(json)
        say(console, *calculation.notes, threads_note(threads))
        if is_nameless and has_none and not no_checkpoint:
            say(console, NAMELESS)
        if ranks.rank == 0:
            say_of_wisdom(console)
        ranks.barrier()  # others read what rank 0 has measured
        made = plan_outline(
            outline,
            threads=workers,
            policy=policy,
            tile=tile,
            memory=memory,
            budget=ranks.default_budget() if memory is None else None,
            diis_space=diis_space,
            deterministic=deterministic,
            ranks=ranks.size,
            on_one_node=ranks.size > 1 and kind_of(ranks, store) == "shared",
            triples=triples,
        )
        return run_ccsd(calculation, made, settings, files, console, verbose)


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise plan benzene.xyz --frozen auto\n\n"
    "tilewise plan benzene.xyz --tile 16 32              (granularity of tiles of 16 and of 32 orbitals)\n\n"
    "tilewise plan benzene.xyz --machine fusion --workers 8:512       (how it would run there)\n\n"
    "tilewise plan benzene.xyz --ranks 4 --threads 8 --memory 60GB     (on four nodes, under mpiexec)\n\n"
    "tilewise plan benzene.xyz --basis cc-pvtz --symmetry C1 --threads 64 --memory 200GB --json -"
)
def plan(
    source: Source,
    basis: Basis = None,
    charge: Charge = None,
    spin: Spin = None,
    multiplicity: Multiplicity = None,
    reference: MeanField = None,
    unit: Unit = None,
    frame: Frame = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    tile: Annotated[
        str | None,
        typer.Option(
            help="Orbitals per tile, at most; several, such as 16 32, to compare the tasks they make.",
            show_default="16",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    triples: TripleExcitations = False,
    threads: Threads = None,
    ranks: Ranks = 1,
    memory: Memory = None,
    policy: Policy = "dataflow",
    machine: MachineName = None,
    workers: Workers = None,
    deterministic: Deterministic = False,
    diis_space: DiisSpace = 10,
    json: Json = None,
    verbose: Verbose = False,
) -> int:
    """What a CCSD or CCSD(T) calculation would take: memory, flops, tasks, time. No integral is computed."""
    from tilewise.cli.inputs import Calculation, parse_frozen, parse_spin, parse_tiles, source_file
    from tilewise.cli.run_plan import parse_elsewhere, run_plan
    from tilewise.config import resolve_threads, thread_limits, threads_note
    from tilewise.methods.plan import plan_outline
    from tilewise.output_files import check_target

    check_target("--json", json)
    tiles = parse_tiles(tile) if tile else []
    elsewhere = parse_elsewhere(machine, workers, threads)
    n_threads = resolve_threads(threads)
    calculation = Calculation(
        source_file(source),
        basis,
        charge,
        parse_frozen(frozen),
        symmetry,
        unit=unit,
        frame=frame,
        spin=parse_spin(spin, multiplicity),
        reference_kind=reference,
    )
    with thread_limits(n_threads):
        outline, console = calculation.outline, console_for(json)
        say(console, *calculation.notes, threads_note(threads))
        say_of_wisdom(console)
        made = plan_outline(
            outline,
            threads=n_threads,
            policy=policy,
            tile=tiles[0] if tiles else None,
            memory=memory,
            diis_space=diis_space,
            deterministic=deterministic,
            ranks=ranks,
            triples=triples,
        )
        return run_plan(made, tiles, elsewhere, console, json, verbose)


@app.command()
def fcidump(
    source: Source,
    out: Annotated[Path, typer.Option(help="The FCIDUMP to write.", metavar="FILE", rich_help_panel=OUTPUT)],
    basis: Basis = None,
    charge: Charge = None,
    unit: Unit = None,
    frame: Frame = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    threads: Threads = None,
    memory: Memory = None,
    scf_max_cycle: ScfCycles = 100,
) -> int:
    """Write the integrals over the active SCF orbitals of a molecule as a FCIDUMP file."""
    from tilewise.chem.fcidump import write_fcidump
    from tilewise.chem.reference import Reference
    from tilewise.cli.inputs import Calculation, parse_frozen, source_file
    from tilewise.cli.progress import Progress
    from tilewise.config import default_memory, parse_memory, resolve_threads, thread_limits, threads_note
    from tilewise.output_files import check_target, replacing
    from tilewise.wording import counted

    check_target("--out", str(out))
    calculation = Calculation(
        source_file(source),
        basis,
        charge,
        parse_frozen(frozen),
        symmetry,
        unit=unit,
        frame=frame,
    )
    workers, budget = resolve_threads(threads), parse_memory(memory) if memory else default_memory()
    console = console_for(None)
    say(console, *calculation.notes, threads_note(threads))
    with thread_limits(workers), Progress(console) as progress:
        progress("SCF")
        reference = calculation.reference(scf_max_cycle, budget)
        if not isinstance(reference, Reference):
            raise InputError(
                f"{source}: FCIDUMP files are written of closed shells alone, and this one is open"
            )
        progress("integrals")
        try:
            with replacing(out) as place:
                write_fcidump(place, reference)
        except OSError as error:
            raise UnwrittenFileError(f"{out} could not be written ({error.strerror or error})") from error
    orbitals, electrons = counted(reference.n_orbitals, "orbital"), 2 * reference.outline.n_occ
    console.print(f"{out}: {orbitals}, {electrons} electrons")
    return 0
