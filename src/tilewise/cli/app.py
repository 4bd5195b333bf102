"""The application that commands are added to, and what they share."""

from __future__ import annotations

import contextlib
import os
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console

from tilewise import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Coupled-cluster and CI calculations run as load-balanced block-sparse tensor contractions.",
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


class Output:
    """A text stream that may end on a full disk: what it does not take is lost, and the run goes on."""

    def __init__(self, stream: TextIO | None) -> None:
        """`stream` is None where the process was started with a closed one."""
        self._stream = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Writes a text; letters that the stream has no bytes for, as of some file names, are spelled out."""
        try:
            self._guarded(self._stream.write, text)
        except UnicodeEncodeError as error:
            spelled = text.encode(error.encoding, "backslashreplace").decode(error.encoding)
            self._guarded(self._stream.write, spelled)
        return len(text)

    def flush(self) -> None:
        self._guarded(self._stream.flush)

    def _guarded(self, act: Any, *arguments: str) -> None:
        try:
            act(*arguments)
        except OSError as error:
            self.error = error
            self._discard()
            if isinstance(error, BrokenPipeError):
                raise

    def _discard(self) -> None:
        """Sends what is still in the buffer, and all that follows, nowhere."""
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def console_for(json: str | None) -> Console:
    """Text goes to the standard error if the JSON document has the standard output."""
    return Console(stderr=json == "-", highlight=False, markup=False)


def say(console: Console, *notes: str) -> None:
    """Prints the notes that there are."""
    for note in filter(None, notes):
        console.print(f"note: {note}", soft_wrap=True, style="yellow")


def say_of_wisdom(console: Console) -> None:
    """Measures the kernels if that was not done before, and tells what stands in the way."""
    from tilewise.cost import load_or_calibrate

    say(console, load_or_calibrate()[1])
