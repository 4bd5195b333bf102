"""Trace files: what viewers need, and that the reader gets back what a run has left."""

import json

import numpy as np
import pytest

from random_spaces import LETTERS
from tilewise import Space
from tilewise.equations import parse, plan_program
from tilewise.equations.ccsd import CCSD
from tilewise.inspect import inspect
from tilewise.inspect.records import KINDS
from tilewise.native import TRACE
from tilewise.trace import TraceFile, read_trace, report, summarize
from tilewise.trace.chrome import COUNTS, MOVED
from tilewise.trace.page import report_data

WORKERS = 3
WORLD = {LETTERS["o"]: Space.spatial("o", [2, 1]), LETTERS["v"]: Space.spatial("v", [3, 2])}


@pytest.fixture(scope="module")
def graph():
    return inspect(plan_program(parse(CCSD), WORLD))


def one_after_the_other(graph, seed):
    """Times as a run leaves them, in nanoseconds: tasks in their order, each on some worker."""
    rng = np.random.default_rng(seed)
    trace = np.zeros(len(graph), TRACE)
    trace["worker"] = rng.integers(WORKERS, size=len(graph))
    gaps, spent = rng.integers(1, 900, (2, len(graph)))
    trace["end"] = np.cumsum(gaps + spent)
    trace["start"] = trace["end"] - spent
    trace["ready"] = trace["start"] - gaps // 2
    return trace


@pytest.fixture(scope="module")
def written(graph, tmp_path_factory):
    """A file with two iterations, and the times and predictions in it."""
    path = tmp_path_factory.mktemp("trace") / "run.json"
    file = TraceFile("a title", "lpt", "lpt: lists", WORKERS)
    counts = {key: [1.0, 2.0, 3.0 + k] for k, key in enumerate(COUNTS)}
    traces = [one_after_the_other(graph, seed) for seed in (1, 2)]
    predicted = np.random.default_rng(3).random(len(graph))
    for k, trace in enumerate(traces):
        file.add(graph, trace, predicted, counts, number=k + 1, start=0.25 * k)
    file.write(path)
    return path, traces, predicted


def test_viewers_find_workers_and_complete_events_in_microseconds(graph, written):
    path, traces, _ = written
    document = json.loads(path.read_text())
    assert document["displayTimeUnit"] == "ms"
    names = [e["args"]["name"] for e in document["traceEvents"] if e["ph"] == "M"]
    assert names == ["worker 0", "worker 1", "worker 2"]
    events = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(events) == 2 * len(graph)
    assert [e["ts"] for e in events] == sorted(e["ts"] for e in events)
    for k, trace in enumerate(traces):
        for event in events[k * len(graph) : (k + 1) * len(graph)]:
            t = event["args"]["task"]
            assert event["tid"] == trace["worker"][t] and event["cat"] == KINDS[graph.tasks["kind"][t]]
            assert event["ts"] == pytest.approx(250_000 * k + trace["start"][t] / 1000, abs=1e-6)
            assert event["dur"] == pytest.approx((trace["end"] - trace["start"])[t] / 1000)
            assert event["args"]["wait_us"] == pytest.approx((trace["start"] - trace["ready"])[t] / 1000)


def test_the_reader_gets_back_what_was_written(graph, written):
    path, traces, predicted = written
    read = read_trace(path)
    assert (read.title, read.policy, read.decision, read.workers) == ("a title", "lpt", "lpt: lists", WORKERS)
    for iteration, trace in zip(read.iterations, traces, strict=True):
        order = np.lexsort((trace["start"], trace["worker"]))
        runs = iteration.runs
        assert runs["worker"].tolist() == trace["worker"][order].tolist()
        assert runs["start"] == pytest.approx(1e-9 * trace["start"][order], abs=1e-12)
        assert runs["seconds"] == pytest.approx(1e-9 * (trace["end"] - trace["start"])[order])
        assert runs["predicted"] == pytest.approx(predicted[order])
        assert runs["flops"].tolist() == graph.flops[order].tolist()
        assert runs["level"].tolist() == graph.levels[order].tolist()
        texts = [graph.operations[k].text.split(";")[0] for k in graph.tasks["operation"][order]]
        assert [read.operations[k] for k in runs["operation"]] == texts
        assert all(read.blocks[b] in graph.describe(t) for b, t in zip(runs["block"], order, strict=True))


def test_the_report_agrees_with_the_summary_of_the_run(graph, written):
    path, traces, _ = written
    read = read_trace(path)
    for iteration, trace in zip(read.iterations, traces, strict=True):
        made, summary = report(read, iteration), summarize(graph, trace, WORKERS)
        assert made.makespan == pytest.approx(summary.makespan)
        assert made.imbalance == pytest.approx(summary.imbalance)
        assert [row.compute + row.sort for row in made.workers] == pytest.approx(list(summary.busy))
        assert sum(row.sort for row in made.workers) == pytest.approx(summary.by_kind["sort"])
        longest = max(1e-9 * (trace["end"] - trace["start"]))
        assert longest <= made.critical_path <= made.work
        assert [row.allocations for row in made.workers] == [1, 2, 7]
        assert made.ranks == ()


def test_what_ranks_moved_is_in_the_report(graph, tmp_path):
    path, file = tmp_path / "run.json", TraceFile("a title", "lpt", "lpt: lists", WORKERS, ranks=3)
    moved = [{key: float(rank + k) for k, key in enumerate(MOVED)} for rank in range(3)]
    nothing = {key: [0.0] * WORKERS for key in COUNTS}
    file.add(graph, one_after_the_other(graph, 1), np.zeros(len(graph)), nothing, 1, 0.0, moved)
    file.write(path)
    events = json.loads(path.read_text())["traceEvents"]
    assert [e["args"]["name"] for e in events if e["ph"] == "M"] == [f"rank {k}, worker 0" for k in range(3)]
    read = read_trace(path)
    made = report(read, read.iteration())
    assert [(row.gets, row.adds, row.bytes, row.messages) for row in made.ranks] == [
        (rank, rank + 1, rank + 2, rank + 3) for rank in range(3)
    ]
    assert [(row.seconds, row.hidden) for row in made.ranks] == [
        (rank + 4.0, rank + 5.0) for rank in range(3)
    ]
    assert report_data(read, 1)["ranks"] == 3
