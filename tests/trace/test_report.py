"""Reports: their numbers against a trace made by hand, what the page holds, and the command."""

import json
import re

import pytest

from command_line import WATER, CommandLine
from made_traces import DOCUMENT, MS, NAMES, made_document, write_trace
from tilewise.errors import InputError
from tilewise.trace import read_trace, report, report_page
from tilewise.trace.report import Bin, LevelRow


@pytest.fixture
def cli(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return CommandLine()


@pytest.fixture
def trace(tmp_path):
    return read_trace(write_trace(tmp_path / "made.json"))


@pytest.fixture
def first(trace):
    return report(trace, trace.iteration(1))


def in_milliseconds(*values):
    return pytest.approx([MS * value for value in values])


# Numbers


def test_main_numbers(trace, first):
    assert (trace.title, trace.policy, trace.workers) == ("CCSD of <made> & co, sto-3g", "lpt", 2)
    assert (first.number, first.tasks) == (1, 4)
    assert [first.makespan, first.critical_path, first.work] == in_milliseconds(10, 9, 11.7)
    assert first.imbalance == pytest.approx(1 - 11.7 / 20)


def test_the_time_of_each_worker_adds_up_to_the_makespan(first):
    one, other = first.workers
    assert [one.compute, one.sort, one.counter, one.idle] == in_milliseconds(4, 2, 1, 3)
    assert [other.compute, other.sort, other.counter, other.idle] == in_milliseconds(5.7, 0, 0.5, 3.8)
    assert (one.counter_calls, one.steals, one.arena_bytes, one.allocations) == (7, 0, 4096, 0)
    assert (other.counter_calls, other.steals, other.arena_bytes, other.allocations) == (3, 2, 8192, 1)


def test_levels_last_from_their_first_to_their_last_task(first):
    assert [(row.level, row.tasks) for row in first.levels] == [(0, 2), (1, 2)]
    assert [time for row in first.levels for time in (row.start, row.end)] == in_milliseconds(0, 4, 5, 9.5)
    assert isinstance(first.levels[0], LevelRow)


def test_the_histogram_has_four_bins_in_a_decade(first):
    edges = [MS * 10 ** (k / 4) for k in range(4)]
    assert [row.low for row in first.histogram] == pytest.approx(edges[:-1])
    assert [row.high for row in first.histogram] == pytest.approx(edges[1:])
    assert [row.tasks for row in first.histogram] == [1, 1, 2]
    assert [row.seconds for row in first.histogram] == in_milliseconds(1.2, 2, 8.5)


def test_tasks_without_a_duration_are_in_the_first_bin(tmp_path):
    document = made_document()
    document["traceEvents"][1]["dur"] = 0.0
    trace = read_trace(write_trace(tmp_path / "zero.json", document))
    bins = report(trace, trace.iteration(1)).histogram
    assert bins[0] == Bin(pytest.approx(1e-9), pytest.approx(10**-8.75), 1, 0.0)
    assert sum(row.tasks for row in bins) == 4


def test_operations_with_the_longest_first(first):
    product, solve, sort = first.operations
    assert [row.text for row in first.operations] == [NAMES[0], NAMES[2], NAMES[1]]
    assert [row.kind for row in first.operations] == ["gemm", "update", "sort"]
    assert (product.tasks, solve.tasks, sort.tasks) == (2, 1, 1)
    assert [product.seconds, product.longest, product.predicted] == in_milliseconds(5.2, 4, 3.5)
    assert product.share == pytest.approx(5.2 / 11.7)
    assert product.imbalance == pytest.approx(4 / 2.6) and solve.imbalance == pytest.approx(2)
    assert product.gigaflops == pytest.approx(1e-9 * 1e7 / 5.2e-3) and sort.gigaflops == 0
    assert product.ratio == pytest.approx(5.2 / 3.5) and solve.ratio is None


def test_predictions_are_close_within_a_factor_of_two(first):
    assert first.predicted == pytest.approx(5.5 * MS)
    assert first.close == 0.75


def test_the_last_iteration_is_the_default(trace):
    assert trace.iteration().number == 2
    assert report(trace, trace.iteration()).makespan == pytest.approx(6 * MS)


def test_times_are_counted_from_the_begin_of_the_iteration(trace):
    for iteration, scale in zip(trace.iterations, (1, 2), strict=True):
        assert iteration.runs["worker"].tolist() == [0, 0, 1, 1]
        starts = [MS * start / scale for start in (0, 5, 0, 5)]
        assert iteration.runs["start"].tolist() == pytest.approx(starts, abs=1e-12)


# The page


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_the_page_holds_the_numbers_of_every_iteration(trace):
    data = data_of(report_page(trace, 2))
    assert data["shown"] == 2 and data["decision"] == trace.decision
    for shown, iteration in zip(data["iterations"], trace.iterations, strict=True):
        expected = report(trace, iteration)
        for key in ("number", "tasks", "makespan", "critical_path", "work", "imbalance", "close"):
            assert shown[key] == getattr(expected, key)
        assert [row["seconds"] for row in shown["operations"]] == [row.seconds for row in expected.operations]
        assert [row["idle"] for row in shown["workers"]] == [row.idle for row in expected.workers]


def test_the_page_is_one_file_that_asks_for_nothing(trace):
    page = report_page(trace, 2)
    assert not re.search(r"(src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest", page)
    assert "{{" not in page
    assert "prefers-color-scheme: dark" in page


def test_names_cannot_end_the_script(tmp_path):
    document = made_document()
    document["otherData"]["title"] = document["traceEvents"][1]["name"] = "</script><b>{{SCRIPT}}"
    page = report_page(read_trace(write_trace(tmp_path / "t.json", document)), 1)
    assert page.count("</script>") == 2
    assert page.count("&lt;/script&gt;&lt;b&gt;{{SCRIPT}}") == 2  # the title, twice
    assert data_of(page)["title"] == "</script><b>{{SCRIPT}}"


# The command


def test_a_report_of_a_real_run(cli, tmp_path):
    job = ("--basis", "sto-3g", "--threads", 2, "--policy", "ie-nxtval", "--no-checkpoint")
    assert cli.run("ccsd", WATER, *job, "--trace", "run.json", "--json", "run.result").code == 0
    outcome = cli.run("report", "run.json")
    assert outcome.code == 0 and outcome.err == ""
    assert "run.html" in outcome.out and "imbalance" in outcome.out and "ie-nxtval" in outcome.out
    data = data_of((tmp_path / "run.html").read_text(encoding="utf-8"))
    result = json.loads((tmp_path / "run.result").read_text())
    assert [one["number"] for one in data["iterations"]] == [one["number"] for one in result["iterations"]]
    last = data["iterations"][-1]
    assert last["imbalance"] == pytest.approx(result["imbalance"], abs=1e-6)
    assert [row["counter_calls"] for row in last["workers"]] == result["workers"]["counter_calls"]
    assert 0 < last["critical_path"] <= last["makespan"]
    assert last["work"] <= 2 * last["makespan"]


def test_options_of_the_command(cli, tmp_path):
    write_trace(tmp_path / "made.json")
    outcome = cli.run("report", "made.json", "--iteration", 1, "--out", "page.html")
    assert outcome.code == 0 and "1: 4 tasks, makespan 10 ms" in outcome.out
    assert not (tmp_path / "made.html").exists()
    assert data_of((tmp_path / "page.html").read_text(encoding="utf-8"))["shown"] == 1


# Mistakes

ABOUT, EVENTS = DOCUMENT["otherData"], DOCUMENT["traceEvents"]


def changed(place, **changes):
    """The trace with other values in its first task, its arguments, or what is said about the run."""
    document = made_document()
    task = document["traceEvents"][1]
    {"task": task, "arguments": task["args"], "about": document["otherData"]}[place].update(changes)
    return document


DAMAGED = {
    "a list": ([1, 2], ("not a trace of tilewise", "ccsd --trace")),
    "another program": ({"traceEvents": []}, ("not a trace of tilewise",)),
    "another format": (changed("about", format=99), ("format 99", "reads 1")),
    "no tasks": (DOCUMENT | {"traceEvents": EVENTS[:1]}, ("no tasks",)),
    "no list of events": (DOCUMENT | {"traceEvents": 3}, ("'traceEvents' is not a list",)),
    "an iteration without tasks": (DOCUMENT | {"traceEvents": EVENTS[:5]}, ("iteration 2", "no tasks")),
    "an unknown kind": (changed("task", cat="knead"), ("event 1", "'knead'")),
    "an event without a worker": (DOCUMENT | {"traceEvents": [{"ph": "X"}]}, ("event 0", "missing")),
    "an event that is a word": (DOCUMENT | {"traceEvents": ["X"]}, ("event 0",)),
    "a word for a time": (changed("task", ts="soon"), ("event 1",)),
    "a word for a level": (changed("arguments", level="top"), ("word where a number belongs",)),
    "a word for an operation": (changed("arguments", operation="sum"), ("event 1", "'sum'")),
    "a negative time": (changed("task", dur=-1.0), ("negative",)),
    "an infinite prediction": (changed("arguments", predicted_us=float("inf")), ("not finite",)),
    "a worker too many": (changed("task", tid=2), ("outside of 0 to 1",)),
    "an iteration that is not listed": (changed("arguments", iteration=9), ("does not list",)),
    "a time beyond all measure": (changed("task", dur=1e300), ("a time that is negative or not finite",)),
    "workers without end": (changed("about", workers=float("inf")), ("otherData", "damaged")),
    "no workers": (changed("about", workers="two"), ("otherData", "damaged")),
    "workers of other ranks": (changed("about", ranks=7), ("cannot be those of 7 ranks",)),
    "counts of other workers": (changed("about", workers=3), ("not those of 3 workers",)),
    "iterations that are numbers": (changed("about", iterations=[1]), ("otherData", "damaged")),
}


@pytest.mark.parametrize(("document", "words"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_traces_are_refused_with_a_reason(cli, tmp_path, document, words):
    write_trace(tmp_path / "bad.json", document)
    cli.run("report", "bad.json").assert_refused("bad.json", *words)
    assert not (tmp_path / "bad.html").exists()


MISTAKES = {
    "no file": (("none.json",), ("none.json", "no such file")),
    "a folder": ((".",), ("folder",)),
    "not JSON": (("words.json",), ("words.json, line 2", "not JSON")),
    "not text": (("bytes.json",), ("not JSON",)),
    "no such iteration": (("made.json", "--iteration", 3), ("no iteration 3", "iterations 1 to 2")),
    "a word for the iteration": (("made.json", "--iteration", "last"), ("--iteration", "integer")),
    "no folder for the page": (("made.json", "--out", "no/page.html"), ("--out", "no folder")),
    "a folder for the page": (("made.json", "--out", "."), ("--out", "folder")),
    "the trace for the page": (("made.json", "--out", "made.json"), ("the trace itself",)),
    "a number of thousands of digits": (("digits.json",), ("digits.json: not JSON",)),
    "no trace": ((), ("TRACE",)),
}


@pytest.mark.parametrize(("arguments", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_told_in_one_sentence(cli, tmp_path, arguments, words):
    write_trace(tmp_path / "made.json")
    (tmp_path / "words.json").write_text("{}\nwords\n")
    (tmp_path / "digits.json").write_text("9" * 5000)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    cli.run("report", *arguments).assert_refused(*words)
    assert json.loads((tmp_path / "made.json").read_text()) == DOCUMENT


def test_the_only_iteration_is_named(tmp_path):
    document = made_document()
    document["otherData"]["iterations"] = ABOUT["iterations"][:1]
    document["traceEvents"] = EVENTS[:5]
    trace = read_trace(write_trace(tmp_path / "one.json", document))
    with pytest.raises(InputError, match=r"it has iteration 1$"):
        trace.iteration(2)
