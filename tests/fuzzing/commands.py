"""Cases of the command line: arguments, files and standard input; and what must hold of every one of them."""

from __future__ import annotations

import io
import json
import math
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import tilewise
from fuzzing.case import Case, Problem, Verdict
from fuzzing.world import World
from tilewise.cli import main

TOLERANCE = 1e-8
"""Hartree by which an energy may differ from PySCF's."""
DONE, NOT_DONE, REFUSED, NOT_WRITTEN, INTERRUPTED = 0, 1, 2, 3, 130
CODES = (DONE, NOT_DONE, REFUSED, NOT_WRITTEN, INTERRUPTED)
OUTCOMES = {
    DONE: "done", NOT_DONE: "not converged", REFUSED: "refused", NOT_WRITTEN: "not written",
    INTERRUPTED: "interrupted",
}  # fmt: skip
INTERNAL = re.compile(r"Traceback|object at 0x|BytesIO|\w+Warning:|<class '|internal error")
"""What no message for people has in it."""
_ENERGY = re.compile(r"^E\(U?CCSD\)\s+(\S+)", re.MULTILINE)
_TRIPLES_ENERGY = re.compile(r"^E\(U?CCSD\(T\)\)\s+(\S+)", re.MULTILINE)
_LEVEL = re.compile(r"^\S+\s+(\S+) hartree, <S\^2>", re.MULTILINE)


UNKNOWN: dict[str, Any] = {"energy": None, "triples_energy": None, "levels": ()}
"""Of an input that is not the one whose energies are known."""


@dataclass(frozen=True)
class Ended:
    """What a run leaves behind."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class CommandCase(Case):
    """`core` makes the calculation what it is; `options` may be left out when a problem is made smaller."""

    core: tuple[str, ...]
    options: tuple[tuple[str, ...], ...] = ()
    files: dict[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    energy: float | None = None
    """What E(CCSD) must be, if it is printed as converged."""
    triples_energy: float | None = None
    """The same of E(CCSD(T))."""
    levels: tuple[float, ...] = ()
    """What the states of CI must be, in the order in which they are told, if all of them are known."""
    tolerance: float = TOLERANCE
    """Hartree by which `levels` may differ."""
    must_end: tuple[int, ...] = CODES
    encoding: str = "utf-8"
    """Of the standard output."""
    reason: str = ""
    """What is wrong with it, if `must_end` says more than usual."""
    note: str = ""
    """What was done to a file that cannot be shown."""

    @property
    def arguments(self) -> list[str]:
        return [*self.core, *(word for option in self.options for word in option)]

    def run(self, world: World) -> Verdict:
        for name, content in self.files.items():
            Path(name).write_bytes(content)
        before = folder_content()
        try:
            ended = run_main(self.arguments, self.stdin, self.encoding)
        except BaseException as error:
            return Verdict("traceback", Problem.of_error(error))
        problem = self.judged(ended, before)
        return Verdict(OUTCOMES.get(ended.code, f"code {ended.code}"), problem)

    def judged(self, ended: Ended, before: dict[str, bytes]) -> Problem | None:
        checks = (
            _wrong_code(ended, self.must_end, self.reason),
            _internal_words(ended),
            _no_sentence(ended, self.arguments),
            _left_behind(ended, before),
            wrong_energy(ended, self.energy),
            wrong_energy(ended, self.triples_energy, _TRIPLES_ENERGY),
            _wrong_levels(ended, self.levels, self.tolerance, "--plan" in self.arguments),
            _bad_document(ended, self.arguments),
        )
        return next((problem for problem in checks if problem), None)

    def smaller(self) -> Iterator[Case]:
        for k in range(len(self.options)):
            yield replace(self, options=self.options[:k] + self.options[k + 1 :])
        for name, content in self.files.items():
            others = {key: value for key, value in self.files.items() if key != name}
            yield replace(self, files=others, **UNKNOWN)
            for less in _fewer_lines(content):
                yield replace(self, files=self.files | {name: less}, **UNKNOWN)
        for less in _fewer_lines(self.stdin):
            yield replace(self, stdin=less, **UNKNOWN)

    def __str__(self) -> str:
        text = "tilewise " + shlex.join(self.arguments)
        for name, content in {**self.files, **({"standard input": self.stdin} if self.stdin else {})}.items():
            text += f"\n  {name}: {_shown(content)}"
        return f"{text}\n  {self.note}" if self.note else text


def run_main(arguments: list[str], stdin: bytes = b"", encoding: str = "utf-8") -> Ended:
    """The command line in this process, with files of its own for input and output."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding=encoding)
    sys.stderr = io.TextIOWrapper(err, encoding=encoding, errors="backslashreplace")  # as Python does it
    try:
        with warnings.catch_warnings():
            for seen in (RuntimeWarning, UserWarning):  # by default each is shown once per process
                warnings.simplefilter("always", seen)
            code = main(arguments)
        for stream in (sys.stdout, sys.stderr):
            if not stream.closed:
                stream.flush()
        return Ended(
            code, out.getvalue().decode(encoding, "replace"), err.getvalue().decode(encoding, "replace")
        )
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def folder_content() -> dict[str, bytes]:
    """Of the current folder, hidden files included."""
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def _wrong_code(ended: Ended, expected: tuple[int, ...], reason: str) -> Problem | None:
    if ended.code in expected:
        return None
    last = (ended.err.strip().splitlines() or [""])[-1]
    wanted = reason or f"not one of {', '.join(map(str, expected))}"
    return Problem("exit code", f"{ended.code}, {wanted}", last)


def _internal_words(ended: Ended) -> Problem | None:
    for text in (ended.err, ended.out):
        if found := INTERNAL.search(text):
            return Problem("internal words", found[0], text[max(0, found.start() - 300) : found.end() + 900])
    return None


def _no_sentence(ended: Ended, arguments: list[str]) -> Problem | None:
    """Whatever fails says why, in one line that begins with the name of the program."""
    if ended.code == DONE or (not ended.err and "Usage" in ended.out):
        return None
    lines = ended.err.splitlines()
    text_on_stderr = "--json" in arguments or any(word.startswith("--json=") for word in arguments)
    if not lines or not lines[-1].startswith("tilewise: "):
        return Problem("no sentence", f"exit code {ended.code}", ended.err[-300:])
    if len(lines) > 1 and ended.code == REFUSED and not text_on_stderr:
        return Problem("more than one line", f"exit code {ended.code}", ended.err[-300:])
    return None


def _left_behind(ended: Ended, before: dict[str, bytes]) -> Problem | None:
    """A run that is refused changes no file; no run leaves parts or empty files."""
    after = folder_content()
    changed = sorted(name for name, content in after.items() if before.get(name) != content)
    lost = sorted(set(before) - set(after))
    if ended.code == REFUSED and (changed or lost):
        return Problem("files changed by a refused run", ", ".join(changed + lost), ended.err[-200:])
    odd = [name for name in changed if name.endswith(".part") or not after[name]]
    if odd:
        shown = re.sub(r"\d+", "N", ", ".join(odd))
        return Problem("files left behind", shown, f"exit code {ended.code}: {ended.err[-200:]}")
    return None


def wrong_energy(ended: Ended, expected: float | None, printed: re.Pattern[str] = _ENERGY) -> Problem | None:
    """Of a run that ended well, or that could not write a side file."""
    if ended.code not in (DONE, NOT_WRITTEN):
        return None
    for word in printed.findall(ended.out + ended.err):
        if problem := _differs(word, expected):
            return problem
    return None


def _wrong_levels(
    ended: Ended, expected: tuple[float, ...], tolerance: float, is_plan: bool
) -> Problem | None:
    """As many states as are known, with their energies; whatever is told is finite."""
    if ended.code not in (DONE, NOT_WRITTEN):
        return None
    words = _LEVEL.findall(ended.out + ended.err)
    if expected and len(words) != len(expected) and not is_plan:
        return Problem("changed energy", "another number of states", f"{words}, PySCF has {expected}")
    for k, word in enumerate(words):
        if problem := _differs(word, expected[k] if expected else None, tolerance):
            return problem
    return None


def _differs(word: str, expected: float | None, tolerance: float = TOLERANCE) -> Problem | None:
    if not math.isfinite(float(word)):
        return Problem("changed energy", "it is not finite", word)
    if expected is not None and abs(float(word) - expected) > tolerance:
        return Problem("changed energy", "of a valid input", f"{word}, PySCF has {expected:.10f}")
    return None


def _bad_document(ended: Ended, arguments: list[str]) -> Problem | None:
    """What `--json` leaves is JSON; help and the version are answered without a look at it."""
    given = [word.removeprefix("--json=") for word in arguments if word.startswith("--json=")]
    given += [value for option, value in pairwise(arguments) if option == "--json"]
    answered = "Usage" in ended.out or ended.out.strip() == f"tilewise {tilewise.__version__}"
    if ended.code != DONE or len(given) != 1 or answered:
        return None
    (target,) = given
    try:
        json.loads(ended.out if target == "-" else Path(target).read_text())
    except (OSError, ValueError) as error:
        return Problem("bad document", type(error).__name__, f"{target}: {error}")
    return None


def _shown(content: bytes) -> str:
    """A text, or how long something else is."""
    if b"\0" in content:
        return f"{len(content)} bytes"
    return repr(content if len(content) < 1500 else content[:700] + b" ... " + content[-300:])


def _fewer_lines(content: bytes) -> Iterator[bytes]:
    """Without halves, quarters and so on, down to a line; nothing for what is not a text of many lines."""
    lines = [] if b"\0" in content else content.splitlines(keepends=True)
    size = len(lines) // 2
    while size:
        for first in range(0, len(lines), size):
            yield b"".join(lines[:first] + lines[first + size :])
        size //= 2
