"""`tilewise study`: the tables and figures of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewise.cli.app import app, console_for
from tilewise.cli.options import OUTPUT, Json, Seed
from tilewise.errors import InputError


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "tilewise study list\n\n"
    "tilewise study constants\n\n"
    "tilewise study pvm-table2\n\n"
    "tilewise study ghosh-proxy --run                    (on real ranks, too)\n\n"
    "tilewise study pvm-table2 --run                     (on a real atom under real loads, too)\n\n"
    "tilewise study ibrahim-map --picture map.png\n\n"
    "tilewise study all --out studies"
)
def study(
    name: Annotated[
        str,
        typer.Argument(
            help="A study, all, list for the names, or constants for what was fitted or chosen.",
            metavar="NAME",
            show_default=False,
        ),
    ],
    seed: Seed = 0,
    run: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Do it for real besides: ghosh-table1, ghosh-proxy and ozog-fig2 on ranks that are started "
            "by mpiexec here, pvm-table2 on two threads under real loads.",
        ),
    ] = False,
    json: Json = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="The figure of one study (PNG, PDF or SVG).", metavar="FILE", rich_help_panel=OUTPUT
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Tables as text and as JSON, and a PNG of each figure.",
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> int:
    """Repeat a table or figure of a paper: its numbers beside ours, and what was assumed."""
    from tilewise.cli import run_study

    overviews = {run_study.LIST: run_study.list_studies, run_study.CONSTANTS: run_study.list_constants}
    if name in overviews:
        for option, value in (("--json", json), ("--picture", picture), ("--out", out)):
            if value is not None:
                raise InputError(f"{option} {value}: study {name} prints a text, and writes no file")
        return overviews[name](console_for(None))
    wanted, files = run_study.chosen_studies(name), run_study.StudyFiles(json, picture, out)
    files.check(len(wanted))
    if run:
        wanted = [run_study.also_for_real(study) for study in wanted]
    return run_study.run_studies(wanted, files, console_for(json), seed)
