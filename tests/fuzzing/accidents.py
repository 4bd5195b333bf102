"""Accidents: kill -9 and Ctrl-C at any moment, and full disks. Each case has a process of its own to fork."""

from __future__ import annotations

import json
import os
import pickle
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from fuzzing.case import Case, Problem, Verdict, kind
from fuzzing.commands import (
    DONE,
    INTERRUPTED,
    NOT_DONE,
    NOT_WRITTEN,
    REFUSED,
    CommandCase,
    Ended,
    folder_content,
    run_main,
    wrong_energy,
)
from fuzzing.world import SYSTEMS, World
from made_traces import made_document

CHECKPOINT = "kept.h5"
LONG = ("--conv-tol", "1e-12", "--conv-tol-residual", "1e-9")
FULL = "/dev/full"
_IN_THE_PARSER = re.compile(
    r"Exception ignored in:(?:(?!Exception ignored).)*?pydantic.*?KeyboardInterrupt: *\n", re.S
)
"""What Python says of a Ctrl-C that it loses inside the library that reads the options."""


@dataclass(frozen=True)
class AccidentCase(CommandCase):
    """What is shown also says what happens to it."""

    accident: str = ""

    def __str__(self) -> str:
        return f"{super().__str__()}\n  {self.accident}"


@dataclass(frozen=True)
class KilledCase(AccidentCase):
    """Killed after some seconds; then the checkpoint, if there is one, leads on to the energy."""

    seconds: float = 0.0
    name: str = ""

    def run(self, world: World) -> Verdict:
        for name, content in self.files.items():
            Path(name).write_bytes(content)
        ended = in_child(self.arguments, after=lambda child: _signal(child, self.seconds, signal.SIGKILL))
        outcome = "killed" if ended is None else "done before"
        if isinstance(ended, Problem):
            return Verdict("traceback", ended)
        again = in_child([*self.arguments, "--restart", CHECKPOINT])
        if not isinstance(again, Ended):
            return Verdict(outcome, again or Problem("crash", "restart after kill -9"))
        there = Path(CHECKPOINT).is_file()
        if again.code not in ((DONE,) if there else (REFUSED,)):
            return Verdict(
                outcome, Problem("exit code", f"{again.code}, restart after kill -9", again.err[-300:])
            )
        parts = [name for name in folder_content() if name.endswith(".part")]
        if parts and there:
            return Verdict(
                outcome, Problem("files left behind", ".part after kill -9 and a restart", ", ".join(parts))
            )
        return Verdict(outcome, wrong_energy(again, self.energy))


@dataclass(frozen=True)
class InterruptedCase(AccidentCase):
    """Ctrl-C after some seconds: one sentence, exit code 130."""

    seconds: float = 0.0

    def run(self, world: World) -> Verdict:
        for name, content in self.files.items():
            Path(name).write_bytes(content)
        before = folder_content()
        ended = in_child(self.arguments, after=lambda child: _signal(child, self.seconds, signal.SIGINT))
        if not isinstance(ended, Ended):
            return Verdict("interrupted", ended or Problem("crash", "Ctrl-C"))
        ended = replace(ended, err=_IN_THE_PARSER.sub("", ended.err))
        return Verdict(
            "interrupted" if ended.code == INTERRUPTED else "done before", self.judged(ended, before)
        )


@dataclass(frozen=True)
class FullDiskCase(AccidentCase):
    """No file can be longer than some bytes; the energy comes out all the same."""

    limit: int = 0

    def run(self, world: World) -> Verdict:
        for name, content in self.files.items():
            Path(name).write_bytes(content)
        before = folder_content()
        ended = in_child(self.arguments, first=self._full)
        if not isinstance(ended, Ended):
            return Verdict("full disk", ended or Problem("crash", "full disk"))
        problem = self.judged(ended, before)
        if not problem and self.energy is not None and "E(CCSD)" not in ended.out + ended.err:
            problem = Problem("lost result", f"exit code {ended.code}", ended.err[-300:])
        return Verdict("full disk" if ended.code else "done", problem)

    def _full(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, resource.RLIM_INFINITY))


@dataclass(frozen=True)
class ProgramCase(AccidentCase):
    """A program of its own, whose standard output is full or closed."""

    redirected: str = ""
    codes: tuple[int, ...] = field(default=(DONE, NOT_DONE, REFUSED, NOT_WRITTEN))

    def run(self, world: World) -> Verdict:
        for name, content in self.files.items():
            Path(name).write_bytes(content)
        code = "import sys; from tilewise.cli import main; sys.exit(main())"
        program = [sys.executable, "-c", code, *self.arguments]
        command = f"{shlex.join(program)} {self.redirected}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, errors="replace"
        )
        if "Traceback" in done.stderr or "Exception ignored" in done.stderr:
            line = done.stderr.strip().splitlines()[-1]
            return Verdict(
                "traceback", Problem("traceback", f"{self.redirected}: {line}", done.stderr[-600:])
            )
        if done.returncode not in self.codes:
            return Verdict(
                "exit code", Problem("exit code", f"{done.returncode}, {self.redirected}", done.stderr[-300:])
            )
        return Verdict("done" if done.returncode == 0 else "full disk")


@kind("kill -9", 3, apart=True)
def killed(rng: random.Random, world: World) -> Case:
    name, files = _system(rng, world)
    seconds = rng.choice((rng.uniform(0, 0.1), rng.uniform(0.05, 0.6)))
    core = ("ccsd", f"{name}.xyz", *SYSTEMS[name].options, "--checkpoint", CHECKPOINT, *LONG)
    return KilledCase(
        core,
        files=files,
        energy=world.energy(name),
        accident=f"kill -9 after {seconds:.3f} s",
        seconds=seconds,
        name=name,
    )


@kind("Ctrl-C", 3, apart=True)
def interrupted(rng: random.Random, world: World) -> Case:
    name, files = _system(rng, world)
    seconds = rng.uniform(0, 0.5)
    core = ("ccsd", f"{name}.xyz", *SYSTEMS[name].options, "--checkpoint", CHECKPOINT, *LONG)
    return InterruptedCase(
        core,
        files=files,
        energy=world.energy(name),
        accident=f"Ctrl-C after {seconds:.3f} s",
        seconds=seconds,
    )


@kind("full disk", 6, apart=True)
def full_disk(rng: random.Random, world: World) -> Case:
    name, files = _system(rng, world)
    limit = rng.choice((0, 1, 100, 1000, 5000, 20000, 60000, rng.randrange(100000)))
    sides = rng.sample((("--trace", "t.json"), ("--json", "r.json"), ("--verbose",)), rng.randint(0, 3))
    if rng.random() < 0.3:
        sides.append((rng.choice(("--trace", "--json")), FULL))
    core = ("ccsd", f"{name}.xyz", *SYSTEMS[name].options, "--checkpoint", CHECKPOINT)
    return FullDiskCase(
        core,
        tuple(sides),
        files,
        energy=world.energy(name),
        accident=f"files of at most {limit} bytes",
        limit=limit,
    )


@kind("full disk of other commands", 4, apart=True)
def full_disk_elsewhere(rng: random.Random, world: World) -> Case:
    limit = rng.choice((0, 1, 100, 1000, rng.randrange(20000)))
    files = {"h2.xyz": world.content("h2.xyz"), "h2.dump": world.content("h2.dump")}
    files["t.json"] = json.dumps(made_document()).encode()
    commands = (
        ("fcidump", "h2.xyz", "--basis", "sto-3g", "--out", rng.choice(("new.dump", "h2.dump", FULL))),
        ("report", "t.json", "--out", rng.choice(("page.html", FULL))),
        ("plan", "h2.dump", "--json", rng.choice(("p.json", FULL))),
        (
            "simulate",
            "h2.dump",
            "--workers",
            "2",
            "--policy",
            "lpt",
            rng.choice(("--json", "--trace")),
            rng.choice(("s", FULL)),
        ),
        ("simulate", "h2.dump", "--workers", "1,2", "--policy", "lpt", "--picture", "p.png"),
        ("study", "pvm-table1", "--json", rng.choice(("s.json", FULL))),
        ("study", "pvm-table1", "--out", "folder"),
    )
    return FullDiskCase(
        rng.choice(commands), files=files, accident=f"files of at most {limit} bytes", limit=limit
    )


@kind("full or closed output", 0.3, apart=True)
def full_output(rng: random.Random, world: World) -> Case:
    files = {"h2.dump": world.content("h2.dump")}
    commands = (
        ("ccsd", "h2.dump", "--no-checkpoint"), ("ccsd", "-"),
        ("ccsd", "h2.dump", "--no-checkpoint", "--json", "-"),
        ("plan", "h2.dump"), ("study", "list"), ("--help",), ("--version",), ("ccsd", "--help"),
        ("simulate", "h2.dump", "--workers", "2"),
    )  # fmt: skip
    redirected = rng.choice(
        (">/dev/full", "| head -c 10 >/dev/null", "| true", ">&-", "2>&-", "</dev/null", "<&-")
    )
    return ProgramCase(rng.choice(commands), files=files, accident=redirected, redirected=redirected)


def in_child(
    arguments: list[str],
    first: Callable[[], None] | None = None,
    after: Callable[[int], None] | None = None,
) -> Ended | Problem | None:
    """Runs the command line in a fork of this process; None if it dies. `after` may do something to it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(arguments, first, writer)
    os.close(writer)
    if after:
        after(child)
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(content) if content else None


def _answer(arguments: list[str], first: Callable[[], None] | None, writer: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if first:
            first()
        answer: Ended | Problem = run_main(arguments)
    except KeyboardInterrupt as error:
        answer = Problem.of_error(error)
        if "tilewise" not in answer.detail:  # too early or too late for the command line
            answer = Ended(INTERRUPTED, "", "tilewise: interrupted\n")
    except BaseException as error:
        answer = Problem.of_error(error)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(writer, pickle.dumps(answer))
    os._exit(0)


def _signal(child: int, seconds: float, number: signal.Signals) -> None:
    time.sleep(seconds)
    os.kill(child, number)


def _system(rng: random.Random, world: World) -> tuple[str, dict[str, bytes]]:
    """A molecule, perhaps with a checkpoint of an earlier run."""
    name = rng.choice(("h2", "lih"))
    files = {f"{name}.xyz": world.content(f"{name}.xyz")}
    if rng.random() < 0.3:
        files[CHECKPOINT] = world.content(f"{name}.h5")
    return name, files
