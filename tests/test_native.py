"""The border to the native core: both languages agree on records, and every function has a twin."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registers import LANES, at_most
from tilewise import native
from tilewise.core import core
from tilewise.inspect.operations import TABLES, kinds
from tilewise.inspect.operations.gemm import GEMM, kernels_of, product_kernels
from tilewise.inspect.records import KINDS

TWINS = {
    "adapt_pairs": "tilewise.chem.transform_twins.adapt_pairs",
    "adapt_quartets": "tilewise.chem.transform_twins.adapt_quartets",
    "combine": "tilewise.methods.diis.combine",
    "dependencies": "tilewise.inspect.dependencies.dependencies",
    "diagonal": "tilewise.chem.pyscf_libcint_twins.diagonal",
    "exchange_half": "tilewise.chem.transform_twins.exchange_half",
    "first_half": "tilewise.chem.transform_twins.first_half",
    "first_half_of_runs": "tilewise.chem.transform_twins.first_half_of_runs",
    "gather": "tilewise.tensor.gather.gather",
    "inspect_sort": "tilewise.inspect.operations.sort_twins.inspect_sort",
    "product_kernels": "tilewise.inspect.operations.gemm.product_kernels",
    "quartet": "tilewise.chem.pyscf_libcint_twins.quartet",
    "record_layouts": "tilewise.native.fields_of",
    "run": "tilewise.execute.serial.run",
    "schwarz": "tilewise.chem.pyscf_libcint_twins.schwarz",
    "second_half": "tilewise.chem.transform_twins.second_half",
    "simulate": "tilewise.execute.simulate_twin.simulate",
    "sort_chunks": "tilewise.inspect.operations.sort.sort_chunks",
    "sort_walks": "tilewise.inspect.operations.sort.sort_walks",
    "triangle_products": "tilewise.chem.transform_twins.triangle_products",
    "weighted_products": "tilewise.methods.diis.weighted_products",
    "near_lists": "tilewise.ci.twins.near_lists",
    "far_lists": "tilewise.ci.twins.far_lists",
    "ColumnMatrix": "tilewise.ci.twins.column",
    "Libcint": "tilewise.chem.pyscf_libcint_twins.Libcint",
    "Scratch": "tilewise.chem.transform_twins.Scratch",
    "Group": "tilewise.tensor.compound.Compound",
    "Places": "tilewise.inspect.operations.sort_twins.Places",
}
"""Of each native function or class, what does the same in Python."""

WITHOUT = {
    "use_dgemm": "it hands over a pointer and computes nothing",
    "Gates": "what one thread opens and others wait at; it computes nothing",
    "Carrier": "gates whose workers copy strips between ranks; it computes nothing",
    "choose_pages": "it asks the system for something, and computes nothing",
    "numbers": "memory, and nothing computed",
    "keep_pages": "it tells what becomes of memory",
    "give_pages_back": "it tells what becomes of memory",
    "settle_memory": "it waits and computes nothing",
    "register_lanes": "it tells what the processor has",
    "use_register_lanes": "it chooses among kernels and computes nothing",
    "TooManyThreads": "an error and no function",
}


def named(path):
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def test_every_native_function_has_a_twin():
    functions = {name for name in dir(core) if callable(getattr(core, name)) and not name.startswith("_")}
    assert functions == {*TWINS, *WITHOUT}
    assert all(callable(named(path)) for path in TWINS.values())


# Records


def test_both_languages_have_the_same_records():
    native.check_records(core.record_layouts(), native.RECORDS)
    assert {name for name, dtype in TABLES.items() if dtype.names} <= set(core.record_layouts())
    for name, fields in core.record_layouts().items():
        assert sum(8 * count for _, _, _, count in fields) == native.RECORDS[name].itemsize


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: [*f[:2], ("place", *f[2][1:]), *f[3:]],
            r"'place' \(1 whole number at byte 16\) .* 'a_offset'",
        ),
        (lambda f: [*f[:6], (*f[6][:2], "f", 1), f[7]], r"'ld' \(1 float at byte 48\) .* the field 'ld'"),
        (lambda f: f[:-1], "has no field in the place of the field 'factor'"),
        (lambda f: [*f, ("more", 64, "i", 2)], r"'more' \(2 whole numbers at byte 64\) .* no field"),
    ],
)
def test_the_first_field_that_differs_is_named(change, message):
    layouts = core.record_layouts()
    layouts["dot"] = change(layouts["dot"])
    with pytest.raises(ImportError, match=message) as raised:
        native.check_records(layouts, native.RECORDS)
    assert "its record 'dot' has" in str(raised.value) and "install it again" in str(raised.value)


def test_a_record_that_only_one_language_has_is_named():
    layouts = core.record_layouts()
    without = {name: fields for name, fields in layouts.items() if name != "view"}
    with pytest.raises(ImportError, match="'view' has no field in the place of the field 'buffer'"):
        native.check_records(without, native.RECORDS)
    with pytest.raises(ImportError, match=r"'triple' has the field 'a' .* in the place of no field"):
        native.check_records(layouts | {"triple": [("a", 0, "i", 1)]}, native.RECORDS)


def test_each_kind_of_record_is_registered_under_its_number():
    assert tuple(kinds) == KINDS == core.kinds
    assert [kind.number for kind in kinds.values()] == list(range(len(kinds)))


# Kernels

SIZES = st.one_of(st.integers(0, 40), st.sampled_from([126, 127, 128, 129, 300]))


SHAPES = st.lists(st.tuples(SIZES, SIZES, SIZES, st.booleans(), st.booleans()), max_size=20)


@given(SHAPES, st.sampled_from(LANES))
def test_products_go_to_the_kernels_that_the_twin_says(shapes, lanes):
    gemms = np.zeros(len(shapes), GEMM)
    for record, shape in zip(gemms, shapes, strict=True):
        record["m"], record["n"], record["k"], record["transpose_a"], record["transpose_b"] = shape
    with at_most(lanes):
        assert kernels_of(gemms).tolist() == product_kernels(gemms).tolist()
