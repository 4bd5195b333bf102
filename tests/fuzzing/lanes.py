"""Processes that try cases side by side, each with children of its own that may crash and hang."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from fuzzing.case import Problem, kind_of
from fuzzing.runner import Runner, requests
from fuzzing.world import World

Known = Collection[tuple[str, str]]
"""Findings, by kind and signature, that need not be made smaller again."""


@dataclass(frozen=True)
class Tried:
    """A case by its number: how it ended, what is wrong with that, and a small case that shows it."""

    number: int
    outcome: str
    problem: Problem | None
    small: str
    seconds: float
    text: str
    """The case as it was tried."""


class Lane:
    """Tries cases one after the other: most in one child process, those that are apart in a process each."""

    def __init__(self, seed: int, world: World, hangs: float) -> None:
        self.seed = seed
        self._runners = {False: Runner(seed, world, hangs), True: Runner(seed, world, hangs, fresh=1)}
        self._stack = ExitStack()

    def __enter__(self) -> Lane:
        for runner in self._runners.values():
            self._stack.enter_context(runner)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, number: int, known: Known) -> Tried:
        began = time.monotonic()
        runner = self._runners[kind_of(self.seed, number).apart]
        outcome, problem, small = runner(number, set(known))
        return Tried(number, outcome, problem, small, time.monotonic() - began, runner.text)


class Lanes:
    """`jobs` lanes in a process each; whichever is done first is given the next case."""

    def __init__(self, seed: int, world: World, hangs: float, jobs: int) -> None:
        self._lane, self._jobs = Lane(seed, world, hangs), jobs
        self._context = multiprocessing.get_context("fork")
        self._processes: list[Any] = []
        self._pipes: list[Connection] = []

    def __enter__(self) -> Lanes:
        for _ in range(self._jobs):
            ours, theirs = self._context.Pipe()
            self._pipes.append(ours)
            process = self._context.Process(target=_serve, args=(theirs, list(self._pipes), self._lane))
            process.start()
            theirs.close()
            self._processes.append(process)
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join()

    def tried(self, numbers: Iterator[int], known: Known) -> Iterator[Tried]:
        """Cases as they end; `numbers` is asked for the next one whenever a lane is free."""
        busy: set[Connection] = set()
        free = list(self._pipes)
        while True:
            for pipe, number in zip(free, numbers, strict=False):
                pipe.send((number, set(known)))
                busy.add(pipe)
            if not busy:
                return
            free = [pipe for pipe in wait(list(busy)) if isinstance(pipe, Connection)]
            for pipe in free:
                busy.remove(pipe)
                yield pipe.recv()


def _serve(pipe: Connection, other_ends: list[Connection], lane: Lane) -> None:
    for other in other_ends:
        other.close()
    with lane:
        for number, known in requests(pipe):
            pipe.send(lane(number, known))
