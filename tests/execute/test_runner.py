"""Machines: buffers, schedules and traces of runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import ccsd_case, energies_by_letter, gaps, random_program, run_program
from random_spaces import LETTERS, POLICIES, RULES, SEEDS, WORKERS, assert_close, worlds
from tilewise import Space, Tensor, native, policies
from tilewise.config import processors
from tilewise.equations import evaluate_dense, parse, plan_program
from tilewise.errors import InputError
from tilewise.execute import Runner
from tilewise.inspect import PanelRule, inspect
from tilewise.inspect.graph import inspect_operations
from tilewise.schedule import Phase, Queue, Schedule, policy_named

WORLD = {
    LETTERS["o"]: Space.spatial("o", [2, 1], tile=1),
    LETTERS["v"]: Space.spatial("v", [3, 2], tile=2),
}
RULE = PanelRule(3, 5)
LITERAL = ("chunk(size=0, delta=1e-5, literal=true)", "factoring(delta=1e-5, literal=true)")
BIG = {letter: Space.spatial(letter, [900], 30) for letter in "ijk"}  # long enough for threads to start


def started(program, tensors, energies):
    buffers = {name: np.zeros(layout.size) for name, layout in program.layouts.items()}
    buffers |= {name: tensor.data.copy() for name, tensor in tensors.items()} | gaps(program, energies)
    setup = inspect_operations(program, program.setup, RULE)
    Runner(setup, policies["lpt"](setup, setup.bytes, 1), buffers).run()
    return buffers


@pytest.fixture(scope="module")
def case():
    equation, program, tensors, energies = ccsd_case(WORLD, 3)
    return equation, program, tensors, energies, inspect(program, RULE)


def schedule(graph, policy, workers):
    return policy_named(policy)(graph, graph.flops + graph.bytes, workers)


# Traces


def check_trace(graph, trace, workers):
    assert len(trace) == len(graph)
    assert (trace["start"] <= trace["end"]).all() and (trace["ready"] <= trace["start"]).all()
    assert (trace["end"] > 0).all()
    assert ((trace["worker"] >= 0) & (trace["worker"] < workers)).all()
    late = trace["end"][graph.sources] > trace["start"][graph.targets]
    assert not late.any(), "a task began before one that it needs had ended"
    for worker in range(workers):
        mine = np.sort(trace[trace["worker"] == worker], order="start")
        assert (mine["end"][:-1] <= mine["start"][1:]).all(), "a worker did two tasks at a time"


@pytest.mark.parametrize("policy", [*policies, *LITERAL])
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_the_trace_of_ccsd_respects_every_dependency(case, policy, workers):
    _, program, tensors, energies, graph = case
    runner = Runner(graph, schedule(graph, policy, workers), started(program, tensors, energies))
    for _ in range(3):
        result = runner.run()
        check_trace(graph, result.trace, workers)
        assert len(result.seconds) == len(graph) and (result.seconds >= 0).all()


@settings(max_examples=40)
@given(worlds(largest=3, spin=False), SEEDS, st.integers(1, 6), POLICIES, WORKERS, st.sampled_from(RULES))
def test_the_trace_of_random_programs_respects_every_dependency(world, seed, length, policy, workers, rule):
    _, program, inputs = random_program(world, seed, length)
    _, _, trace = run_program(program, inputs, policy=policy, workers=workers, rule=rule)
    check_trace(inspect(program, rule), trace, workers)


@pytest.mark.parametrize("workers", [1, 4])
def test_a_static_list_is_run_by_its_own_worker(case, workers):
    _, program, tensors, energies, graph = case
    for policy in policies:
        plan = schedule(graph, policy, workers)
        if plan.by_dataflow or plan.phases[0].steal:
            continue
        trace = Runner(graph, plan, started(program, tensors, energies)).run().trace
        for queue in plan.queues:
            assert np.isin(trace["worker"][queue.tasks[queue.tasks >= 0]], queue.workers).all()


def test_every_draw_from_a_queue_is_counted(case):
    _, program, tensors, energies, graph = case
    plan = schedule(graph, "ie-nxtval", 3)
    result = Runner(graph, plan, started(program, tensors, energies)).run()
    assert result.counter_calls == len(graph) + 3 * len(plan.phases)  # each worker draws once in vain
    static = Runner(graph, schedule(graph, "lpt", 3), started(program, tensors, energies)).run()
    assert static.counter_calls == 0 and static.steals == 0


@pytest.mark.parametrize("policy", ["steal", "buckets(size=1, steal=true)"])
def test_thieves_take_what_a_slow_worker_leaves(policy):
    """The list of the worker that starts last holds all the work; the others live on what they steal."""
    program = plan_program(parse("input A[i|j]\ninput B[j|k]\nC[i|k] = A[i|j] B[j|k]"), BIG)
    graph = inspect(program)
    every = np.arange(len(graph))
    lists = Phase((Queue(every[:0], (0,)), Queue(every[:0], (1,)), Queue(every, (2,))), steal=True)
    tensors = {name: Tensor.random(program.layouts[name], 1) for name in "AB"}
    buffers = {name: tensor.data for name, tensor in tensors.items()}
    buffers["C"] = np.zeros(program.layouts["C"].size)
    result = Runner(graph, Schedule("test", 3, (lists,)), buffers).run()
    check_trace(graph, result.trace, 3)
    stolen = result.trace["worker"] != 2
    assert result.steals == stolen.sum() > 0
    assert_close(
        Tensor(program.layouts["C"], buffers["C"]).to_dense(),
        tensors["A"].to_dense() @ tensors["B"].to_dense(),
    )
    again = Runner(graph, policy_named(policy)(graph, graph.flops, 3), buffers).run()
    check_trace(graph, again.trace, 3)


def test_workers_count_their_memory_and_take_none_from_the_heap(case):
    _, program, tensors, energies, graph = case
    result = Runner(graph, schedule(graph, "dataflow", 2), started(program, tensors, energies)).run()
    assert result.count("allocations").tolist() == [0, 0]
    most = result.count("most_memory")
    assert (most > 0).any() and (most <= native.scratch_size(graph)).all()
    assert set(result.by_worker) == {
        "counter_calls",
        "steals",
        "counter_seconds",
        "arena_bytes",
        "allocations",
    }


def test_workers_can_be_bound_to_processors(case):
    _, program, tensors, energies, graph = case
    before = processors()
    runner = Runner(
        graph, schedule(graph, "steal", 2), started(program, tensors, energies), processors=(before[0],) * 2
    )
    check_trace(graph, runner.run().trace, 2)
    assert processors() == before  # the caller's own thread is free again


# Some tasks ahead of the others


@pytest.mark.parametrize("policy", [*policies, *LITERAL])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_some_tasks_run_ahead_and_the_others_after_them(case, policy, workers, shared):
    _, program, tensors, energies, graph = case
    needed = program.needed_for("e")
    of_energy = [k for k, op in enumerate(graph.operations) if op in needed]
    ahead = np.flatnonzero(np.isin(graph.tasks["operation"], of_energy))
    assert 0 < len(ahead) < len(graph)
    whole, parts = (
        Runner(graph, schedule(graph, policy, workers), started(program, tensors, energies)) for _ in range(2)
    )
    for _ in range(2):
        expected = whole.run().scalars
        first = parts.run(ahead, shared=shared)
        assert first.scalars["e"] == pytest.approx(expected["e"], rel=1e-12)
        assert not first.trace["end"][np.setdiff1d(np.arange(len(graph)), ahead)].any()
        result = parts.run(after=first)
        assert result.scalars == pytest.approx(expected, rel=1e-10)
        check_trace(graph, result.trace, workers)
    for name in program.layouts:
        assert_close(parts.tensors[name], whole.tensors[name])


def test_the_serial_executor_leaves_out_what_has_run_before(case):
    _, program, tensors, energies, graph = case
    runner = Runner(graph, schedule(graph, "lpt", 1), started(program, tensors, energies), executor="serial")
    expected = runner.run().scalars
    ahead = np.flatnonzero(graph.levels == 0)
    result = runner.run(after=runner.run(ahead))
    assert result.scalars == pytest.approx(expected, rel=1e-12)


# Buffers


@pytest.mark.parametrize("executor", ["threads", "serial"])
def test_bound_buffers_are_used_from_the_next_run_on(executor):
    program = plan_program(parse("input A[i|j]\nB[i|j] = 2 A[i|j]\ne[] = A[i|j] A[i|j]"), WORLD)
    graph = inspect(program)
    first, second = (Tensor.random(program.layouts["A"], seed).data for seed in (1, 2))
    buffers = {"A": first, "B": np.zeros_like(first)}
    runner = Runner(graph, schedule(graph, "dataflow", 2), buffers, executor)
    assert runner.run().scalars["e"] == pytest.approx(first @ first)
    output = np.zeros_like(first)
    runner.bind("A", second)
    runner.bind("B", output)
    assert runner.run().scalars["e"] == pytest.approx(second @ second)
    assert_close(output, 2 * second)
    with pytest.raises(InputError, match=r"tensor A: its buffer has .* elements instead of"):
        runner.bind("A", np.zeros(len(first) + 1))


@pytest.mark.parametrize("executor", ["threads", "serial"])
@pytest.mark.parametrize("wrong", ["float32", "strided", "matrix"])
def test_buffers_that_are_no_contiguous_float64_vectors_are_refused(executor, wrong):
    program = plan_program(parse("input A[i|j]\nB[i|j] = 2 A[i|j]"), WORLD)
    graph = inspect(program)
    n = program.layouts["A"].size
    runner = Runner(graph, schedule(graph, "dataflow", 1), {"A": np.ones(n), "B": np.zeros(n)}, executor)
    data = {"float32": np.ones(n, np.float32), "strided": np.ones(2 * n)[::2], "matrix": np.ones((n, 1))}[
        wrong
    ]
    with pytest.raises((InputError, TypeError, RuntimeError)):
        runner.bind("A", data)
        runner.run()


def test_an_unknown_tensor_cannot_be_bound():
    program = plan_program(parse("input A[i|j]\nB[i|j] = 2 A[i|j]"), WORLD)
    graph = inspect(program)
    n = program.layouts["A"].size
    runner = Runner(graph, schedule(graph, "lpt", 1), {"A": np.ones(n), "B": np.zeros(n)})
    with pytest.raises((InputError, KeyError)):
        runner.bind("X", np.ones(n))


@pytest.mark.parametrize("executor", ["threads", "serial"])
def test_missing_buffers_and_unknown_executors_are_refused(executor):
    program = plan_program(parse("input A[i|j]\nB[i|j] = 2 A[i|j]"), WORLD)
    graph = inspect(program)
    n = program.layouts["A"].size
    with pytest.raises(InputError, match="no buffer is given for tensor B"):
        Runner(graph, schedule(graph, "lpt", 1), {"A": np.zeros(n)}, executor)
    with pytest.raises(InputError, match=f"unknown executor '{executor}s': did you mean {executor}"):
        Runner(graph, schedule(graph, "lpt", 1), {"A": np.zeros(n), "B": np.zeros(n)}, executor + "s")


@pytest.mark.parametrize("executor", ["threads", "serial"])
def test_a_buffer_of_another_length_is_refused_before_anything_runs(executor):
    program = plan_program(parse("input A[i|j]\nB[i|j] = 2 A[j|i]"), WORLD)
    graph = inspect(program)
    n = program.layouts["A"].size
    with pytest.raises(InputError, match="A"):
        Runner(graph, schedule(graph, "lpt", 1), {"A": np.zeros(n - 1), "B": np.zeros(n)}, executor)


# Schedules


def test_a_schedule_that_breaks_the_graph_is_refused(case):
    _, program, tensors, energies, graph = case
    buffers = started(program, tensors, energies)
    good = schedule(graph, "lpt", 2)
    broken = type(good)("test", 2, good.phases[::-1])
    with pytest.raises(AssertionError, match="which it needs"):
        Runner(graph, broken, buffers)
    runner = Runner(graph, good, buffers)
    with pytest.raises(AssertionError, match="is never run"):
        runner.reschedule(type(good)("test", 2, good.phases[:-1]))
    runner.run()


def test_a_machine_that_is_rescheduled_gives_the_same_result(case):
    equation, program, tensors, energies, graph = case
    dense = {name: t.to_dense() for name, t in tensors.items()}
    expected = evaluate_dense(equation, dense, energies_by_letter(energies))
    runner = Runner(graph, schedule(graph, "lpt", 4), started(program, tensors, energies))
    for policy in policies:
        for workers in (4, 3, 2, 1):
            runner.reschedule(schedule(graph, policy, workers))
            scalars = runner.run().scalars
            assert_close(scalars["e"], expected["e"], 1e-11)
            assert_close(Tensor(program.layouts["R"], runner.tensors["R"]).to_dense(), expected["R"], 1e-11)


def test_more_workers_than_at_first_get_scratch_memory_of_their_own():
    spaces = {"ij": Space.spatial("o", [9], tile=3), "ab": Space.spatial("v", [8], tile=8)}
    program = plan_program(parse("input A[ij|ab]\nB[ab|ij] = A[ji|ba]"), spaces)
    graph = inspect(program, PanelRule(1, 1))
    a = Tensor.random(program.layouts["A"], 1)
    buffers = {"A": a.data, "B": np.zeros(program.layouts["B"].size)}
    runner = Runner(graph, schedule(graph, "dataflow", 1), buffers)
    runner.reschedule(schedule(graph, "dataflow", 4))
    assert len(runner._executor._scratch) >= 4 * graph.scratch  # less is written over by the neighbours
    runner.run()
    assert_close(Tensor(program.layouts["B"], buffers["B"]).to_dense(), a.to_dense().transpose(3, 2, 1, 0))


# Jacobi steps


@pytest.mark.parametrize("executor", ["threads", "serial"])
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_a_level_shift_enters_the_step_and_not_the_residual(executor, shift):
    text = "input t[i|a]\ninput r[i|a]\nsolve t[i|a] : r[i|a] / (i - a)"
    program = plan_program(parse(text), WORLD)
    graph = inspect(program, PanelRule(1, 1))
    t, r = (Tensor.random(program.layouts[name], seed) for seed, name in enumerate("tr"))
    energies = {"o": np.array([-3.0, -2, -1]), "v": np.arange(1.0, 6)}
    buffers = {"t": t.data, "r": r.data, "t.new": np.zeros(t.data.size), "t.step": np.zeros(t.data.size)}
    runner = Runner(graph, schedule(graph, "dataflow", 2), buffers | gaps(program, energies), executor)
    norm2 = runner.run(shift=shift).scalars["t.norm2"]
    gap = energies["o"][:, None] - energies["v"]
    rest = np.where(t.to_dense() != 0, r.to_dense() - gap * t.to_dense(), 0.0)
    new, step = (Tensor(program.layouts["t"], buffers[name]).to_dense() for name in ("t.new", "t.step"))
    assert_close(step, rest / (gap - shift))
    assert_close(new, t.to_dense() + step)
    assert norm2 == pytest.approx((rest**2).sum())


@pytest.mark.parametrize("executor", ["threads", "serial"])
def test_what_follows_a_step_reads_the_new_amplitudes(executor):
    text = "input t[i|a]\ninput r[i|a]\nsolve t[i|a] : r[i|a] / (i - a)\nS[a|b] = t.new[i|a] t[i|b]"
    equation = parse(text)
    program = plan_program(equation, WORLD)
    t, r = (Tensor.random(program.layouts[name], seed) for seed, name in enumerate("tr"))
    energies = {"o": np.array([-3.0, -2, -1]), "v": np.arange(1.0, 6)}
    by_letter = {c: energies[space.name] for letters, space in WORLD.items() for c in letters}
    expected = evaluate_dense(equation, {"t": t.to_dense(), "r": r.to_dense()}, by_letter)["S"]
    for policy in policies:
        graph = inspect(program, PanelRule(1, 1))
        buffers = {name: np.full(layout.size, np.nan) for name, layout in program.layouts.items()}
        buffers |= {"t": t.data, "r": r.data} | gaps(program, energies)
        Runner(graph, schedule(graph, policy, 2), buffers, executor).run()
        assert_close(Tensor(program.layouts["S"], buffers["S"]).to_dense(), expected)


@pytest.mark.parametrize("executor", ["threads", "serial"])
def test_a_run_repeats_itself(case, executor):
    _, program, tensors, energies, graph = case
    runner = Runner(graph, schedule(graph, "dataflow", 2), started(program, tensors, energies), executor)
    first, second = runner.run().scalars, runner.run().scalars
    assert second == pytest.approx(first, rel=1e-12)


def test_a_graph_without_tasks_runs():
    none = {"ij": Space.spatial("o", [0])}
    program = plan_program(parse("input A[i|j]\nB[i|j] = A[j|i]\ne[] = A[i|j] A[i|j]"), none)
    graph = inspect(program)
    assert len(graph) == 0
    for policy in policies:
        for executor in ("threads", "serial"):
            buffers = {"A": np.zeros(0), "B": np.zeros(0)}
            assert Runner(graph, schedule(graph, policy, 3), buffers, executor).run().scalars == {"e": 0.0}
