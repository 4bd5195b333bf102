"""Signs of life: a spinner on a terminal, elsewhere a line whenever ten seconds pass in silence."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from rich.console import Console

SILENCE = 10.0
"""Seconds without a line after which one is printed."""


class Progress:
    """`with Progress(console) as progress: progress("SCF, cycle 3")` while the work goes on."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.text = ""
        self._began = self._heard = time.monotonic()
        self._spinner = console.status("", refresh_per_second=4) if console.is_terminal else None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._speak, daemon=True)

    def __call__(self, text: str) -> None:
        """What is being done from now on."""
        self.text = text
        if self._spinner:
            self._spinner.update(text)

    def heard(self) -> None:
        """Something else was printed."""
        self._heard = time.monotonic()

    def __enter__(self) -> Progress:
        if self._spinner:
            self._spinner.start()
        else:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._spinner:
            self._spinner.stop()

    def _speak(self) -> None:
        while not self._done.wait(SILENCE / 10):
            now = time.monotonic()
            if now - self._heard >= SILENCE:
                self.console.print(f"... {now - self._began:.0f} s: {self.text}", soft_wrap=True)
                self._heard = now
