"""`tilewise simulate`, `tune`, `mpi-info` and `report`: about machines and runs rather than molecules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewise.cli.app import app, console_for, say, say_of_wisdom
from tilewise.cli.options import (
    CALCULATION,
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
    Seed,
    Spin,
    Symmetry,
    Threads,
    Tile,
    Unit,
)
from tilewise.errors import InputError

MOST_NODES = 1_000_000


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise simulate benzene.xyz --machine fusion --policy ie-nxtval,buckets --workers 8:2400\n\n"
    "tilewise simulate benzene.xyz --machine my.toml --workers 4,8,64 --picture scaling.png\n\n"
    "tilewise simulate water-10 --frozen auto --equations tce-ccsd --machine fusion --workers 64:1024\n\n"
    "tilewise simulate benzene.xyz --machine fusion --policy dataflow --workers 64 --trace run.json"
)
def simulate(
    source: Annotated[
        Path,
        typer.Argument(
            help="An XYZ or FCIDUMP file, - for the standard input, or a molecule whose orbitals are known: "
            "water-1, water-2 and so on, water-aug-cc-pvdz, benzene-aug-cc-pvtz, benzene-aug-cc-pvqz, "
            "n2-aug-cc-pvtz, n2-aug-cc-pvqz, beta-carotene or uracil.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    workers: Annotated[
        str,
        typer.Option(
            help="Numbers of workers, such as 8,16,64, or 8:2400, which doubles from 8 up to 2400.",
            rich_help_panel=MACHINE,
        ),
    ],
    machine: Annotated[
        str,
        typer.Option(
            help="A machine file (TOML), one that comes with tilewise (laptop, fusion, cascade, tukey, pvm, "
            "million), or here for this one.",
            rich_help_panel=MACHINE,
        ),
    ] = "laptop",
    policy: Annotated[
        str,
        typer.Option(
            help="Policies to compare, separated by commas; with parameters as for ccsd.",
            rich_help_panel=MACHINE,
        ),
    ] = "ie-nxtval,buckets,dataflow",
    seed: Seed = 0,
    basis: Basis = None,
    charge: Charge = None,
    spin: Spin = None,
    multiplicity: Multiplicity = None,
    reference: MeanField = None,
    unit: Unit = None,
    frame: Frame = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    tile: Tile = None,
    equations: Annotated[
        str,
        typer.Option(
            help="Our own (tilewise), or the routines of the TCE: tce-ccsd or tce-ccsdt.",
            rich_help_panel=CALCULATION,
        ),
    ] = "tilewise",
    json: Json = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Time and its shares by number of workers (PNG, PDF or SVG).",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Trace of one run, for tilewise report and Perfetto.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> int:
    """How an iteration of CCSD would run on another machine. No integral is computed."""
    from tilewise.cli.inputs import outline_of_source, parse_frozen, parse_spin, source_file
    from tilewise.cli.run_simulate import SimulationFiles, parse_policies, parse_workers, run_simulate
    from tilewise.hardware.machines import find_machine
    from tilewise.simulation import workload

    model, policies, counts = find_machine(machine), parse_policies(policy), parse_workers(workers)
    model.check(counts[-1])
    files = SimulationFiles(json, picture, trace)
    files.check(len(policies) * len(counts))
    geometry = {"basis": basis, "charge": charge, "unit": unit, "frame": frame}
    geometry |= {"spin": parse_spin(spin, multiplicity), "reference_kind": reference}
    outline, notes = outline_of_source(source_file(source), parse_frozen(frozen), symmetry, **geometry)
    work, console = workload(outline, equations, tile), console_for(json)
    say(console, *notes)
    return run_simulate(work, model, policies, counts, files, console, seed)


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise tune                                       (kernels, for all calculations)\n\n"
    "tilewise tune --molecule water.xyz --basis cc-pvtz --picture map.png   (panels and quanta)"
)
def tune(
    molecule: Annotated[
        Path | None,
        typer.Option(
            help="An XYZ or FCIDUMP file, or - for the standard input: search the panel size and the quantum "
            "on its contractions.",
            metavar="FILE",
            rich_help_panel=CALCULATION,
        ),
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
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Draw the time against panels and quantum, as PNG, SVG or PDF.",
            metavar="FILE",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Measure how fast this machine is, and keep it: predictions and schedules are made from it."""
    from tilewise.cli.inputs import Calculation, parse_frozen, parse_spin, source_file
    from tilewise.cli.pictures import check_picture
    from tilewise.cli.run_tune import tune_kernels, tune_molecule
    from tilewise.config import resolve_threads, thread_limits, threads_note
    from tilewise.methods.plan import plan_outline
    from tilewise.output_files import check_target

    check_target("--json", json)
    check_target("--picture", str(picture) if picture else None)
    check_picture(picture)
    console = console_for(json)
    if molecule is None:
        needless = {"basis": basis, "charge": charge, "unit": unit, "frame": frame, "picture": picture}
        needless |= {"spin": spin, "multiplicity": multiplicity, "reference": reference}
        for option, value in needless.items():
            if value is not None:
                raise InputError(f"--{option} {value}: a molecule is needed too, as in --molecule water.xyz")
        tune_kernels(console, json)
        return 0
    workers = resolve_threads(threads)
    calculation = Calculation(
        source_file(molecule),
        basis,
        charge,
        parse_frozen(frozen),
        symmetry,
        unit=unit,
        frame=frame,
        spin=parse_spin(spin, multiplicity),
        reference_kind=reference,
    )
    with thread_limits(workers):
        outline = calculation.outline
        say(console, *calculation.notes, threads_note(threads))
        say_of_wisdom(console)
        made = plan_outline(outline, threads=workers, memory=memory)
        tune_molecule(made, console, picture, json)
    return 0


@app.command()
def report(
    trace: Annotated[
        Path,
        typer.Argument(help="A file written by ccsd --trace.", metavar="TRACE", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page to write.",
            metavar="FILE",
            show_default="TRACE's name, .html",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    iteration: Annotated[
        int | None,
        typer.Option(help="The one shown first.", show_default="the last", rich_help_panel=OUTPUT),
    ] = None,
) -> int:
    """Make one HTML page of a trace: who did what when, and where the time was lost."""
    from tilewise.cli.run_report import run_report

    return run_report(trace, out, iteration, console_for(None))


@app.command(
    name="mpi-info",
    epilog="[bold]Examples[/bold]\n\n"
    "mpiexec -n 2 tilewise mpi-info\n\n"
    "mpiexec -n 2 -ppn 1 -hosts n1,n2 tilewise mpi-info --out cluster.toml --nodes 200\n\n"
    "tilewise simulate benzene.xyz --machine cluster.toml --workers 16:3200",
)
def mpi_info(
    threads: Threads = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Machine file (TOML) for simulate and plan.", metavar="FILE", rich_help_panel=OUTPUT
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            help="Nodes of the machine file, of one rank each.",
            min=1,
            max=MOST_NODES,
            show_default="as many as there are ranks",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Test and measure communication between ranks; to be run under mpiexec."""
    from tilewise.cli.run_mpi_info import run_mpi_info
    from tilewise.execute.mpi.world import world

    return run_mpi_info(world(), console_for(json), threads, out, nodes, json)
