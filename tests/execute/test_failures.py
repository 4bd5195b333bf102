"""A task that fails ends the run with one error that names its operation and its block."""

import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from random_programs import ccsd_case, gaps
from random_spaces import LETTERS
from tilewise import Space, policies
from tilewise.errors import TaskError
from tilewise.execute import Runner
from tilewise.inspect import PanelRule, inspect
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.records import KINDS
from tilewise.schedule import policy_named

WORLD = {
    LETTERS["o"]: Space.spatial("o", [2, 1], tile=1),
    LETTERS["v"]: Space.spatial("v", [2, 2], tile=2),
}
RULE = PanelRule(3, 4)
NAMES = (*policies, "dataflow(queues=worker)")


@pytest.fixture(scope="module")
def case():
    """Program, graph, and buffers in which the setup is done."""
    _, program, tensors, energies = ccsd_case(WORLD, 3)
    buffers = {name: np.zeros(layout.size) for name, layout in program.layouts.items()}
    buffers |= {name: tensor.data for name, tensor in tensors.items()} | gaps(program, energies)
    setup = inspect_operations(program, program.setup, RULE)
    Runner(setup, policies["lpt"](setup, setup.bytes, 1), buffers).run()
    return program, inspect(program, RULE), buffers


def machine(graph, buffers, policy, workers, executor="threads"):
    own = {name: data.copy() for name, data in buffers.items()}
    return Runner(graph, policy_named(policy)(graph, graph.flops + graph.bytes, workers), own, executor)


NAMED = re.compile(r".+ in operation '.+', block \S+\(irrep \d.*; rows \d+:\d+, columns \d+:\d+\)")


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_nan_in_an_input_ends_the_run_with_one_error(case, policy, workers):
    program, graph, buffers = case
    rng = np.random.default_rng(workers)
    for _ in range(12):
        runner = machine(graph, buffers, policy, workers)
        name = str(rng.choice(["t", "T", "V", "A", "Vd", "L"]))
        runner.tensors[name][rng.integers(len(runner.tensors[name]))] = rng.choice([np.nan, np.inf, -np.inf])
        with pytest.raises(TaskError) as caught:
            runner.run()
        message = str(caught.value)
        assert message.startswith("the result is not finite in operation") and NAMED.fullmatch(message)
        readers = [op for op in program.operations if name in op.reads]
        assert any(f"operation '{op.text}'" in message for op in readers), f"{message}: does not read {name}"


@pytest.mark.parametrize("policy", NAMES)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_product_that_points_outside_of_its_buffers_ends_the_run_with_one_error(case, policy, workers):
    program, _, buffers = case
    graph = inspect(program, RULE)
    gemms = np.flatnonzero(graph.tasks["kind"] == KINDS.index("gemm"))
    rng = np.random.default_rng(workers)
    for _ in range(12):
        task = int(rng.choice(gemms))
        first, count = graph.tasks["first"][task], graph.tasks["count"][task]
        record = int(first + rng.integers(count))
        whole = graph.records["gemm"][record].copy()
        field, value = [
            ("c", 10**6), ("c", -1), ("c_offset", -1), ("c_offset", 10**9), ("ldc", 10**9), ("m", 10**6),
            ("a", len(graph.buffers)), ("b", -7), ("a_offset", -3), ("b_offset", 10**12), ("k", 10**6),
        ][rng.integers(11 if whole["k"] else 6)]  # fmt: skip
        if field == "ldc" and whole["m"] == 1:
            field = "c_offset"  # one row is never out of step
        graph.records["gemm"][record][field] = value
        try:
            with pytest.raises(TaskError) as caught:
                machine(graph, buffers, policy, workers).run()
        finally:
            graph.records["gemm"][record] = whole
        assert str(caught.value) == f"a record points outside of its buffer in {graph.describe(task)}"
        assert NAMED.fullmatch(str(caught.value))
    machine(graph, buffers, policy, workers).run()  # mended, it runs


def put_fault(kind, graph, runner, rng):
    """Breaks one random task in a way that only its worker can find; (how to mend it, the error expected)."""
    if kind == "exception":
        task = int(rng.integers(len(graph)))
        table, field, record, value = graph.tasks, "kind", task, 77
        reason = "unknown kind of task 77"
    elif kind == "memory":  # a sort that would need more than its worker has
        task = int(rng.choice(np.flatnonzero(graph.tasks["kind"] == KINDS.index("sort"))))
        table, field, record, value = graph.records["sort"], "n_out", int(graph.tasks["first"][task]), 10**9
        reason = "the worker is out of memory"
    else:
        task = int(
            rng.choice(np.flatnonzero((graph.tasks["kind"] == KINDS.index("gemm")) & (graph.flops > 0)))
        )
        first, count = graph.tasks["first"][task], graph.tasks["count"][task]
        record = int(first + np.argmax(graph.records["gemm"]["k"][first : first + count] > 0))
        table, field, value = graph.records["gemm"], "alpha", np.nan
        reason = "the result is not finite"
    kept = table[field][record]
    table[field][record] = value

    def mend():
        table[field][record] = kept

    return mend, f"{reason} in {graph.describe(task)}"


@pytest.mark.parametrize("policy", NAMES)
def test_two_hundred_failures_in_random_tasks_never_hang(case, policy):
    """Each run ends with the story of the task that failed, and the machine runs again once it is mended."""
    program, _, buffers = case
    graph = inspect(program, RULE)
    rng = np.random.default_rng(0)
    runners = [machine(graph, buffers, policy, w) for w in (2, 4)]
    for runner in runners:
        runner.run()
    for repeat in range(200):
        runner = runners[repeat % 2]
        mend, story = put_fault(("exception", "memory", "nan")[repeat % 3], graph, runner, rng)
        try:
            with pytest.raises(TaskError) as caught:
                runner.run()
        finally:
            mend()
        assert str(caught.value) == story
    for runner in runners:
        runner.run()


def test_a_machine_runs_again_after_a_failure(case):
    _, graph, buffers = case
    runner = machine(graph, buffers, "dataflow", 3)
    good = runner.tensors["t"].copy()
    expected = runner.run().scalars
    runner.tensors["t"][0] = np.nan
    with pytest.raises(TaskError):
        runner.run()
    runner.tensors["t"][:] = good
    assert runner.run().scalars == pytest.approx(expected, rel=1e-12)


def test_the_serial_twins_report_a_nan_likewise(case):
    _, graph, buffers = case
    runner = machine(graph, buffers, "lpt", 1, "serial")
    runner.tensors["t"][0] = np.nan
    with pytest.raises(TaskError, match=r"the result is not finite in operation '.*', block "):
        runner.run()


@pytest.mark.parametrize(
    ("field", "value"), [("c", 999), ("a", -999), ("a_offset", 10**9), ("b_offset", 10**9)]
)
def test_the_serial_twins_report_a_record_outside_of_its_buffer_likewise(case, field, value):
    program, _, buffers = case
    graph = inspect(program, RULE)
    task = int(np.flatnonzero((graph.tasks["kind"] == KINDS.index("gemm")) & (graph.flops > 0))[5])
    graph.records["gemm"][field][graph.tasks["first"][task]] = value
    with pytest.raises(TaskError, match=re.escape(graph.describe(task))):
        machine(graph, buffers, "lpt", 1, "serial").run()


CORRUPT = """
import numpy as np
from random_programs import (ccsd_case, gaps)
from random_spaces import (LETTERS)
from tilewise import Space, policies
from tilewise.errors import TaskError
from tilewise.execute import Runner
from tilewise.inspect import inspect
from tilewise.inspect.records import KINDS

world = {LETTERS["o"]: Space.spatial("o", [2, 1], tile=1), LETTERS["v"]: Space.spatial("v", [2, 2], tile=2)}
_, program, tensors, energies = ccsd_case(world, 3)
buffers = {name: np.zeros(layout.size) for name, layout in program.layouts.items()}
buffers |= {name: tensor.data for name, tensor in tensors.items()} | gaps(program, energies)
graph = inspect(program)
graph.records["TABLE"]["FIELD"][...] = VALUE
try:
    Runner(graph, policies["dataflow"](graph, graph.bytes, 2), buffers).run()
except TaskError as error:
    print("TaskError:", error)
"""


@pytest.mark.parametrize(
    ("table", "field", "value"),
    [
        ("view", "buffer", 10**6),
        ("view", "offset", 1 << 40),
        ("out", "offset", 1 << 40),
        ("out", "stride", 1 << 40),
        ("update", "residual_offset", 1 << 40),
        ("update", "new_offset", 1 << 40),
        ("dot", "a_offset", 1 << 40),
        ("dot", "b_offset", 1 << 40),
    ],
)
def test_sorts_updates_and_dots_outside_of_their_buffers_are_errors_and_no_crashes(table, field, value):
    script = CORRUPT.replace("TABLE", table).replace("FIELD", field).replace("VALUE", str(value))
    command = f"import sys; sys.path[:] = {sys.path!r}\n{textwrap.dedent(script)}"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"ended by signal {-done.returncode}"
    assert "TaskError: a record points outside of its buffer in operation" in done.stdout
