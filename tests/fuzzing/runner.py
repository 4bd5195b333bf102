"""Child processes that run cases, so that these may crash and hang."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import pkgutil
import resource
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import tilewise
from fuzzing.case import Case, Problem, Verdict, case_of, kind_of, minimized
from fuzzing.remembered import remember
from fuzzing.world import World

FRESH = 2000
"""Cases after which the process that runs them is replaced, so that it does not grow."""
TELL = signal.SIGUSR1
"""Has a child write where it is."""
SMALLER = 0.2
"""Of the time after which a case is taken to hang: for making a finding smaller."""
DATA = 8 << 30
"""Bytes that a case may ask for: more ends as an error, not in the machine's memory. PySCF asks for 1.6 GB
per thread in a direct SCF, without using them."""

TURN = 0.5
"""Seconds of one turn of waiting for an answer."""

Answer = tuple[str, Problem | None, str]
"""How a case ended, what is wrong with that, and the text of a small case that shows it."""


class Runner:
    """Runs cases in a child process, and in another one after `fresh` of them or when it is lost."""

    def __init__(self, seed: int, world: World, hangs: float, fresh: int = FRESH) -> None:
        self.seed, self.world, self.hangs, self.fresh = seed, world, hangs, fresh
        self.text = ""
        """The last case, as it was tried."""
        self._context = multiprocessing.get_context("fork")
        self._child: Any = None
        self._left = 0

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def __call__(self, number: int, known: set[tuple[str, str]]) -> Answer:
        """Tries a case; findings that are `known`, by kind and signature, are not made smaller."""
        if not self._left:
            self._stop()
            self._start()
        self._left -= 1
        self._pipe.send((number, known))
        self.text = ""
        try:
            while self._answers():
                answer = self._pipe.recv()
                if not isinstance(answer, str):
                    return answer
                self.text = answer
        except (EOFError, ConnectionResetError):
            return self._lost("crash")
        return self._lost("hang")

    def _answers(self) -> bool:
        """Waits in short turns: time in which the whole campaign is stopped counts as one of them."""
        turns = max(1, round(self.hangs / TURN))
        return any(self._pipe.poll(self.hangs / turns) for _ in range(turns))

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        self._stacks = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115  closed by _stop
        arguments = (theirs, self._pipe, self.seed, self.world, self._stacks.fileno(), SMALLER * self.hangs)
        self._child = self._context.Process(target=_serve, args=arguments)
        self._child.start()
        theirs.close()
        self._left = self.fresh

    def _stop(self) -> None:
        if self._child is not None:
            self._pipe.close()
            self._child.join(timeout=5)
            if self._child.is_alive():
                self._child.kill()
                self._child.join()
            self._stacks.close()
            self._child, self._left = None, 0

    def _lost(self, what: str) -> Answer:
        if what == "hang":
            os.kill(self._child.pid, TELL)
            self._child.join(timeout=TURN)
            self._child.kill()
        self._child.join()
        self._stacks.seek(0)
        stack, code = self._stacks.read(), self._child.exitcode
        frames = [line.strip() for line in stack.splitlines() if "/tilewise/" in line]
        place = frames[0].split("/")[-1].replace('"', "") if frames else f"exit code {code}"
        self._stop()
        return what, Problem(what, place, stack[:1500]), self.text


def _serve(
    pipe: Connection, other_end: Connection, seed: int, world: World, stacks: int, seconds: float
) -> None:
    """The child: tries case after case until nobody asks any more; `seconds` are for making one smaller."""
    other_end.close()
    remember()
    resource.setrlimit(resource.RLIMIT_DATA, (DATA, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(stacks)
    faulthandler.register(TELL, stacks)
    for number, known in requests(pipe):
        with _new_folder():
            case = case_of(seed, number, world)
        pipe.send(str(case))
        pipe.send(_tried(case, kind_of(seed, number).name, world, known, seconds))
    os._exit(0)


def requests(pipe: Connection) -> Iterator[Any]:
    """What a parent asks of its child, until it closes its end or is gone."""
    parent = os.getppid()
    while True:
        try:
            while not pipe.poll(1.0):
                if os.getppid() != parent:
                    return
            yield pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return


def _tried(case: Case, kind: str, world: World, known: set[tuple[str, str]], seconds: float) -> Answer:
    verdict = _in_new_folder(case, world)
    problem = verdict.problem
    if problem is None or (kind, problem.signature) in known:
        return verdict.outcome, problem, ""
    small = minimized(case, problem, lambda other: _in_new_folder(other, world), seconds)
    return verdict.outcome, problem, str(small)


def _in_new_folder(case: Case, world: World) -> Verdict:
    with _new_folder():
        return case.run(world)


@contextmanager
def _new_folder() -> Iterator[None]:
    """An empty folder to work in, which is gone afterwards."""
    before, folder = os.getcwd(), tempfile.mkdtemp(prefix="fuzz-")
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def prepared_world(known: World | None = None) -> Iterator[World]:
    """Energies and files: those that are known, or new ones.

    They are made in a child process: this one must stay without threads, to be forked.
    """
    _import_all()
    if known is not None:
        yield known
        return
    with tempfile.TemporaryDirectory(prefix="fuzz-world-") as folder:
        world = World(Path(folder))
        child = multiprocessing.get_context("fork").Process(target=world.prepare)
        child.start()
        child.join()
        if child.exitcode:
            raise RuntimeError("the files that all cases start from could not be made")
        yield world


def _import_all() -> None:
    """All of tilewise and what it uses, now, so that no child has to do it."""
    for module in pkgutil.walk_packages(tilewise.__path__, "tilewise."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    import_module("matplotlib.figure")
