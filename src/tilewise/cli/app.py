"""The application that commands are added to, and what they share."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from tilewise import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Coupled-cluster calculations run as load-balanced block-sparse tensor contractions.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"tilewise {__version__}")
        raise typer.Exit


@app.callback()
def _tilewise(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def console_for(json: str | None) -> Console:
    """Text goes to the standard error if the JSON document has the standard output."""
    return Console(stderr=json == "-", highlight=False, markup=False)


def say_of_wisdom(console: Console) -> None:
    """Measures the kernels if that was not done before, and tells what stands in the way."""
    from tilewise.cost import load_or_calibrate

    _, note = load_or_calibrate()
    if note:
        console.print(f"note: {note}", soft_wrap=True, style="yellow")
