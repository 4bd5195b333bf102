"""The command line: `tilewise ccsd`, `plan`, `simulate`, `tune`, `report` and `fcidump`."""

from __future__ import annotations

import math
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tilewise.errors import InputError, TilewiseError

EXIT_NOT_CONVERGED, EXIT_INPUT, EXIT_INTERRUPTED = 1, 2, 130

UsageError: Any = typer.BadParameter.__mro__[1]  # typer has it from click, or from a copy of its own

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Coupled-cluster calculations run as load-balanced block-sparse tensor contractions.",
)

_CALCULATION, _MACHINE, _ITERATIONS, _OUTPUT = "Calculation", "Machine", "Iterations", "Output"

Source = Annotated[
    Path,
    typer.Argument(help="An XYZ file (angstrom) or a FCIDUMP file.", metavar="SOURCE", show_default=False),
]
Basis = Annotated[
    str | None,
    typer.Option(help="Basis set, by PySCF's name.", show_default="cc-pvdz", rich_help_panel=_CALCULATION),
]
Charge = Annotated[
    int | None, typer.Option(help="Charge of the molecule.", show_default="0", rich_help_panel=_CALCULATION)
]
FrozenText = Annotated[
    str,
    typer.Option(
        help="Orbitals left out: a number of lowest ones, a list counted from 0 such as 0,1,5, or auto "
        "for the chemical core.",
        rich_help_panel=_CALCULATION,
    ),
]
Symmetry = Annotated[
    str,
    typer.Option(
        help="auto for the largest abelian group, or a subgroup: D2h, D2, C2v, C2h, C2, Cs, Ci, C1.",
        rich_help_panel=_CALCULATION,
    ),
]
Tile = Annotated[
    int | None,
    typer.Option(help="Orbitals per tile, at most.", min=1, show_default="16", rich_help_panel=_MACHINE),
]
Threads = Annotated[
    int | None,
    typer.Option(help="Workers.", min=1, show_default="CPUs this process may use", rich_help_panel=_MACHINE),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="Budget, such as 8GB or 500MB.", show_default="80 % of what is free", rich_help_panel=_MACHINE
    ),
]
Policy = Annotated[
    str,
    typer.Option(
        help="How tasks are shared: nxtval, ie-nxtval, block, proportional, lpt, hypergraph, buckets, steal, "
        "interleaved, chunk, gss, tss, factoring, levels or dataflow; with parameters as in "
        '"factoring(f=2, delta=0.5)".',
        rich_help_panel=_MACHINE,
    ),
]
Pin = Annotated[
    bool, typer.Option("--pin", help="Bind each worker to a processor.", rich_help_panel=_MACHINE)
]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="The same bits on the same integrals.", rich_help_panel=_MACHINE),
]
DiisSpace = Annotated[
    int, typer.Option(help="Iterations that DIIS remembers.", min=1, rich_help_panel=_ITERATIONS)
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        help="Write a JSON document to this file; - for the standard output, and the text to standard error.",
        metavar="FILE",
        rich_help_panel=_OUTPUT,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="All tensors, and time per operation.", rich_help_panel=_OUTPUT),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"tilewise {version('tilewise')}")
        raise typer.Exit


@app.callback()
def _tilewise(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise ccsd water.xyz --basis cc-pvtz --frozen auto\n\n"
    "tilewise ccsd water.xyz --basis cc-pvtz --df\n\n"
    "tilewise ccsd water.xyz --threads 4 --memory 8GB --json water.json\n\n"
    "tilewise ccsd water.xyz --restart water.tilewise.h5 --conv-tol 1e-10\n\n"
    "tilewise ccsd integrals.fcidump --no-checkpoint"
)
def ccsd(
    source: Source,
    basis: Basis = None,
    charge: Charge = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    df: Annotated[
        bool,
        typer.Option(
            "--df",
            help="Density fitting of the integrals, in PySCF's default auxiliary basis; the SCF stays exact.",
            rich_help_panel=_CALCULATION,
        ),
    ] = False,
    auxbasis: Annotated[
        str | None,
        typer.Option(
            help="Density fitting in this auxiliary basis, such as cc-pvdz-ri.",
            metavar="NAME",
            rich_help_panel=_CALCULATION,
        ),
    ] = None,
    cholesky: Annotated[
        float | None,
        typer.Option(
            help="Cholesky decomposition of the integrals, with this threshold, such as 1e-6.",
            metavar="THRESHOLD",
            rich_help_panel=_CALCULATION,
        ),
    ] = None,
    tile: Tile = None,
    threads: Threads = None,
    memory: Memory = None,
    policy: Policy = "dataflow",
    pin: Pin = False,
    deterministic: Deterministic = False,
    conv_tol: Annotated[
        float, typer.Option(help="Change of the energy in hartree.", rich_help_panel=_ITERATIONS)
    ] = 1e-8,
    conv_tol_residual: Annotated[
        float, typer.Option(help="Norm of the residual.", rich_help_panel=_ITERATIONS)
    ] = 1e-6,
    max_cycle: Annotated[
        int, typer.Option(help="Iterations at most.", min=1, rich_help_panel=_ITERATIONS)
    ] = 50,
    level_shift: Annotated[
        float, typer.Option(help="Added to the gaps, in hartree.", rich_help_panel=_ITERATIONS)
    ] = 0.0,
    diis_space: DiisSpace = 8,
    scf_max_cycle: Annotated[
        int, typer.Option(help="Cycles of the SCF at most.", min=1, rich_help_panel=_ITERATIONS)
    ] = 100,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File written after each iteration.",
            metavar="FILE",
            show_default="SOURCE's name, .tilewise.h5",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    no_checkpoint: Annotated[
        bool, typer.Option("--no-checkpoint", help="Write none.", rich_help_panel=_OUTPUT)
    ] = False,
    restart: Annotated[
        Path | None,
        typer.Option(help="Checkpoint to start from.", metavar="FILE", rich_help_panel=_OUTPUT),
    ] = None,
    json: Json = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Trace of all tasks, for tilewise report and Perfetto.",
            metavar="FILE",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    verbose: Verbose = False,
) -> int:
    """Closed-shell CCSD energy of a molecule or of a FCIDUMP file."""
    from tilewise.calculation import Calculation, parse_fitting, parse_frozen
    from tilewise.config import processor_of_each, resolve_threads, thread_limits
    from tilewise.methods.plan import plan_outline
    from tilewise.run_ccsd import Files, Settings, run_ccsd

    for option, value in (("--conv-tol", conv_tol), ("--conv-tol-residual", conv_tol_residual)):
        if not 0 < value < math.inf:
            raise InputError(f"{option} {value}: a positive number is expected")
    if not 0 <= level_shift < math.inf:
        raise InputError(f"--level-shift {level_shift}: a number from 0 up is expected")
    fitting = parse_fitting(df, auxbasis, cholesky)
    if no_checkpoint and checkpoint:
        raise InputError("--checkpoint and --no-checkpoint exclude each other")
    files = Files(
        checkpoint=None if no_checkpoint else checkpoint or Path(f"{source.stem}.tilewise.h5"),
        restart=restart,
        json=json,
        trace=trace,
    )
    files.check()
    settings = Settings(conv_tol, conv_tol_residual, max_cycle, level_shift, scf_max_cycle, pin)
    workers = resolve_threads(threads)
    if pin:
        processor_of_each(workers)  # refused now rather than after the SCF
    calculation = Calculation(source, basis, charge, parse_frozen(frozen), symmetry, fitting)
    with thread_limits(workers):
        made = plan_outline(
            calculation.outline,
            threads=workers,
            policy=policy,
            tile=tile,
            memory=memory,
            diis_space=diis_space,
            deterministic=deterministic,
        )
        console = _console(json)
        _say_of_wisdom(console)
        return run_ccsd(calculation, made, settings, files, console, verbose)


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise plan benzene.xyz --frozen auto\n\n"
    "tilewise plan benzene.xyz --tile 16 32              (granularity of tiles of 16 and of 32 orbitals)\n\n"
    "tilewise plan benzene.xyz --basis cc-pvtz --symmetry C1 --threads 64 --memory 200GB --json -"
)
def plan(
    source: Source,
    basis: Basis = None,
    charge: Charge = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    tile: Annotated[
        str | None,
        typer.Option(
            help="Orbitals per tile, at most; several, such as 16 32, to compare the tasks they make.",
            show_default="16",
            rich_help_panel=_MACHINE,
        ),
    ] = None,
    threads: Threads = None,
    memory: Memory = None,
    policy: Policy = "dataflow",
    deterministic: Deterministic = False,
    diis_space: DiisSpace = 8,
    json: Json = None,
    verbose: Verbose = False,
) -> int:
    """What a CCSD calculation would take: memory, flops, tasks, time. No integral is computed."""
    from tilewise.calculation import Calculation, parse_frozen, parse_tiles
    from tilewise.config import resolve_threads, thread_limits
    from tilewise.console import Screen
    from tilewise.documents import check_target, plan_document, write_document
    from tilewise.methods.granularity import granularity
    from tilewise.methods.plan import plan_outline

    check_target("--json", json)
    tiles = parse_tiles(tile) if tile else []
    workers = resolve_threads(threads)
    calculation = Calculation(source, basis, charge, parse_frozen(frozen), symmetry)
    with thread_limits(workers):
        made = plan_outline(
            calculation.outline,
            threads=workers,
            policy=policy,
            tile=tiles[0] if tiles else None,
            memory=memory,
            diis_space=diis_space,
            deterministic=deterministic,
        )
        console = _console(json)
        _say_of_wisdom(console)
        screen = Screen(console, verbose)
        screen.opening(made)
        compared = [granularity(made, size) for size in tiles] if len(tiles) > 1 else []
        if compared:
            screen.granularity(compared)
    if made.peak_memory > made.budget:
        screen.note("the calculation needs more memory than the budget allows")
    if json:
        write_document(plan_document(made, compared), json)
    return 0


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise simulate benzene.xyz --machine fusion --policy ie-nxtval,buckets --workers 8:2400\n\n"
    "tilewise simulate benzene.xyz --machine my.toml --workers 4,8,64 --picture scaling.png\n\n"
    "tilewise simulate benzene.xyz --machine fusion --policy dataflow --workers 64 --trace run.json"
)
def simulate(
    source: Source,
    workers: Annotated[
        str,
        typer.Option(
            help="Numbers of workers, such as 8,16,64, or 8:2400, which doubles from 8 up to 2400.",
            rich_help_panel=_MACHINE,
        ),
    ],
    machine: Annotated[
        str,
        typer.Option(
            help="A machine file (TOML), or one that comes with tilewise: laptop, fusion, cascade, tukey, "
            "pvm or million.",
            rich_help_panel=_MACHINE,
        ),
    ] = "laptop",
    policy: Annotated[
        str,
        typer.Option(
            help="Policies to compare, separated by commas; with parameters as for ccsd.",
            rich_help_panel=_MACHINE,
        ),
    ] = "ie-nxtval,buckets,dataflow",
    seed: Annotated[int, typer.Option(help="Of the noise.", min=0, rich_help_panel=_MACHINE)] = 0,
    basis: Basis = None,
    charge: Charge = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    tile: Tile = None,
    json: Json = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Time and its shares by number of workers (PNG, PDF or SVG).",
            metavar="FILE",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Trace of one run, for tilewise report and Perfetto.",
            metavar="FILE",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
) -> int:
    """How an iteration of CCSD would run on another machine. No integral is computed."""
    from tilewise.calculation import Calculation, parse_frozen
    from tilewise.execute.machines import find_machine
    from tilewise.methods.plan import plan_outline
    from tilewise.run_simulate import SimulationFiles, parse_policies, parse_workers, run_simulate

    model, policies, counts = find_machine(machine), parse_policies(policy), parse_workers(workers)
    model.check(counts[-1])
    files = SimulationFiles(json, picture, trace)
    files.check(len(policies) * len(counts))
    calculation = Calculation(source, basis, charge, parse_frozen(frozen), symmetry)
    made = plan_outline(calculation.outline, threads=1, tile=tile, on_the_fly=False)
    return run_simulate(made, model, policies, counts, files, _console(json), seed)


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise tune                                       (kernels, for all calculations)\n\n"
    "tilewise tune --molecule water.xyz --basis cc-pvtz --picture map.png   (panels and quanta)"
)
def tune(
    molecule: Annotated[
        Path | None,
        typer.Option(
            help="An XYZ or FCIDUMP file: search the panel size and the quantum on its contractions.",
            metavar="FILE",
            rich_help_panel=_CALCULATION,
        ),
    ] = None,
    basis: Basis = None,
    charge: Charge = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    threads: Threads = None,
    memory: Memory = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Draw the time against panels and quantum, as PNG, SVG or PDF.",
            metavar="FILE",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Measure how fast this machine is, and keep it: predictions and schedules are made from it."""
    from tilewise.calculation import Calculation, parse_frozen
    from tilewise.config import resolve_threads, thread_limits
    from tilewise.documents import check_target
    from tilewise.methods.plan import plan_outline
    from tilewise.run_tune import check_picture, tune_kernels, tune_molecule

    check_target("--json", json)
    check_target("--picture", str(picture) if picture else None)
    check_picture(picture)
    console = _console(json)
    if molecule is None:
        for option, value in (("--basis", basis), ("--charge", charge), ("--picture", picture)):
            if value is not None:
                raise InputError(f"{option} {value}: a molecule is needed too, as in --molecule water.xyz")
        tune_kernels(console, json)
        return 0
    workers = resolve_threads(threads)
    calculation = Calculation(molecule, basis, charge, parse_frozen(frozen), symmetry)
    with thread_limits(workers):
        made = plan_outline(calculation.outline, threads=workers, memory=memory)
        _say_of_wisdom(console)
        tune_molecule(made, console, picture, json)
    return 0


@app.command()
def fcidump(
    source: Source,
    out: Annotated[Path, typer.Option(help="The FCIDUMP to write.", metavar="FILE", rich_help_panel=_OUTPUT)],
    basis: Basis = None,
    charge: Charge = None,
    frozen: FrozenText = "0",
    symmetry: Symmetry = "auto",
    threads: Threads = None,
    memory: Memory = None,
    scf_max_cycle: Annotated[
        int, typer.Option(help="Cycles of the SCF at most.", min=1, rich_help_panel=_ITERATIONS)
    ] = 100,
) -> int:
    """Write the integrals over the active SCF orbitals of a molecule as a FCIDUMP file."""
    from tilewise.calculation import Calculation, parse_frozen
    from tilewise.chem.fcidump import write_fcidump
    from tilewise.config import default_memory, parse_memory, resolve_threads, thread_limits
    from tilewise.documents import check_target
    from tilewise.progress import Progress

    check_target("--out", str(out))
    calculation = Calculation(source, basis, charge, parse_frozen(frozen), symmetry)
    workers, budget = resolve_threads(threads), parse_memory(memory) if memory else default_memory()
    console = _console(None)
    with thread_limits(workers), Progress(console) as progress:
        progress("SCF")
        reference = calculation.reference(scf_max_cycle, budget)
        progress("integrals")
        write_fcidump(out, reference)
    console.print(f"{out}: {reference.n_orbitals} orbitals, {2 * reference.outline.n_occ} electrons")
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
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    iteration: Annotated[
        int | None,
        typer.Option(help="The one shown first.", show_default="the last", rich_help_panel=_OUTPUT),
    ] = None,
) -> int:
    """Make one HTML page of a trace: who did what when, and where the time was lost."""
    from tilewise.run_report import run_report

    return run_report(trace, out, iteration, _console(None))


def _console(json: str | None) -> Console:
    """Text goes to the standard error if the JSON document has the standard output."""
    return Console(stderr=json == "-", highlight=False, markup=False)


def _say_of_wisdom(console: Console) -> None:
    """Measures the kernels if that was not done before, and tells what stands in the way."""
    from tilewise.cost import load_or_calibrate

    _, note = load_or_calibrate()
    if note:
        console.print(f"note: {note}", soft_wrap=True, style="yellow")


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return app(_joined(given), standalone_mode=False, prog_name="tilewise") or 0
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return EXIT_INPUT
        return _complain(_one_sentence(error), EXIT_INPUT)
    except InputError as error:
        return _complain(str(error), EXIT_INPUT)
    except TilewiseError as error:
        return _complain(str(error), EXIT_NOT_CONVERGED)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the output has left
        return EXIT_NOT_CONVERGED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}", EXIT_INPUT)
    except MemoryError:
        return _complain("out of memory: give a smaller --memory to see what is needed", EXIT_NOT_CONVERGED)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", EXIT_INTERRUPTED)


def _joined(arguments: list[str]) -> list[str]:
    """Takes `--tile 16 32` for `--tile 16,32`: all numbers that follow belong to the option."""
    joined: list[str] = []
    for word in arguments:
        if len(joined) > 1 and joined[-2] == "--tile" and word.isdecimal():
            joined[-1] += f",{word}"
        else:
            joined.append(word)
    return joined


def _one_sentence(error: Any) -> str:
    text = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    commands = getattr(context.command, "commands", None)
    valid = f"; valid commands are {', '.join(commands)}" if commands else ""
    return f"{text}{valid} (see {context.command_path} --help)"


def _complain(text: str, code: int) -> int:
    sys.stdout.flush()
    print(f"tilewise: {text}", file=sys.stderr)
    return code
