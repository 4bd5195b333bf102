"""`tilewise.parallel_for`: any Python loop, shared out by the policies that share out tensor contractions."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np

from tilewise import cards
from tilewise.arguments import MOST_THREADS, file_path, flag, whole_number
from tilewise.config import resolve_threads
from tilewise.cost.learned import check_name, keep_seconds, learned_seconds
from tilewise.errors import InputError, ItemError, TilewiseError, one_of
from tilewise.execute.mpi.world import World, world
from tilewise.execute.pool import Done, WorkerLost, on_processes, on_threads
from tilewise.execute.rank_pool import on_ranks
from tilewise.execute.source import Source
from tilewise.inspect.loop import LoopGraph
from tilewise.inspect.records import TRACE, Table
from tilewise.output_files import replacing
from tilewise.schedule import Policy, Schedule, policy_named
from tilewise.trace import Summary, TraceFile, summarize
from tilewise.trace.page import report_page
from tilewise.trace.reader import read_trace
from tilewise.wording import counted

T = TypeVar("T")
R = TypeVar("R")

EXECUTORS = ("threads", "processes", "mpi")
LONGEST_CHUNK = {"threads": 0.005, "processes": 0.005, "mpi": 0.1}
"""Seconds of a chunk at most, by default. To hand one out takes some tens of microseconds, and between ranks,
which look for messages now and then, about a millisecond."""
PATIENCE = 10.0
"""Seconds of a loop after which its progress is shown."""
SHOWN = 60
"""Letters of an item in an error."""


@dataclass(frozen=True)
class LoopResult(Sequence[R], Generic[R]):
    """What a loop gave: the results in the order of the items, and who did what, and how long it took.

    `list(r)`, `r[3]` and `len(r)` are the results; `print(r)` says how well the loop was balanced. Handed to
    another `parallel_for` as `costs`, it tells what each item takes.
    """

    values: list[R]
    seconds: np.ndarray
    """Wall-clock seconds of each item."""
    cpu_seconds: np.ndarray
    """Seconds of CPU time of each item."""
    worker: np.ndarray
    """Who did each item, from 0 up."""
    workers: int
    policy: str
    executor: str
    decision: str
    """What the policy decided, for people."""
    trace: Table
    """A record of each item, of type `inspect.records.TRACE`: times in nanoseconds."""
    expected: np.ndarray
    """What each item was taken to cost."""
    counts: dict[str, list[float]]
    """What each worker counted, a list over the workers for each of `trace.chrome.COUNTS`."""

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> list[R]: ...
    def __getitem__(self, index: int | slice) -> R | list[R]:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[R]:
        return iter(self.values)

    @property
    def summary(self) -> Summary:
        """Makespan, and how long each worker was busy, in seconds."""
        return summarize(self._graph, self.trace, self.workers)

    @property
    def makespan(self) -> float:
        """Seconds from the begin of the first item to the end of the last one."""
        return self.summary.makespan

    @property
    def imbalance(self) -> float:
        """The share of the makespan in which the average worker was not busy, from 0 to 1."""
        return self.summary.imbalance

    @property
    def note(self) -> str:
        """What would make the loop faster, if that can be told."""
        wall, cpu, span = float(self.seconds.sum()), float(self.cpu_seconds.sum()), self.makespan
        if self.executor != "threads" or self.workers < 2 or span < 0.1:
            return ""
        # Who waits for files or the network uses next to no CPU; who waits for Python's lock takes turns.
        if 0.7 * span < cpu < 1.2 * span and wall > 1.5 * cpu:
            return "items took turns, as functions do that hold Python's lock: executor='processes' is faster"
        return ""

    def report(self, path: str | Path) -> Path:
        """Writes a page that shows who did what when, as `tilewise report` does of a calculation."""
        target = file_path("path", path)
        with replacing(target) as place:
            self._trace_file().write(place)
            page = report_page(read_trace(place), 1)
            place.write_text(page, encoding="utf-8")
        return target

    def write_trace(self, path: str | Path) -> Path:
        """Writes a trace that Perfetto opens, and that `tilewise report` makes a page of."""
        target = file_path("path", path)
        with replacing(target) as place:
            self._trace_file().write(place)
        return target

    def _trace_file(self) -> TraceFile:
        if not len(self):
            raise InputError("a loop without items has nothing to report")
        title = f"{counted(len(self), 'item')} on {self.workers} {self.executor}"
        made = TraceFile(title, self.policy, self.decision, self.workers)
        made.add(self._graph, self.trace, self.expected, self.counts, 1, 0.0)
        return made

    @property
    def _graph(self) -> LoopGraph:
        return LoopGraph(len(self), "loop")

    @property
    def _shown(self) -> dict[str, str]:
        ends = [self.trace["end"][self.worker == w].max(initial=0) for w in range(self.workers)]
        apart = 1e-9 * float(np.ptp(ends)) if len(self) else 0.0
        busy = 100 * (1 - self.imbalance)
        shown = {
            "items": f"{len(self)} by {self.policy} on {self.workers} {self.executor}",
            "time": f"{self.makespan:.3g} s, workers busy {busy:.0f} %, ended {apart:.2g} s apart",
        }
        return shown | ({"note": self.note} if self.note else {})

    def __str__(self) -> str:
        return cards.line("loop", self._shown)

    __repr__ = __str__


def parallel_for(
    f: Callable[[T], R],
    items: Iterable[T],
    costs: Sequence[float] | np.ndarray | Callable[[T], float] | LoopResult[Any] | None = None,
    policy: str | Policy | None = None,
    workers: int | None = None,
    executor: str = "threads",
    progress: bool | Callable[[int, int], None] = True,
    *,
    ordered: bool = True,
    learn: str | None = None,
    start_method: str | None = None,
) -> LoopResult[R] | Iterator[R]:
    """Calls f on every item, on several workers, and gives the results in the order of the items.

    f            a function of one item
    items        a list, or anything that can be listed
    costs        what each item takes, in any unit: numbers, a function of the item, or the result of an
                 earlier call; by default all take the same
    policy       a name in `tilewise.policies`, with parameters. By default half of what is left at a time, in
                 parts for each worker of at most 5 ms, on ranks 0.1 s: `factoring(f=2, most=0.005)`; the
                 longest items first if costs are known: `factoring(f=2, most=0.005, longest_first=true)`
    workers      by default all CPUs that this process may use
    executor     "threads", for functions that let go of Python's lock, or "processes", for all others; or
                 "mpi", with a worker on each rank of a script that mpiexec has started: all ranks call
                 this with the same items, and all have all results
    progress     True: a line on the standard error if the loop takes longer than ten seconds; or a function
                 that is called with the number of items done and of all
    ordered      False: an iterator that gives each result as soon as it is there, in no order
    learn        a name under which measured seconds are kept, as the costs of the next loop of that name
    start_method of processes: "fork" (the default where the system has it), "spawn" or "forkserver"

    The first error stops the hand-out: an `ItemError` names the item, and its cause is the error.
    """
    if not callable(f):
        raise InputError(f"f={f!r}: f must be a function of one item")
    if str(executor) not in EXECUTORS:
        raise one_of("executor", executor, EXECUTORS)
    listed = _listed(items)
    work = _costs(costs, listed, learn)
    ranks = _ranks(workers) if executor == "mpi" else None
    wanted = resolve_threads(None) if workers is None else whole_number("workers", workers, most=MOST_THREADS)
    count = ranks.size if ranks else max(1, min(wanted, len(listed)))
    chosen = policy_named(policy or _default_policy(executor, work))
    schedule = chosen(LoopGraph(len(listed), "loop"), work, count)
    start = _start_method(start_method)
    loop = _Loop(f, listed, Source(schedule), schedule, count, executor, start, ranks)
    shown = _shown_by(progress, len(listed))
    if not flag("ordered", ordered):
        return (done.value for done in loop.run(shown))
    results = list(loop.run(shown))
    made = loop.result(results, work, str(chosen))
    if learn is not None:
        keep_seconds(learn, made.seconds)
    return made


def _default_policy(executor: str, work: np.ndarray) -> str:
    known = len(work) > 0 and float(np.ptp(work)) > 0
    return f"factoring(f=2, most={LONGEST_CHUNK[executor]}{', longest_first=true' if known else ''})"


def _listed(items: Any) -> list[Any]:
    """The items of anything that has some; an array without an axis only looks as if it had."""
    if not hasattr(items, "__iter__") or getattr(items, "ndim", 1) == 0:
        raise InputError(f"items={items!r}: items must be a list, or anything that can be listed")
    return list(items)


def _costs(costs: Any, items: list[Any], learn: str | None) -> np.ndarray:
    """What each item takes, as numbers."""
    if learn is not None:
        check_name(learn)
        if costs is None:
            costs = learned_seconds(learn, len(items))
    if costs is None:
        return np.ones(len(items))
    if isinstance(costs, LoopResult):
        costs = costs.seconds
    given = _called(costs, items) if callable(costs) else costs
    try:
        work = np.array([float(cost) for cost in given])
    except (TypeError, ValueError):
        raise InputError(
            f"costs={costs!r}: a number for each item is needed, or a function that gives it"
        ) from None
    if len(work) != len(items):
        raise InputError(f"costs: there are {len(work)} of them for {counted(len(items), 'item')}")
    if not (np.isfinite(work) & (work >= 0)).all():
        wrong = int(np.flatnonzero(~(np.isfinite(work) & (work >= 0)))[0])
        raise InputError(f"costs: that of item {wrong} is {work[wrong]}, and must be a number from 0 up")
    return work


def _called(costs: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """What a function says of each item."""
    found = []
    for number, item in enumerate(items):
        try:
            found.append(costs(item))
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            raise InputError(f"costs: the function failed on item {number} ({cause})") from error
    return found


def _ranks(workers: int | None) -> World:
    """Those of this script."""
    found = world()
    if found.size == 1:
        raise InputError(
            "executor='mpi': there is one rank alone; start the script by mpiexec, as in "
            "'mpiexec -n 4 python script.py'"
        )
    if workers is not None and workers != found.size:
        raise InputError(f"workers={workers}: with executor='mpi' the workers are the {found.size} ranks")
    return found


def _start_method(name: str | None) -> str | None:
    valid = ("fork", "spawn", "forkserver")
    if name is not None and not (isinstance(name, str) and name in valid):
        raise one_of("start_method", name, valid)
    return name


@dataclass(frozen=True)
class _Loop(Generic[T, R]):
    """One loop: what is called on what, and who decides."""

    function: Callable[[T], R]
    items: list[T]
    source: Source
    schedule: Schedule
    workers: int
    executor: str
    start_method: str | None
    ranks: World | None = None

    def run(self, shown: Callable[[int], None]) -> Generator[Done, None, None]:
        """What was done, as it is done; an error ends it."""
        doing, count = self._doing(shown), 0
        try:
            for done in doing:
                if done.error is not None:
                    raise self._error(done) from done.error
                count += 1
                if self.ranks is None:
                    shown(count)
                yield done
        except WorkerLost as error:
            raise TilewiseError(f"the loop was stopped: {error}; perhaps memory was short") from None
        finally:
            doing.close()

    def _doing(self, shown: Callable[[int], None]) -> Generator[Done, None, None]:
        if self.ranks is not None:
            return _each(on_ranks(self.function, self.items, self.source, self.ranks, shown))
        if self.executor == "threads":
            return on_threads(self.function, self.items, self.source, self.workers)
        return on_processes(self.function, self.items, self.source, self.workers, self.start_method)

    def _error(self, done: Done) -> Exception:
        if isinstance(done.error, KeyboardInterrupt):
            return done.error  # type: ignore[return-value]
        item = repr(self.items[done.item])
        item = item if len(item) <= SHOWN else f"{item[:SHOWN]}..."
        kind = "" if isinstance(done.error, InputError) else f"{type(done.error).__name__}: "
        cause = f"{kind}{done.error}"
        text = f"item {done.item} ({item}) failed on worker {done.worker}: {cause}"
        return ItemError(text, done.item, self.items[done.item], done.worker)

    def result(self, results: list[Done], work: np.ndarray, policy: str) -> LoopResult[R]:
        results.sort(key=lambda done: done.item)
        trace = np.zeros(len(results), TRACE)
        trace["worker"] = [done.worker for done in results]
        begin = min((done.start for done in results), default=0.0)
        for key in ("start", "end"):
            trace[key] = [round(1e9 * (getattr(done, key) - begin)) for done in results]
        trace["ready"] = trace["start"]
        zeros = [0.0] * self.workers
        counts = {"counter_calls": self.source.calls, "steals": self.source.steals}
        return LoopResult(
            values=[done.value for done in results],
            seconds=np.array([done.end - done.start for done in results]),
            cpu_seconds=np.array([done.cpu for done in results]),
            worker=trace["worker"].copy(),
            workers=self.workers,
            policy=policy,
            executor=self.executor,
            decision=str(self.schedule),
            trace=trace,
            expected=work,
            counts=counts | dict.fromkeys(("counter_seconds", "arena_bytes", "allocations"), zeros),  # type: ignore[arg-type]
        )


def _each(found: list[Done]) -> Generator[Done, None, None]:
    yield from found


def _shown_by(progress: bool | Callable[[int, int], None], total: int) -> Callable[[int], None]:
    """What is called with the number of items done."""
    if callable(progress):
        told: Callable[[int, int], None] = progress
        return lambda done: told(done, total)
    if not flag("progress", progress):
        return lambda done: None
    began = last = time.monotonic()

    def show(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - began < PATIENCE or (now - last < 1.0 and done < total):
            return
        last = now
        left = (now - began) * (total - done) / done
        end = "\n" if done == total or not sys.stderr.isatty() else "\r"
        print(f"  {done} of {total} items, about {left:.0f} s left   ", end=end, file=sys.stderr, flush=True)

    return show
