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
from typing import Any, NamedTuple

import numpy as np

from tilewise.config import find_pools, thread_limits
from tilewise.errors import InputError
from tilewise.execute.source import SharedSource, Source
from tilewise.interrupts import interrupts_held

FLUSH = 0.1
"""Seconds after which a process tells what it has done. To wake the listener interrupts those who compute:
told every 2 ms, loops took a tenth longer."""
GRACE = 2.0
"""Seconds that processes have to end by themselves."""


class Done(NamedTuple):
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
    """A process for each worker, which takes items by itself; we collect. Closed early, it ends them."""
    context = get_context(start or ("fork" if "fork" in get_all_start_methods() else "spawn"))
    shared = SharedSource(source, len(items) + workers, context)
    find_pools()  # once and not in each process, which is to hold them to one thread
    crew: dict[Connection, _Member] = {}
    try:
        for worker in range(workers):
            here, there = context.Pipe(duplex=False)
            others = [here, *crew] if context.get_start_method() == "fork" else []
            process = context.Process(  # type: ignore[attr-defined]
                target=_work, args=(worker, function, items, shared, there, others), daemon=True
            )
            with interrupts_held():  # Python forgets a Ctrl-C of the moment in which it forks
                _begin(process, context.get_start_method())
                crew[here] = _Member(worker, process)
            there.close()
        yield from _collect(crew, shared)
        shared.taken()  # so that our own copy of the source has counted all calls
    finally:
        _end(crew)


@dataclass
class _Member:
    """One process, and whether it has said that it is through."""

    worker: int
    process: Any
    through: bool = False


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


def _collect(crew: dict[Connection, _Member], shared: SharedSource) -> Generator[Done, None, None]:
    """Listens until every process has said that it is through."""
    listening = dict(crew)
    while listening:
        for here in connection.wait(list(listening)):
            assert isinstance(here, Connection)
            member = listening[here]
            try:
                found, member.through = pickle.loads(here.recv_bytes())
            except (EOFError, ConnectionResetError):
                given = shared.taken().get(member.worker, np.zeros(0, np.int64))
                raise lost(member.worker, given.tolist(), member.process) from None
            yield from (Done(*fields) for fields in found)
            if member.through:
                del listening[here]


class WorkerLost(Exception):
    """A process ended without a word, as when the system kills it for want of memory."""


def lost(worker: int, given: Sequence[int], process: Any) -> WorkerLost:
    """Says what is known about it."""
    process.join(GRACE)
    code = process.exitcode
    how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
    if not given:
        return WorkerLost(f"process {worker} ended with {how} before it had any items")
    some = str(given[0]) if len(given) == 1 else f"{given[0]} to {given[-1]}"
    return WorkerLost(f"process {worker} ended with {how} while it had items {some}")


def _end(crew: dict[Connection, _Member]) -> None:
    for here, member in crew.items():
        if not member.through:
            member.process.terminate()
        here.close()
    for member in crew.values():
        member.process.join(GRACE)
        if member.process.is_alive():
            member.process.kill()
            member.process.join()


def _work(
    worker: int,
    function: Function,
    items: Sequence[Any],
    shared: SharedSource,
    there: Connection,
    others: list[Connection],
) -> None:
    """The life of one process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    for other in others:  # ends of other pipes that were inherited: a closed pipe must be seen
        other.close()
    with thread_limits(1), suppress(BrokenPipeError, ConnectionResetError):
        _do(worker, function, items, shared, there)
    there.close()


def _do(
    worker: int, function: Function, items: Sequence[Any], shared: SharedSource, there: Connection
) -> None:
    """All chunks of a process, up to the first error; results are told every now and then, and at the end."""
    ready: list[Done] = []
    seconds, told = 0.0, time.monotonic()
    while len(mine := shared.take(worker, seconds)):
        began = time.monotonic()
        for item in mine.tolist():
            ready.append(done := apply(function, items, item, worker))
            if done.error is not None:
                shared.stop()
                break
            if done.end - told > FLUSH:
                there.send_bytes(packed(ready, False))
                ready, told = [], time.monotonic()
        seconds = time.monotonic() - began
    there.send_bytes(packed(ready, True))


def packed(ready: list[Done], through: bool) -> bytes:
    """For another process; what cannot be sent is an error of its item."""
    if all(done.error is None for done in ready):
        with suppress(Exception):
            return _pickled(ready, through)
    return _pickled([sendable(done) for done in ready], through)


def _pickled(ready: list[Done], through: bool) -> bytes:
    return pickle.dumps(([tuple(done) for done in ready], through), pickle.HIGHEST_PROTOCOL)


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
