"""The native inspection of sorts, its chunks and its walks, against their twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_programs import random_program
from random_spaces import RULES, SEEDS, worlds
from tilewise import Layout, Space
from tilewise.core import core
from tilewise.equations import parse, plan_program
from tilewise.equations.program import Sort
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.operations import Setting, sort_blocks
from tilewise.inspect.operations.formed import VERSIONS, sort_of_integrals
from tilewise.inspect.operations.sort import SORT_WALK, sort_chunks, sort_walks
from tilewise.inspect.operations.sort_twins import Places, inspect_sort
from tilewise.inspect.panels import Panels

TEXTS = {
    "packed pairs": "input T[ab+-|ij+-]\nX[ai|bj] = 2 T[ab|ij] - T[ab|ji]\nU[ab-|ij] = T[ab|ij]",
    "sums": "input T[ab+-|ij+-]\ninput A[ia|jb]\nd[a|b] = T[ab|ii]\ne[i|j] = A[ia|ja] + 2 A[ja|ia]",
    "sums of triangles": "input T[ab+-|ij+-]\ninput B[ab+|ij]\ns[i|j] = T[aa|ij] + B[aa|ji]",
    "products": "input A[ia|jb]\ninput t[a|i]\nX[ab|ij] = A[ia|jb] + t[a|i] t[b|j]",
    "pairs that stay packed": "input T[ab+-|ij+-]\nV[ij+-|ab+-] = T[ab|ij]\nV[ij|ab] += 2 T[ba|ij]",
    "half": "input v[ac+|bd+]\nV[ab+-||cd+-] = v[ac|bd]",
    "elementwise": "input A[ia|jb]\nB[ia|jb] = A[ia|jb]\nB[ia|jb] += 2 A[ia|jb]",
    "diagonals": "input A[ia|jb]\ninput E[a|b]\nW[ia|jb] = A[ia|jb]\nW[ia|ib] += E[a|b]",
}


def sorts_of(program):
    return [op for op in program.setup + program.operations if isinstance(op, Sort)]


def check_sort(op, program, rule):
    panels = {name: Panels(layout, rule) for name, layout in program.layouts.items()}
    buffers = {name: k for k, name in enumerate(program.layouts)}
    passes = sort_blocks.passes_of(op, Setting(program.layouts, panels, buffers, len(buffers)))
    targets, accumulate = [buffers[name] for name in op.targets], op.accumulate

    def found(search, places):
        sources = [(name, places(panels[name]), buffers[name]) for name in op.reads]
        own = places(panels[op.targets[0]])
        return search(own, op.letters, op.joined, op.elementwise, targets, accumulate, sources, passes, 64)

    check_equal(found(core.inspect_sort, lambda p: p.places), found(inspect_sort, Places))


def check_equal(native, twin):
    names = ("panels", "tasks", "blocks", "outs", "reads", "views", "coefficients")
    for name, one, other in zip(names, native[:7], twin[:7], strict=True):
        assert np.array_equal(one.view(other.dtype), other), name
    for name, one, other in zip(("touches", "outputs"), native[7:9], twin[7:9], strict=True):
        assert [x.tolist() for x in one] == [x.tolist() for x in other], name
    assert native[9] == twin[9]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@settings(max_examples=25)
@given(world=worlds(largest=5, spin=False), rule=st.sampled_from(RULES))
def test_inspection_finds_the_blocks_that_its_twin_finds(text, world, rule):
    program = plan_program(parse(text), world)
    for op in sorts_of(program):
        check_sort(op, program, rule)


SPINS = "input V[ab-|ij-]\ninput W[ab|ij]\nX[ab|ij] = V[ab|ij] - 2 W[ba|ij]\nY[ij|ab-] = V[ab|ij]"


@settings(max_examples=25)
@given(world=worlds(largest=4, spin=True), rule=st.sampled_from(RULES))
def test_inspection_over_spin_orbitals_is_that_of_its_twin(world, rule):
    program = plan_program(parse(SPINS), world)
    assert len(sorts_of(program)) == 2
    for op in sorts_of(program):
        check_sort(op, program, rule)


@settings(max_examples=40)
@given(worlds(largest=3, spin=False), SEEDS, st.sampled_from(RULES))
def test_inspection_of_random_programs_is_that_of_its_twin(world, seed, rule):
    _, program, _ = random_program(world, seed, 4)
    for op in sorts_of(program):
        check_sort(op, program, rule)


@settings(max_examples=30)
@given(worlds(largest=5, spin=False), st.sampled_from(RULES))
def test_blocks_that_lie_alone_are_found_by_the_twin_too(world, rule):
    target, integrals = (Layout.parse(form, world) for form in ("ab+-|cd+-", "ac+|bd+"))
    sort, reads = sort_of_integrals("A", target, integrals)

    def found(search, alone):
        own, read = (alone(Panels(layout, rule)) for layout in (target, integrals))
        sources = [(str(slot), read, slot) for slot in range(len(reads))]
        return search(
            own, sort.letters, sort.joined, False, [7], [False], sources, [(VERSIONS["+-"], reads)], 64
        )

    native = found(core.inspect_sort, lambda panels: panels.places.alone())
    check_equal(native, found(inspect_sort, lambda panels: Places(panels, alone=True)))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("chunk", [1, 7, 64, 2048])
@settings(max_examples=10)
@given(world=worlds(largest=6, spin=False), rule=st.sampled_from(RULES))
def test_the_core_walks_over_views_as_its_twin_does(text, chunk, world, rule):
    program = plan_program(parse(text), world)
    records = inspect_operations(program, program.setup + program.operations, rule).records
    tables = [records[key] for key in ("sort", "read", "view")]
    bare = [np.ascontiguousarray(table).view(np.uint8) for table in tables]
    assert core.sort_chunks(bare[0], chunk).tolist() == sort_chunks(tables[0], chunk).tolist()
    native = core.sort_walks(*bare, chunk).view(SORT_WALK)
    assert native.tolist() == sort_walks(*tables, chunk).tolist()


def test_walks_over_records_that_do_not_exist_are_refused():
    program = plan_program(
        parse(TEXTS["products"]), {"ij": Space.spatial("o", [3, 2]), "ab": Space.spatial("v", [3, 2])}
    )
    records = inspect_operations(program, program.operations, RULES[0]).records
    blocks, reads, views = (records[key].copy() for key in ("sort", "read", "view"))
    blocks["n_read"][-1] += 1
    with pytest.raises(ValueError, match="records that do not exist"):
        core.sort_walks(blocks.view(np.uint8), reads.view(np.uint8), views.view(np.uint8), 64)
