"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewise.arguments import MOST_SEED, MOST_THREADS

CALCULATION, MACHINE, ITERATIONS, OUTPUT = "Calculation", "Machine", "Iterations", "Output"

Source = Annotated[
    Path,
    typer.Argument(
        help="An XYZ file, a FCIDUMP, or a chkfile of PySCF; - for an XYZ or FCIDUMP on the standard input.",
        metavar="SOURCE",
        show_default=False,
    ),
]
Basis = Annotated[
    str | None,
    typer.Option(
        help="Basis set, by PySCF's name; others for some elements as in cc-pvdz,O=aug-cc-pvdz.",
        show_default="cc-pvdz",
        rich_help_panel=CALCULATION,
    ),
]
TripleExcitations = Annotated[
    bool,
    typer.Option(
        "--triples",
        help="CCSD(T): connected triples are added to the energy when CCSD is converged.",
        rich_help_panel=CALCULATION,
    ),
]
Charge = Annotated[
    int | None, typer.Option(help="Charge of the molecule.", show_default="0", rich_help_panel=CALCULATION)
]
Spin = Annotated[
    int | None,
    typer.Option(
        help="Unpaired electrons, 2S, as PySCF counts it.",
        min=0,
        show_default="0",
        rich_help_panel=CALCULATION,
    ),
]
Multiplicity = Annotated[
    int | None,
    typer.Option(
        help="The same as 2S + 1: 2 for a doublet.", min=1, show_default=False, rich_help_panel=CALCULATION
    ),
]
MeanField = Annotated[
    str | None,
    typer.Option(
        "--reference",
        help="The mean field: rhf, uhf or rohf.",
        metavar="KIND",
        show_default="rhf, or uhf with unpaired electrons",
        rich_help_panel=CALCULATION,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        help="Of the coordinates: angstrom or bohr.", show_default="angstrom", rich_help_panel=CALCULATION
    ),
]
Frame = Annotated[
    int | None,
    typer.Option(
        help="Which geometry of an XYZ file that holds several: from 1 up, or -1 for the last.",
        show_default=False,
        rich_help_panel=CALCULATION,
    ),
]
FrozenText = Annotated[
    str,
    typer.Option(
        help="Orbitals left out: none, a number of lowest ones, a list counted from 0 such as 0,1,5, or "
        "auto for the chemical core.",
        rich_help_panel=CALCULATION,
    ),
]
Symmetry = Annotated[
    str,
    typer.Option(
        help="auto for the largest abelian group, or a subgroup: D2h, D2, C2v, C2h, C2, Cs, Ci, C1.",
        rich_help_panel=CALCULATION,
    ),
]
ScfCycles = Annotated[int, typer.Option(help="Cycles of the SCF at most.", min=1, rich_help_panel=ITERATIONS)]
Tile = Annotated[
    int | None,
    typer.Option(help="Orbitals per tile, at most.", min=1, show_default="16", rich_help_panel=MACHINE),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Workers.",
        min=1,
        max=MOST_THREADS,
        show_default="CPUs this process may use",
        rich_help_panel=MACHINE,
    ),
]
Ranks = Annotated[
    int,
    typer.Option(
        help="Processes of mpiexec that share the calculation; memory and threads are those of each.",
        min=1,
        max=MOST_THREADS,
        rich_help_panel=MACHINE,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="Budget, such as 8GB or 500MB.", show_default="80 % of what is free", rich_help_panel=MACHINE
    ),
]
Policy = Annotated[
    str,
    typer.Option(
        help="How tasks are shared: nxtval, ie-nxtval, block, proportional, lpt, hypergraph, hybrid, "
        "buckets, steal, interleaved, chunk, gss, tss, factoring, levels or dataflow; with parameters as in "
        '"factoring(f=2, delta=0.5)".',
        rich_help_panel=MACHINE,
    ),
]
MachineName = Annotated[
    str | None,
    typer.Option(
        help="Simulate an iteration on a machine too: a file (TOML), one that comes with tilewise (laptop, "
        "fusion, cascade, tukey, pvm, million), or here for this one.",
        metavar="NAME",
        rich_help_panel=MACHINE,
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(
        help="Of that machine: numbers such as 8,16,64, or 8:2400, which doubles from 8 up to 2400.",
        show_default="--threads, or the cores of a node",
        rich_help_panel=MACHINE,
    ),
]
Pin = Annotated[bool, typer.Option("--pin", help="Bind each worker to a processor.", rich_help_panel=MACHINE)]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="The same bits on the same integrals.", rich_help_panel=MACHINE),
]
Pattern = Annotated[
    str,
    typer.Option(
        help="Under mpiexec, what is fetched from other ranks: each strip once (cache), for each task "
        "(original), or for each block of a constant (inverted).",
        rich_help_panel=MACHINE,
    ),
]
StoreName = Annotated[
    str,
    typer.Option(
        "--store",
        help="Under mpiexec, how strips go between ranks: shared (the memory of one node), one-sided, "
        "messages, or auto, as a test finds.",
        rich_help_panel=MACHINE,
    ),
]
Seed = Annotated[int, typer.Option(help="Of the noise.", min=0, max=MOST_SEED, rich_help_panel=MACHINE)]
DiisSpace = Annotated[
    int, typer.Option(help="Iterations that DIIS remembers.", min=1, rich_help_panel=ITERATIONS)
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        help="Write a JSON document to this file; - for the standard output, and the text to standard error.",
        metavar="FILE",
        rich_help_panel=OUTPUT,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="All tensors, and time per operation.", rich_help_panel=OUTPUT),
]
