"""Python loops shared out by every policy: results in order, costs, errors, what is told of the run."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewise
from tilewise.errors import InputError, ItemError, TilewiseError
from tilewise.execute.source import Source
from tilewise.inspect.loop import LoopGraph
from tilewise.loop import parallel_for
from tilewise.schedule import policy_named

EXECUTORS = ("threads", "processes")
POLICIES = [
    *tilewise.policies,
    "chunk(size=0, delta=0.01)",
    "factoring(f=2, delta=0.5)",
    "factoring(delta=0.5, taper=true)",
    "factoring(most=0.01)",
    "tss(longest_first=true)",
]


def square(x):
    return x * x


def fails_at_seven(x):
    if x == 7:
        raise ValueError("seven is not allowed")
    return x


@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize("policy", POLICIES)
def test_results_come_in_the_order_of_the_items(policy, workers):
    costs = [1 + x % 5 for x in range(50)]
    found = parallel_for(square, range(50), costs, policy, workers, progress=False)
    assert list(found) == [x * x for x in range(50)]
    assert found[7] == 49 and found[-2:] == [48 * 48, 49 * 49] and len(found) == 50
    assert found.worker.min() >= 0 and found.worker.max() < workers


@pytest.mark.parametrize("policy", POLICIES)
def test_processes_give_the_same(policy):
    found = parallel_for(square, range(40), policy=policy, workers=2, executor="processes", progress=False)
    assert list(found) == [x * x for x in range(40)]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_can_be_started_either_way(start):
    assert list(parallel_for(abs, [-1, 2], executor="processes", workers=2, start_method=start)) == [1, 2]


@given(
    costs=st.lists(st.floats(0, 1e3), max_size=40),
    workers=st.integers(1, 6),
    policy=st.sampled_from(POLICIES),
    seed=st.integers(0, 100),
)
def test_a_source_hands_out_every_item_once_whoever_asks(costs, workers, policy, seed):
    schedule = policy_named(policy)(LoopGraph(len(costs), "loop"), np.array(costs), workers)
    source, rng = Source(schedule), np.random.default_rng(seed)
    asking, got = list(range(workers)), []
    while asking:
        worker = int(rng.choice(asking))
        items = source.take(worker, float(rng.random()))
        got += items.tolist()
        if not len(items):
            asking.remove(worker)
    assert sorted(got) == list(range(len(costs)))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("items", [[], [3], (x for x in range(4)), "abc"])
def test_any_items_that_can_be_listed(executor, items):
    expected = items = list(items)
    assert list(parallel_for(str, items, executor=executor, workers=2)) == [str(x) for x in expected]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_error_names_the_item_and_keeps_its_cause(executor):
    with pytest.raises(
        ItemError, match=r"item 7 \(7\) failed on worker \d: ValueError: seven is not"
    ) as caught:
        parallel_for(fails_at_seven, range(20), workers=2, executor=executor, progress=False)
    assert (caught.value.index, caught.value.item) == (7, 7)
    assert isinstance(caught.value.__cause__, ValueError)
    if executor == "processes":
        assert "fails_at_seven" in caught.value.__cause__.__notes__[0]


def test_known_costs_put_the_longest_items_first():
    order = []
    found = parallel_for(order.append, range(6), costs=[1, 5, 3, 2, 6, 4], workers=1)
    assert order == [4, 1, 5, 2, 3, 0] and "longest_first=True" in found.policy
    order.clear()
    assert "longest_first" not in parallel_for(order.append, range(6), workers=1).policy
    assert order == list(range(6))


def test_an_error_stops_the_hand_out():
    called = []

    def fails_at_once(x):
        called.append(x)
        raise ValueError(x)

    with pytest.raises(ItemError):
        parallel_for(fails_at_once, range(1000), policy="ie-nxtval", workers=2, progress=False)
    assert len(called) <= 2  # one for each worker


def test_an_error_of_a_kind_that_cannot_be_sent_is_told_all_the_same():
    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__("odd")

    def raises(x):
        raise Odd(1, 2)

    with pytest.raises(ItemError, match="Odd: odd"):
        parallel_for(raises, [1], executor="processes", workers=1)


def test_results_that_cannot_be_sent_are_an_error_that_says_so():
    with pytest.raises(ItemError, match=r"a lock, cannot be sent to another .*executor='threads'"):
        parallel_for(lambda x: threading.Lock(), [1, 2], executor="processes", workers=2)


def test_a_function_that_cannot_be_sent_is_refused_where_processes_are_spawned():
    with pytest.raises(InputError, match="cannot be sent to another process"):
        parallel_for(lambda x: x, [1, 2], executor="processes", workers=2, start_method="spawn")


def test_a_process_that_is_killed_ends_the_loop():
    def dies(x):
        if x == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    with pytest.raises(TilewiseError, match=r"process [01] ended with signal SIGKILL while it had items 3"):
        parallel_for(dies, range(8), policy="ie-nxtval", executor="processes", workers=2)


def test_unordered_results_come_as_they_are_there():
    first, second = threading.Event(), threading.Event()

    def waits(x):
        if x == 0:
            assert second.wait(20)
        else:
            first.wait(20)
            second.set()
        return x

    first.set()
    found = parallel_for(waits, [0, 1], policy="interleaved", workers=2, ordered=False)
    assert list(found) == [1, 0]


def test_costs_decide_who_gets_what():
    heavy = [8, 1, 1, 1, 1, 1, 1, 1, 1]
    by_numbers = parallel_for(square, range(9), heavy, "lpt", 2)
    assert (by_numbers.worker == by_numbers.worker[0]).sum() == 1
    by_function = parallel_for(square, range(9), lambda x: 8 if x == 0 else 1, "lpt", 2)
    assert (by_function.worker == by_numbers.worker).all()
    again = parallel_for(square, range(9), by_numbers, "lpt", 2)
    assert (again.expected == by_numbers.seconds).all()


def test_costs_are_learnt_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWISE_CACHE_DIR", str(tmp_path))
    first = parallel_for(square, range(5), learn="squares")
    assert (first.expected == 1).all()
    second = parallel_for(square, range(5), learn="squares")
    assert np.allclose(second.expected, first.seconds)
    assert (parallel_for(square, range(6), learn="squares").expected == 1).all()
    kept = tmp_path / "loops" / "squares.json"
    assert len(json.loads(kept.read_text())["seconds"]) == 6
    kept.write_text("{")
    assert (parallel_for(square, range(6), learn="squares").expected == 1).all()


@pytest.mark.parametrize(
    ("executor", "cpu", "advised"),
    [
        ("threads", 0.5, True),  # two workers that take turns
        ("threads", 1.0, False),  # both compute all the time
        ("threads", 0.01, False),  # both wait for something else
        ("processes", 0.5, False),  # have a lock each
    ],
)
def test_functions_that_hold_pythons_lock_are_told_to_use_processes(executor, cpu, advised):
    found = parallel_for(square, range(4), policy="interleaved", workers=2, executor="threads")
    trace = found.trace.copy()
    trace["start"], trace["end"] = [0, 0, 10**9, 10**9], [10**9, 10**9, 2 * 10**9, 2 * 10**9]
    times = {"seconds": np.ones(4), "cpu_seconds": np.full(4, cpu), "trace": trace}
    shown = replace(found, executor=executor, **times)
    assert ("executor='processes'" in shown.note) == advised and shown.note in str(shown)


def test_cpu_seconds_are_those_of_the_function():
    asleep = parallel_for(lambda x: time.sleep(0.05), range(2), workers=1)
    assert (asleep.seconds >= 0.05).all() and (asleep.cpu_seconds < asleep.seconds).all()


def test_the_page_and_the_trace_show_every_item(tmp_path):
    found = parallel_for(square, range(12), workers=2)
    assert "12 by factoring" in str(found) and 0 <= found.imbalance <= 1
    page = found.report(tmp_path / "loop.html").read_text()
    assert "12 items on 2 threads" in page
    trace = json.loads(found.write_trace(tmp_path / "loop.json").read_text())
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == 12
    with pytest.raises(InputError, match="nothing to report"):
        parallel_for(square, []).report(tmp_path / "empty.html")


def test_progress_is_told():
    told = []
    parallel_for(square, range(6), progress=lambda done, total: told.append((done, total)))
    assert told == [(k, 6) for k in range(1, 7)]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"policy": "factorin"}, "did you mean factoring"),
        ({"executor": "thread"}, "did you mean threads"),
        ({"workers": 0}, "workers must be a whole number"),
        ({"costs": [1, 2]}, "there are 2 of them for 3 items"),
        ({"costs": [1, -2, 3]}, "that of item 1 is -2.0"),
        ({"costs": ["a", "b", "c"]}, "a number for each item"),
        ({"learn": "a/b"}, "it must be a name"),
        ({"start_method": "knife"}, "valid are fork"),
        ({"start_method": np.arange(3)}, "valid are fork"),
        ({"progress": "yes"}, "progress must be True or False"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, says):
    with pytest.raises(InputError, match=says):
        parallel_for(square, range(3), **settings)
    with pytest.raises(InputError, match="f must be a function"):
        parallel_for(None, range(3))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_ctrl_c_ends_the_loop_at_once(executor, tmp_path):
    script = tmp_path / "long.py"
    script.write_text(
        "import os, time, tilewise\n"
        "def f(x):\n    os.write(1, b'begun\\n')\n    time.sleep(120)\n"
        f"tilewise.parallel_for(f, range(4), workers=2, executor={executor!r})\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in errors
    assert not Path(f"/proc/{process.pid}").exists()
