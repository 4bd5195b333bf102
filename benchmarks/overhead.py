"""What a task costs that does nothing: microseconds per task of the native executor.

python benchmarks/overhead.py [--tasks 200000] [--threads 2]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tilewise import native
from tilewise.inspect import TaskGraph
from tilewise.inspect.records import EXTRAS, KINDS, RECORDS, TASK
from tilewise.schedule import Phase, Queue, Schedule


def empty_graph(count: int, width: int) -> TaskGraph:
    """Tasks without records, in chains of `count / width`."""
    tasks = np.zeros(count, TASK)
    tasks["kind"] = KINDS.index("gemm")
    records = {key: np.zeros(0, dtype) for key, dtype in (RECORDS | EXTRAS).items()}
    sources = np.arange(max(0, count - width))
    return TaskGraph(
        (), (), {}, tasks, records, np.zeros(0), np.zeros(0, np.int64), 0, 0, sources, sources + width
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=200_000)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    count, workers = args.tasks, args.threads
    graph = empty_graph(count, 64)
    every = np.arange(count)
    schedules = {
        "static list": Schedule(
            "static", workers, (Phase(tuple(Queue(every[w::workers], (w,), 0) for w in range(workers))),)
        ),
        "counter": Schedule("counter", workers, (Phase((Queue(every, tuple(range(workers))),)),)),
        "dataflow": Schedule("dataflow", workers, (), np.arange(count, 0, -1.0)),
    }
    for name, schedule in schedules.items():
        arrays, tables, scratch = schedule.arrays(graph), native.tables(graph), np.zeros(workers)
        best = np.inf
        for _ in range(5):
            began = time.perf_counter()
            native.run(tables, arrays, graph, [], scratch, workers)
            best = min(best, time.perf_counter() - began)
        print(f"{name:12} {1e6 * best / count:.3f} microseconds per task ({count} tasks, {workers} threads)")


if __name__ == "__main__":
    main()
