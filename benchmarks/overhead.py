"""What a task costs that does nothing: microseconds per task of the native executor.

python benchmarks/overhead.py [--tasks 200000] [--threads 2] [--repeat 15]

Tasks are 64 chains. All schedules run in turn; the best and the median of their runs are printed.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from tilewise import native
from tilewise.inspect import TaskGraph
from tilewise.inspect.records import KINDS, TASK
from tilewise.schedule import Phase, Queue, ReadyQueues, Schedule, Team


def empty_graph(count: int, width: int) -> TaskGraph:
    """Tasks without records, in chains of `count / width`."""
    tasks = np.zeros(count, TASK)
    tasks["kind"] = KINDS.index("gemm")
    sources = np.arange(max(0, count - width))
    return TaskGraph.bare(tasks, sources=sources, targets=sources + width)


def schedules(graph: TaskGraph, workers: int) -> dict[str, Schedule]:
    every = np.arange(len(graph))
    lists = tuple(Queue(every[w::workers], (w,), 0) for w in range(workers))
    by_name = {
        "static list": Schedule("static", workers, (Phase(lists),)),
        "counter": Schedule("counter", workers, (Phase((Queue(every, tuple(range(workers))),)),)),
    }
    flow = Schedule("dataflow", workers, (), np.arange(len(graph), 0, -1.0))
    per_worker = ReadyQueues.of_workers(Team(workers), np.zeros(len(graph), np.int64))
    return by_name | {"dataflow, one queue": flow, "dataflow, queues=worker": replace(flow, ready=per_worker)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=15)
    args = parser.parse_args()
    count, workers = args.tasks, args.threads
    graph = empty_graph(count, 64)
    tables, scratch = native.tables(graph), np.zeros(workers)
    arrays = {name: schedule.arrays(graph) for name, schedule in schedules(graph, workers).items()}
    seconds: dict[str, list[float]] = {name: [] for name in arrays}
    for _ in range(args.repeat):
        for name, schedule in arrays.items():
            began = time.perf_counter()
            native.run(graph, tables, schedule, [], scratch, workers)
            seconds[name].append(time.perf_counter() - began)
    print(f"microseconds per task, {count} tasks, {workers} threads; best and median of {args.repeat} runs")
    for name, values in seconds.items():
        print(f"{name:24}{1e6 * min(values) / count:8.3f}{1e6 * float(np.median(values)) / count:8.3f}")


if __name__ == "__main__":
    main()
