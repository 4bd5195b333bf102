"""Runs a Python function on the items of a loop: on threads, or on processes.

Both are generators that give what was done as it is done, and stop handing out when they are closed.
"""

from __future__ import annotations

import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_all_start_methods, get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import numpy as np

from tilewise.config import thread_limits
from tilewise.errors import InputError
from tilewise.execute.source import Source

FLUSH = 0.2
"""Seconds after which a process tells what it has done, also in the middle of a chunk."""
GRACE = 2.0
"""Seconds that processes have to end by themselves."""


@dataclass(frozen=True)
class Done:
    """One item: its number, who did it, when (seconds of the system's monotonic clock), and what came out."""

    item: int
    worker: int
    start: float
    end: float
    cpu: float
    """Seconds of CPU time."""
    value: Any = None
    error: BaseException | None = None


Function = Callable[[Any], Any]


def apply(function: Function, items: Sequence[Any], item: int, worker: int) -> Done:
    """Calls the function on one item."""
    start, cpu = time.monotonic(), time.thread_time()
    value, error = None, None
    try:
        value = function(items[item])
    except BaseException as caught:  # whatever the caller's function raises is told to the caller
        error = caught
    return Done(item, worker, start, time.monotonic(), time.thread_time() - cpu, value, error)


# Threads


def on_threads(
    function: Function, items: Sequence[Any], source: Source, workers: int
) -> Generator[Done, None, None]:
    """All workers in this process. Closed early, it waits for the items that are being done."""
    lock, stop, done = threading.Lock(), threading.Event(), SimpleQueue[Done | None]()

    def work(worker: int) -> None:
        seconds = 0.0
        try:
            while not stop.is_set():
                with lock:
                    mine = source.take(worker, seconds)
                if not len(mine):
                    return
                began = time.monotonic()
                for item in mine.tolist():
                    found = apply(function, items, item, worker)
                    if found.error is not None:
                        stop.set()
                    done.put(found)
                    if stop.is_set():
                        return
                seconds = time.monotonic() - began
        finally:
            done.put(None)

    threads = [threading.Thread(target=work, args=(w,), daemon=True) for w in range(workers)]
    for thread in threads:
        thread.start()
    running = workers
    try:
        while running:
            found = done.get()
            if found is None:
                running -= 1
            else:
                yield found
    except KeyboardInterrupt:  # whoever presses Ctrl-C does not wait
        stop.set()
        raise
    except GeneratorExit:
        stop.set()
        for thread in threads:
            thread.join()
        raise


# Processes


def on_processes(
    function: Function, items: Sequence[Any], source: Source, workers: int, start: str | None = None
) -> Generator[Done, None, None]:
    """A process for each worker; this one hands out. Closed early, it ends the processes."""
    context = get_context(start or ("fork" if "fork" in get_all_start_methods() else "spawn"))
    crew: dict[Connection, _Member] = {}
    try:
        for worker in range(workers):
            here, there = context.Pipe()
            others = [here, *crew] if context.get_start_method() == "fork" else []
            process = context.Process(  # type: ignore[attr-defined]
                target=_work, args=(worker, function, items, there, others), daemon=True
            )
            _begin(process, context.get_start_method())
            there.close()
            crew[here] = _Member(worker, process)
            crew[here].hand(here, source.take(worker))
        yield from _serve(crew, source)
    finally:
        _end(crew)


@dataclass
class _Member:
    """One process and what it has been given."""

    worker: int
    process: Any
    given: tuple[int, ...] = ()

    def hand(self, here: Connection, chunk: np.ndarray) -> None:
        """Gives it items; none to say that there are no more."""
        self.given = tuple(chunk.tolist())
        with suppress(BrokenPipeError, ConnectionResetError):  # its end is seen when we listen
            here.send_bytes(np.asarray(chunk, np.int64).tobytes())


def _begin(process: Any, method: str) -> None:
    try:
        process.start()
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        if method == "fork":
            raise
        raise InputError(
            f"the function or its items cannot be sent to another process ({error}): "
            "define the function at the top of a module, or use executor='threads'"
        ) from None


def _serve(crew: dict[Connection, _Member], source: Source) -> Generator[Done, None, None]:
    """Listens until every process has said that it is through."""
    listening = {here: member for here, member in crew.items() if member.given}
    while listening:
        for here in connection.wait(list(listening)):
            assert isinstance(here, Connection)
            member = listening[here]
            try:
                found, seconds = pickle.loads(here.recv_bytes())
            except (EOFError, ConnectionResetError):
                raise lost(member.worker, member.given, member.process) from None
            yield from found
            if seconds is None:  # in the middle of a chunk
                continue
            member.hand(here, source.take(member.worker, seconds))
            if not member.given:
                del listening[here]


class WorkerLost(Exception):
    """A process ended without a word, as when the system kills it for want of memory."""


def lost(worker: int, given: tuple[int, ...], process: Any) -> WorkerLost:
    """Says what is known about it."""
    process.join(GRACE)
    code = process.exitcode
    how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
    some = str(given[0]) if len(given) == 1 else f"{given[0]} to {given[-1]}"
    return WorkerLost(f"process {worker} ended with {how} while it had items {some}")


def _end(crew: dict[Connection, _Member]) -> None:
    for here, member in crew.items():
        if member.given:
            member.process.terminate()
        here.close()
    for member in crew.values():
        member.process.join(GRACE)
        if member.process.is_alive():
            member.process.kill()
            member.process.join()


def _work(
    worker: int, function: Function, items: Sequence[Any], there: Connection, others: list[Connection]
) -> None:
    """The life of one process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    for other in others:  # ends of other pipes that were inherited: a closed pipe must be seen
        other.close()
    with thread_limits(1), suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            mine = np.frombuffer(there.recv_bytes(), np.int64).tolist()
            if not mine:
                break
            _do(worker, function, items, mine, there)
    there.close()


def _do(worker: int, function: Function, items: Sequence[Any], mine: list[int], there: Connection) -> None:
    """One chunk; results are told at the end, and every now and then before it."""
    began = told = time.monotonic()
    ready: list[Done] = []
    for item in mine:
        ready.append(apply(function, items, item, worker))
        if ready[-1].error is not None:
            break
        if time.monotonic() - told > FLUSH and item != mine[-1]:
            there.send_bytes(packed(ready, None))
            ready, told = [], time.monotonic()
    there.send_bytes(packed(ready, time.monotonic() - began))


def packed(ready: list[Done], seconds: float | None) -> bytes:
    """For another process; what cannot be sent is an error of its item."""
    if all(done.error is None for done in ready):
        with suppress(Exception):
            return pickle.dumps((ready, seconds), pickle.HIGHEST_PROTOCOL)
    return pickle.dumps(([sendable(done) for done in ready], seconds), pickle.HIGHEST_PROTOCOL)


def sendable(done: Done) -> Done:
    """The same for another process: with an error that can be sent, or with one that says why not."""
    error = done.error
    if error is None:
        try:
            pickle.dumps(done)
            return done
        except Exception as reason:
            error = InputError(
                f"its result, a {type(done.value).__name__}, cannot be sent to another process ({reason}): "
                "return plain data, or use executor='threads'"
            )
    else:
        where = "".join(traceback.format_exception(error)).rstrip()
        error.add_note(f"in process {done.worker}:\n{where}")
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(where)
    return Done(done.item, done.worker, done.start, done.end, done.cpu, None, error)
