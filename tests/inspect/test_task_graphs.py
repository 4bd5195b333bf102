"""Task graphs: which tasks touch the same elements, and whether the graph orders or locks them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from random_programs import ccsd_case, energies_by_letter, gaps, random_program, run_program
from random_spaces import RULES, SEEDS, assert_close, worlds
from tilewise import Layout, Space, Tensor
from tilewise.equations import Dot, Update, evaluate_dense, parse, plan_program
from tilewise.execute import serial
from tilewise.inspect import PanelRule, Panels, inspect
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.operations.sort import MAX_AXES
from tilewise.inspect.records import KINDS

# Elements that each task reads and writes, from its records alone


def rectangle(offset, rows, cols, ld):
    return (int(offset) + int(ld) * np.arange(int(rows))[:, None] + np.arange(int(cols))).ravel()


def gemm_elements(graph, g):
    yield "write", g["c"], rectangle(g["c_offset"], g["m"], g["n"], g["ldc"])
    if g["k"]:
        for key, rows, cols in (("a", g["m"], g["k"]), ("b", g["k"], g["n"])):
            if g[f"transpose_{key}"]:
                rows, cols = cols, rows
            yield "read", g[key], rectangle(g[f"{key}_offset"], rows, cols, g[f"ld{key}"])


def sort_elements(graph, block):
    shape = tuple(int(n) for n in block["extent"][: block["n_axes"]])
    split = int(block["n_row_axes"])
    for out in graph.records["out"][block["first_out"] : block["first_out"] + block["n_out"]]:
        if out["buffer"] < 0:
            continue
        if out["stride"].any():  # a diagonal
            at = int(out["offset"]) + np.tensordot(out["stride"][: len(shape)], np.indices(shape), axes=1)
            yield "write", out["buffer"], at.ravel()
            continue
        sides = []
        for axes, triangle in ((shape[:split], out["row_triangle"]), (shape[split:], out["col_triangle"])):
            full = int(np.prod(axes, dtype=np.int64))
            sides.append(axes[0] * (axes[0] + int(triangle)) // 2 if triangle else full)
        yield "write", out["buffer"], rectangle(out["offset"], *sides, out["ld"])
    for read in graph.records["read"][block["first_read"] : block["first_read"] + block["n_read"]]:
        sums = tuple(int(n) for n in read["sum_extent"][: read["n_sum"]])
        index = np.indices(shape + sums)
        axes = [*range(len(shape)), *range(MAX_AXES, MAX_AXES + len(sums))]
        for view in graph.records["view"][read["first_view"] : read["first_view"] + read["n_view"]]:
            at = np.full(shape + sums, int(view["offset"]))
            for k, axis in enumerate(axes):
                at = at + int(view["stride"][axis]) * index[k]
            stored = np.ones(at.shape, bool)
            for k in range(view["n_pair"]):
                p, q = (index[axes.index(view[name][k])] for name in ("p_axis", "q_axis"))
                sign, high, low = int(view["sign"][k]), np.maximum(p, q), np.minimum(p, q)
                at = at + int(view["unit"][k]) * (high * (high + sign) // 2 + low)
                stored &= (p != q) | (sign > 0)
            yield "read", view["buffer"], at[stored]


def update_elements(graph, r):
    for access, key, offset in (
        ("read", "amplitude", "amplitude_offset"),
        ("read", "residual", "residual_offset"),
        ("write", "new_amplitude", "new_offset"),
        ("write", "step", "step_offset"),
    ):
        yield access, r[key], rectangle(r[offset], r["rows"], r["cols"], r["ld"])
    yield "read", r["energies"], int(r["row_energy"]) + np.arange(int(r["rows"]))
    yield "read", r["energies"], int(r["col_energy"]) + np.arange(int(r["cols"]))


def dot_elements(graph, r):
    for key in "ab":
        yield "read", r[key], rectangle(r[f"{key}_offset"], r["rows"], r["cols"], r["ld"])


ELEMENTS = {"gemm": gemm_elements, "sort": sort_elements, "update": update_elements, "dot": dot_elements}


def accesses(graph, lengths):
    """Boolean tables (task, element of all buffers): reads, assigning writes, accumulating writes."""
    base = np.cumsum([0, *lengths])
    tables = {key: np.zeros((len(graph), base[-1]), bool) for key in ("read", "assign", "add")}
    for t, task in enumerate(graph.tasks):
        kind = KINDS[task["kind"]]
        outputs = graph.operations[task["operation"]].outputs
        for record in graph.records[kind][task["first"] : task["first"] + task["count"]]:
            for access, buffer, where in ELEMENTS[kind](graph, record):
                assert where.size == 0 or (where.min() >= 0 and where.max() < lengths[buffer])
                if access == "write":
                    access = "add" if outputs[graph.buffers[buffer]] else "assign"
                tables[access][t, base[buffer] + where] = True
    return tables


def reachable(graph):
    """reach[u, t]: task t must end before task u begins."""
    reach = np.zeros((len(graph), len(graph)), bool)
    for e in np.argsort(graph.targets, kind="stable"):
        s, t = graph.sources[e], graph.targets[e]
        reach[t] |= reach[s]
        reach[t, s] = True
    return reach


def meet(a, b):
    return (a.astype(np.float32) @ b.T.astype(np.float32)) > 0


def lengths_of(program, graph):
    return [program.layouts[n].size if n in program.layouts else graph.vectors[n] for n in graph.buffers]


def check_order(program, graph):
    assert (graph.sources < graph.targets).all()
    table = accesses(graph, lengths_of(program, graph))
    before, ordered = np.tril(np.ones((len(graph),) * 2, bool), -1), reachable(graph)
    written = table["assign"] | table["add"]
    conflict = meet(written, table["read"]) | meet(table["read"], written)
    conflict |= meet(table["assign"], written) | meet(written, table["assign"])
    broken = np.argwhere(conflict & before & ~ordered)
    assert not len(broken), (
        f"task {broken[0][0]} ({graph.describe(broken[0][0])}) and task {broken[0][1]} "
        f"({graph.describe(broken[0][1])}) touch the same elements in any order"
    )
    locks = np.zeros((len(graph), max(1, graph.n_locks)), bool)
    for t, task in enumerate(graph.tasks):
        locks[t, graph.locks[task["first_lock"] : task["first_lock"] + task["n_lock"]]] = True
    racing = meet(table["add"], table["add"]) & before & ~ordered & ~meet(locks, locks)
    assert not racing.any(), "two tasks add to the same elements without a common lock"
    return table


@settings(max_examples=60)
@given(worlds(largest=3, spin=False), SEEDS, st.integers(1, 6), st.sampled_from(RULES), st.booleans())
def test_tasks_that_touch_the_same_elements_are_ordered_or_share_a_lock(world, seed, length, rule, ordered):
    _, program, _ = random_program(world, seed, length)
    graph = inspect(program, rule, ordered)
    table = check_order(program, graph)
    if ordered:
        both = np.tril(meet(table["add"], table["add"]), -1)
        assert not (both & ~reachable(graph)).any()


def panel_of_each_element(graph):
    """The panel that every element of all buffers lies in, counted over all tensors; -1 in vectors."""
    numbers, first = [], 0
    for name in graph.buffers:
        length = graph.length_of(name)
        panel = np.full(length, -1)
        if name in graph.panels:
            panels = graph.panels[name]
            t, layout = panels.table, panels.layout
            for k in range(len(panels)):
                s = t["sector"][k]
                offset = layout.offsets[s] + t["row0"][k] * layout.ncols[s] + t["col0"][k]
                panel[rectangle(offset, t["nrows"][k], t["ncols"][k], layout.ncols[s])] = first + k
            first += len(panels)
        numbers.append(panel)
    return np.concatenate(numbers), first


def check_accesses(program, graph):
    """Each task accesses the panels that its records touch, constants included, and no others."""
    table, (panel, count) = accesses(graph, lengths_of(program, graph)), panel_of_each_element(graph)
    firsts = np.cumsum([0, *(len(panels) for panels in graph.panels.values())])
    known = graph.accesses
    for kind, name in enumerate(("read", "assign", "add")):
        touched = np.zeros((len(graph), count), bool)
        task, element = np.nonzero(table[name][:, : len(panel)])
        inside = panel[element] >= 0
        touched[task[inside], panel[element[inside]]] = True
        said = np.zeros_like(touched)
        mine = known[known["kind"] == kind]
        said[mine["task"], firsts[mine["tensor"]] + mine["panel"]] = True
        assert not (touched & ~said).any(), f"a task touches a panel that its accesses ({name}) lack"
        if name != "read":
            assert not (said & ~touched).any(), f"a task has an access ({name}) to what it does not touch"


@settings(max_examples=40)
@given(worlds(largest=3, spin=False), SEEDS, st.integers(1, 6), st.sampled_from(RULES))
def test_a_graph_knows_which_task_reads_and_writes_which_panel(world, seed, length, rule):
    _, program, _ = random_program(world, seed, length)
    check_accesses(program, inspect(program, rule))


# One irrep without occupied orbitals: of a panel of tau only some blocks have products of two singles.
HALF_EMPTY = {
    "ijklmn": Space("o", ((2, 0),), spins=(0,), tile=1),
    "abcdef": Space("v", ((1, 2),), spins=(0,), tile=1),
}


@settings(max_examples=4)
@given(worlds(largest=3, spin=False), st.sampled_from(RULES))
@example(HALF_EMPTY, PanelRule(192, 4096))
def test_the_accesses_of_ccsd_are_complete(world, rule):
    _, program, *_ = ccsd_case(world)
    check_accesses(program, inspect(program, rule))


@settings(max_examples=6)
@given(worlds(largest=3, spin=False), st.sampled_from(RULES))
def test_the_order_of_ccsd_is_complete(world, rule):
    program = ccsd_case(world)[1]
    check_order(program, inspect(program, rule))


@settings(max_examples=60)
@given(worlds(largest=3, spin=False), SEEDS, st.integers(1, 6), st.sampled_from(RULES))
def test_every_element_of_an_assigned_tensor_is_assigned(world, seed, length, rule):
    _, program, _ = random_program(world, seed, length)
    graph = inspect(program, rule)
    table = accesses(graph, lengths_of(program, graph))
    base = np.cumsum([0, *lengths_of(program, graph)])
    for number, op in enumerate(graph.operations):
        mine = graph.tasks["operation"] == number
        for name, accumulates in op.outputs.items():
            k = graph.buffers.index(name)
            times = table["assign"][mine, base[k] : base[k + 1]].sum(axis=0)
            assert (times == (0 if accumulates else 1)).all(), f"{op.text}: {name}"


def random_order(graph, rng):
    """A topological order, chosen at random."""
    needed, (first, following) = graph.n_needed.copy(), graph.successors
    ready, order = list(np.flatnonzero(needed == 0)), []
    while ready:
        t = ready.pop(rng.integers(len(ready)))
        order.append(t)
        for u in following[first[t] : first[t + 1]]:
            needed[u] -= 1
            if needed[u] == 0:
                ready.append(u)
    return np.array(order, int)


def run_in_orders(program, inputs, expected, rule, energies, rng, times):
    start, _, _ = run_program(program, inputs, rule=rule, executor="serial", energies=energies)
    graph = inspect(program, rule)
    made = {name for op in graph.operations for name in op.outputs}
    for _ in range(times):
        buffers = {n: np.full(x.shape, np.nan) if n in made else x for n, x in start.items()}
        buffers |= gaps(program, energies)
        order = random_order(graph, rng)
        assert len(order) == len(graph)
        failed, reason, partial, _ = serial.run(graph, [buffers[n] for n in graph.buffers], order)
        assert failed < 0, reason + graph.describe(failed)
        for name in made:
            if name in expected:
                assert_close(Tensor(program.layouts[name], buffers[name]).to_dense(), expected[name], 1e-11)
        for k, op in enumerate(graph.operations):
            if isinstance(op, Update):
                total = partial[graph.tasks["operation"] == k].sum()
                assert_close(total, expected[op.norm2], 1e-11)
        dots = [k for k, op in enumerate(graph.operations) if isinstance(op, Dot)]
        if dots and "e" in expected:
            assert_close(partial[np.isin(graph.tasks["operation"], dots)].sum(), expected["e"], 1e-11)


@settings(max_examples=25)
@given(worlds(largest=3, spin=False), SEEDS, st.integers(2, 6), st.sampled_from(RULES))
def test_any_topological_order_gives_the_dense_result(world, seed, length, rule):
    equation, program, inputs = random_program(world, seed, length)
    expected = evaluate_dense(equation, {name: t.to_dense() for name, t in inputs.items()})
    run_in_orders(program, inputs, expected, rule, {}, np.random.default_rng(seed), 3)


@pytest.mark.parametrize("rule", [PanelRule(1, 1), PanelRule(4, 6)])
def test_any_topological_order_of_ccsd_gives_the_dense_result(rule):
    world = {"ijkl": Space.spatial("o", [2, 1], tile=1), "abcd": Space.spatial("v", [2, 2], tile=2)}
    equation, program, tensors, energies = ccsd_case(world, 5)
    dense = {name: t.to_dense() for name, t in tensors.items()}
    letters = {c: e for c, e in energies_by_letter(energies).items() if c in "ijklabcd"}
    expected = evaluate_dense(equation, dense, letters)
    run_in_orders(program, tensors, expected, rule, energies, np.random.default_rng(0), 2)


# What the graph says of itself


@settings(max_examples=20)
@given(worlds(largest=3, spin=False), SEEDS, st.integers(1, 6), st.sampled_from(RULES))
def test_longest_paths_levels_and_counts(world, seed, length, rule):
    _, program, _ = random_program(world, seed, length)
    graph = inspect(program, rule)
    cost = np.random.default_rng(seed).random(len(graph))
    expected = cost.copy()
    for t in reversed(range(len(graph))):
        after = graph.targets[graph.sources == t]
        expected[t] += expected[after].max(initial=0.0)
    assert_close(graph.longest_path(cost), expected)
    assert (graph.levels[graph.sources] < graph.levels[graph.targets]).all()
    assert np.array_equal(graph.n_needed, np.bincount(graph.targets, minlength=len(graph)))
    assert (graph.tasks["count"] > 0).all() and (graph.bytes > 0).all()
    for kind in KINDS:
        mine = graph.tasks[graph.tasks["kind"] == KINDS.index(kind)]
        used = [np.arange(f, f + c) for f, c in zip(mine["first"], mine["count"], strict=True)]
        used = np.concatenate([np.zeros(0, int), *used])
        assert np.array_equal(np.sort(used), np.arange(len(graph.records[kind]))), (
            f"{kind} records lost or shared"
        )
    for t in range(len(graph)):
        assert graph.describe(t).startswith("operation '")


def test_check_finds_a_dependency_that_points_backwards():
    world = {"ijkl": Space.spatial("o", [2, 1]), "abcd": Space.spatial("v", [2, 2])}
    graph = inspect(ccsd_case(world)[1])
    graph.check()
    graph.sources[0], graph.targets[0] = graph.targets[0], graph.sources[0]
    with pytest.raises(AssertionError, match="from a later task to an earlier one"):
        graph.check()


def test_check_finds_a_record_without_a_buffer():
    world = {"ijkl": Space.spatial("o", [2, 1]), "abcd": Space.spatial("v", [2, 2])}
    graph = inspect(ccsd_case(world)[1])
    graph.records["gemm"]["c"][3] = len(graph.buffers)
    with pytest.raises(AssertionError, match="a gemm record names no buffer"):
        graph.check()


# Panels


@given(st.data(), worlds(largest=4), st.sampled_from([*RULES, PanelRule(2, 2)]))
def test_panels_cover_every_sector_once(data, world, rule):
    form = data.draw(
        st.sampled_from(["ij+-|ab+-", "ij|ab", "ij-|ab+", "kb|ij+-", "ia|", "|", "i|a", "ijk|abc"])
    )
    layout = Layout.parse(form, world)
    panels = Panels(layout, rule)
    seen = np.zeros(layout.size, int)
    t = panels.table
    for k in range(len(panels)):
        s = t["sector"][k]
        first = layout.offsets[s] + t["row0"][k] * layout.ncols[s] + t["col0"][k]
        seen[rectangle(first, t["nrows"][k], t["ncols"][k], layout.ncols[s])] += 1
        r0, r1, c0, c1 = panels.tuples(k)
        for r in range(r0, r1):
            assert (panels.of_tuples(np.full(c1 - c0, r), np.arange(c0, c1)) == k).all()
    assert (seen == 1).all()
    if rule == PanelRule(1, 1):
        blocks = [
            np.outer(layout.rows.tuples.sector == r, layout.cols.tuples.sector == c).sum()
            for r, c in layout.sector_pairs
        ]
        assert len(panels) == sum(blocks)


@given(worlds(largest=6, smallest=2, spin=False), st.sampled_from([*RULES, PanelRule(2, 2)]))
def test_both_parities_of_a_pair_are_cut_at_the_same_tiles(world, rule):
    layout = Layout.parse("ij+-|ab+-", world)
    panels = Panels(layout, rule)

    def blocks(k):
        r0, r1, c0, c1 = panels.tuples(k)
        rows, cols = layout.rows.tuples.tiles[r0:r1], layout.cols.tuples.tiles[c0:c1]
        return {(*r, *c) for r in rows.tolist() for c in cols.tolist()}

    for k in np.flatnonzero(panels.table["parity"] < 0):
        mate = panels.mates[k]
        assert panels.table["parity"][mate] > 0 and blocks(k) <= blocks(mate)


def test_products_with_a_half_stored_matrix_are_found_in_memory_of_their_own_size():
    text = "input v[ac+|bd+]\ninput T[ab+-|ij+-]\nV[ab+-||cd+-] = v[ac|bd]\nR[ab+-|ij+-] = V[ab|cd] T[cd|ij]"
    spaces = {"ij": Space.spatial("o", [1], 1), "abcd": Space.spatial("v", [300], 16)}
    program = plan_program(parse(text), spaces)
    (product,) = (op for op in program.operations if "R" in op.outputs)
    tracemalloc.start()
    try:
        graph = inspect_operations(program, (product,), PanelRule())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(graph.records["gemm"]) > 30_000
    assert peak < 6 * graph.records["gemm"].nbytes
