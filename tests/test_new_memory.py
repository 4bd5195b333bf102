"""Memory for large arrays: zeros are zeros, and pages of arrays that are gone serve later ones."""

import gc
import multiprocessing

import numpy as np
import pytest
from pyscf import gto, scf

import tilewise
from tilewise.config import resident_memory
from tilewise.new_memory import LARGE, empty, pages_kept, settle, zeros

MB = 1 << 20


@pytest.mark.parametrize("count", [0, 1, LARGE // 8 - 1, LARGE // 8, LARGE // 8 + 1, 3_000_001])
@pytest.mark.parametrize("workers", [1, 3])
def test_zeros_are_zeros_in_memory_that_was_in_use(count, workers):
    with pages_kept():
        for _ in range(3):
            made = zeros(count, workers)
            assert made.shape == (count,) and made.dtype == np.float64 and made.flags.c_contiguous
            assert not made.any()
            made[:] = 7.0
            del made


def test_arrays_of_other_lengths_share_pages_and_no_number():
    rng = np.random.default_rng(0)
    with pages_kept():
        kept = []
        for step in range(60):
            count = int(rng.integers(LARGE // 8, 3 * LARGE // 8))
            kept.append((zeros(count) if step % 2 else empty(count), float(step)))
            kept[-1][0][:] = step
            if len(kept) > 4:
                kept.pop(int(rng.integers(len(kept))))
            assert all((array == value).all() for array, value in kept)


def test_pages_stay_while_they_are_kept_and_go_in_the_end():
    with pages_kept():
        before = resident_memory()
        with pages_kept():
            filled = zeros(64 * MB // 8)
            filled[:] = 1.0
            del filled
        assert resident_memory() > before + 50 * MB  # of two that keep them the first one has ended
        again = zeros(96 * MB // 8)
        assert resident_memory() < before + 80 * MB and not again.any()
        del again
    settle()
    assert resident_memory() < before + 20 * MB


def test_without_keeping_memory_goes_at_once():
    before = resident_memory()
    made = zeros(64 * MB // 8)
    made[:] = 1.0
    assert resident_memory() > before + 50 * MB
    del made
    gc.collect()
    assert resident_memory() < before + 20 * MB


def _in_a_copy(pipe):
    with pages_kept():
        made = zeros(LARGE)
        made[:] = 1.0
        del made
    settle()
    pipe.send(float(zeros(LARGE).sum()))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_copy_of_the_process_waits_for_no_thread_of_another():
    with pages_kept():
        made = zeros(LARGE)
        made[:] = 1.0
        del made
    mine, its = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_in_a_copy, args=(its,))
    process.start()
    assert mine.poll(30) and mine.recv() == 0.0
    process.join(30)
    assert process.exitcode == 0


def test_no_memory_is_no_array():
    with pytest.raises(MemoryError):
        zeros(1 << 56)


def test_a_calculation_leaves_no_pages():
    text = "O 0 0 0.1174; H 0 0.7572 -0.4696; H 0 -0.7572 -0.4696"
    water = scf.RHF(gto.M(atom=text, basis="cc-pvtz", verbose=0)).run()

    def energy():
        return tilewise.CCSD(water, frozen=1, symmetry=False).run().e_corr

    first = energy()
    settle()
    before = resident_memory()
    for _ in range(3):
        assert energy() == pytest.approx(first, abs=1e-10)
    settle()
    assert resident_memory() < before + 20 * MB
