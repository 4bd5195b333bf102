"""Restart files: what they carry over, what they refuse, and what a failing disk does to them."""

import errno
import os
import subprocess
import sys
import threading

import h5py
import numpy as np
import pytest
from ccsd_oracles import WATER, mean_field, pyscf_ccsd, pyscf_run, scf_of

import tilewise
from tilewise.errors import CheckpointError, InputError
from tilewise.methods.checkpoint import Checkpoint

CYCLES = 7  # of a run that is cut off on its way
ITERATIONS = 9  # that a whole one takes at least


def cut_off(path, mf, **options):
    run = tilewise.CCSD(mf, checkpoint=path, max_cycle=CYCLES, **options).run()
    assert not run.converged
    assert path.is_file()
    return run


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A restart file of water in C2v, and the run that wrote it."""
    assert len(tilewise.CCSD(mean_field("water")).run().iterations) >= ITERATIONS
    path = tmp_path_factory.mktemp("restart") / "water.h5"
    return path, cut_off(path, mean_field("water"))


def assert_goes_on(run, before, name="water", frozen=None):
    """It begins where the other run ended, ends sooner than one from nothing, and at the right energy."""
    assert run.converged
    assert run.iterations[0].residual < before.iterations[-1].residual
    assert len(run.iterations) < ITERATIONS
    assert run.e_corr == pytest.approx(pyscf_ccsd(name, frozen).e_corr, abs=1e-8)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tile": 2},
        {"tile": 100, "threads": 1},
        {"threads": 3, "policy": "lpt"},
        {"symmetry": "C2"},
        {"symmetry": "Cs"},
        {"symmetry": "C1", "tile": 3},
        {"executor": "serial"},
        {"level_shift": 0.1},
    ],
    ids=str,
)
def test_a_restart_goes_on_with_other_tiles_threads_and_symmetry(kept, options):
    path, before = kept
    assert_goes_on(tilewise.CCSD(mean_field("water"), restart=path, **options).run(), before)


def test_amplitudes_are_those_that_were_written(kept):
    path, before = kept
    t1, t2 = before.to_pyscf()
    for symmetry in ("C2v", "C1"):
        # One step with an infinite shift goes nowhere: what comes out is what was read.
        read = tilewise.CCSD(
            mean_field("water"), restart=path, symmetry=symmetry, tile=3, level_shift=1e15, max_cycle=1
        )
        new_t1, new_t2 = read.run().to_pyscf()
        assert np.abs(new_t1 - t1).max() < 1e-14
        assert np.abs(new_t2 - t2).max() < 1e-14


def test_down_to_no_symmetry_and_up_again(tmp_path):
    mf, energy = mean_field("water"), pyscf_ccsd("water").e_corr
    last, residual = None, np.inf
    for k, group in enumerate(("C2v", "Cs", "C1", "Cs", "C2v")):
        path = tmp_path / f"{k}.h5"
        run = tilewise.CCSD(
            mf, symmetry=group, restart=last, checkpoint=path, max_cycle=3, conv_tol=1e-10
        ).run()
        assert run.iterations[0].residual < 1.0001 * residual
        residual, last = run.iterations[-1].residual, path
    assert tilewise.CCSD(mf, restart=last).run().e_corr == pytest.approx(energy, abs=1e-8)


@pytest.mark.parametrize("frozen", [1, [0, 12]])
def test_a_frozen_core_is_carried_over(tmp_path, frozen):
    before = cut_off(tmp_path / "water.h5", mean_field("water"), frozen=frozen, symmetry="Cs")
    run = tilewise.CCSD(mean_field("water"), frozen=frozen, restart=tmp_path / "water.h5").run()
    assert_goes_on(run, before, frozen=tuple(frozen) if isinstance(frozen, list) else frozen)


@pytest.mark.parametrize(("name", "symmetry"), [("nitrogen", "auto"), ("hydrogen, minimal", "C1")])
def test_other_molecules_restart_too(tmp_path, name, symmetry):
    mf, path = mean_field(name), tmp_path / "amplitudes.h5"
    before = tilewise.CCSD(mf, checkpoint=path, max_cycle=4).run()
    run = tilewise.CCSD(mf, restart=path, symmetry=symmetry, tile=2).run()
    assert run.iterations[0].residual < before.iterations[-1].residual
    assert run.e_corr == pytest.approx(pyscf_ccsd(name).e_corr, abs=1e-8)


@pytest.mark.parametrize("symmetry", [True, False])
def test_an_scf_that_is_run_again_has_the_same_orbitals_up_to_signs_and_order(kept, symmetry):
    path, before = kept
    mf = scf_of(WATER, "6-31g", symmetry=symmetry)
    rng = np.random.default_rng(5)
    order = np.concatenate([rng.permutation(5), 5 + rng.permutation(8)])
    mf.mo_coeff = (np.asarray(mf.mo_coeff) * rng.choice([-1.0, 1.0], 13))[:, order]
    mf.mo_energy = mf.mo_energy[order]
    run = tilewise.CCSD(mf, restart=path).run()
    assert_goes_on(run, before)


def test_a_converged_file_needs_hardly_an_iteration(tmp_path):
    mf, path = mean_field("water"), tmp_path / "water.h5"
    first = tilewise.CCSD(mf, checkpoint=path).run()
    again = tilewise.CCSD(mf, restart=path, checkpoint=path).run()
    assert len(again.iterations) == 1
    begun = again.iterations[0].e_corr - again.iterations[0].change
    assert begun == pytest.approx(first.e_corr, abs=1e-12)
    assert len(tilewise.CCSD(mf, restart=path).run().iterations) == 1


def test_the_file_says_what_it_is(kept):
    path, before = kept
    saved = Checkpoint.read(path)
    assert (saved.method, saved.iteration) == ("ccsd", CYCLES)
    assert saved.e_corr == before.iterations[-1].e_corr
    begun = tilewise.CCSD(mean_field("water"), restart=path, max_cycle=1).run().iterations[0]
    assert begun.e_corr - begun.change == pytest.approx(saved.e_corr, abs=1e-12)
    assert not list(path.parent.glob(".*"))


# Files that do not fit


OTHERS = {
    "molecule": lambda: mean_field("hydrogen fluoride"),
    "geometry": lambda: scf_of(WATER.replace("0.7572", "0.7573"), "6-31g"),
    "orientation": lambda: mean_field("water, tilted"),
    "basis": lambda: scf_of(WATER, "6-311g"),
    "charge": lambda: scf_of(WATER, "6-31g", charge=2),
    "ghost": lambda: mean_field("water and a ghost"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_file_of_something_else_is_refused(kept, what):
    with pytest.raises(CheckpointError) as caught:
        tilewise.CCSD(OTHERS[what](), restart=kept[0], symmetry="C1").run()
    assert str(kept[0]) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("frozen", ["auto", [1], [12], [0, 12]])
def test_a_file_of_another_frozen_set_is_refused(kept, frozen):
    with pytest.raises(CheckpointError, match=r"water\.h5.*orbitals"):
        tilewise.CCSD(mean_field("water"), frozen=frozen, restart=kept[0]).run()


def test_a_frozen_set_of_the_same_size_is_refused_too(tmp_path):
    cut_off(tmp_path / "water.h5", mean_field("water"), frozen=[0])
    with pytest.raises(CheckpointError, match=r"water\.h5.*orbitals"):
        tilewise.CCSD(mean_field("water"), frozen=[1], restart=tmp_path / "water.h5").run()


def test_rotated_degenerate_orbitals_are_refused(tmp_path):
    mf = mean_field("nitrogen")
    tilewise.CCSD(mf, checkpoint=tmp_path / "n2.h5", max_cycle=2).run()
    pair = [k for k in range(7) if np.sum(np.abs(mf.mo_energy - mf.mo_energy[k]) < 1e-8) == 2]
    assert len(pair) == 2  # the occupied pi orbitals
    rotated = mf.copy()
    rotated.mo_coeff = np.array(mf.mo_coeff)
    rotated.mo_coeff[:, pair] = rotated.mo_coeff[:, pair] @ [[0.6, 0.8], [-0.8, 0.6]]
    with pytest.raises(CheckpointError, match=r"n2\.h5.*degenerate"):
        tilewise.CCSD(rotated, symmetry="C1", restart=tmp_path / "n2.h5").run()


# Damaged files


def assert_refused(path, mf=None):
    with pytest.raises(CheckpointError) as caught:
        tilewise.CCSD(mf or mean_field("water"), restart=path).run()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_refused(kept, tmp_path):
    whole = kept[0].read_bytes()
    short = tmp_path / "short.h5"
    length = len(whole)
    for size in [*range(0, length, length // 40), *(length - lost for lost in (1, 2, 8, 100, 1000))]:
        short.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=r"short\.h5"):
            Checkpoint.read(short)
    short.write_bytes(whole[: length // 2])
    assert_refused(short)


@pytest.mark.parametrize("name", ["t", "T"])
def test_flipped_bytes_in_the_amplitudes_are_refused(kept, tmp_path, name):
    damaged = bytearray(kept[0].read_bytes())
    needle = Checkpoint.read(kept[0]).tensors[name].data[:16].tobytes()
    start = bytes(damaged).find(needle)
    assert start > 0
    bad = tmp_path / "bad.h5"
    for offset in (0, 5, 63, 127):
        flipped = damaged.copy()
        flipped[start + offset] ^= 0x40
        bad.write_bytes(flipped)
        with pytest.raises(CheckpointError, match=r"bad\.h5"):
            Checkpoint.read(bad)
    assert_refused(bad)


FLIP_EVERYWHERE = """
import signal, sys
from pathlib import Path
import numpy as np
from tilewise.errors import CheckpointError
from tilewise.methods.checkpoint import Checkpoint

good, bad = map(Path, sys.argv[1:])
whole = good.read_bytes()
amplitudes = Checkpoint.read(good).tensors
for at in range(0, len(whole), 24):
    flipped = bytearray(whole)
    flipped[at] ^= 0xD2
    bad.write_bytes(flipped)
    signal.alarm(5)  # ends this process: some damage makes HDF5 search without end
    try:
        read = Checkpoint.read(bad).tensors
    except CheckpointError as error:
        assert "bad.h5" in str(error) and "\\n" not in str(error), (at, str(error))
        continue
    for name in ("t", "T"):
        assert np.array_equal(read[name].data, amplitudes[name].data), at
"""


def test_a_flipped_byte_anywhere_is_refused_or_does_no_harm(kept, tmp_path):
    """In a process of its own: it must neither hang nor crash."""
    command = [sys.executable, "-c", FLIP_EVERYWHERE, str(kept[0]), str(tmp_path / "bad.h5")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, f"code {result.returncode}: {result.stderr[-500:]}"


def test_amplitudes_that_are_not_finite_are_refused(kept, tmp_path):
    saved = Checkpoint.read(kept[0])
    saved.tensors["T"].data[3] = np.nan
    saved.write(tmp_path / "nan.h5")
    assert_refused(tmp_path / "nan.h5")


def test_a_refused_file_leaves_hdf5_to_other_threads(kept, tmp_path):
    """h5py has one lock; a loop over its items that ends in an error would keep it as long as the error."""
    saved = Checkpoint.read(kept[0])
    saved.tensors["T"].data[3] = np.nan
    saved.write(tmp_path / "nan.h5")
    with pytest.raises(CheckpointError) as kept_error:
        Checkpoint.read(tmp_path / "nan.h5")
    reader = threading.Thread(target=Checkpoint.read, args=(kept[0],), daemon=True)
    reader.start()
    reader.join(timeout=60)
    assert not reader.is_alive() and kept_error


@pytest.mark.parametrize("content", [b"", b"O 0 0 0\nH 0 0 1\n", b"\x89HDF\r\n\x1a\n", b"\0" * 5000], ids=len)
def test_something_that_is_no_restart_file_is_refused(tmp_path, content):
    (tmp_path / "water.txt").write_bytes(content)
    assert_refused(tmp_path / "water.txt")


def test_another_hdf5_file_is_refused(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["numbers"] = np.arange(3)
    assert_refused(tmp_path / "other.h5")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert_refused(tmp_path / "none.h5")
    assert_refused(tmp_path)


def test_amplitudes_of_another_method_are_refused(kept, tmp_path):
    saved = Checkpoint.read(kept[0])
    saved.method = "ccsdt"
    saved.write(tmp_path / "other.h5")
    with pytest.raises(InputError, match=r"other\.h5.*ccsdt"):
        tilewise.CCSD(mean_field("water"), restart=tmp_path / "other.h5").run()


def test_a_refused_file_costs_no_integral(kept, tmp_path, monkeypatch):
    ccsd = tilewise.CCSD(mean_field("water"), restart=tmp_path / "none.h5")
    monkeypatch.setattr(tilewise.CCSD, "_constants", lambda self: pytest.fail("integrals were computed"))
    with pytest.raises(CheckpointError):
        ccsd.run()


# Disks that fail


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("broken", ["os.replace", "os.fsync", "builtins.open"])
def test_a_full_disk_leaves_the_last_good_file_and_the_run_goes_on(tmp_path, monkeypatch, broken):
    mf, path = mean_field("water"), tmp_path / "water.h5"
    cut_off(path, mf)
    good = path.read_bytes()
    real_open = open

    def refuse_to_write(file, mode="r", *rest, **more):
        return full_disk() if "w" in mode else real_open(file, mode, *rest, **more)

    monkeypatch.setattr(broken, refuse_to_write if broken == "builtins.open" else full_disk)
    run = tilewise.CCSD(mf, checkpoint=path, restart=path).run()
    monkeypatch.undo()
    assert run.converged
    assert run.e_corr == pytest.approx(pyscf_ccsd("water").e_corr, abs=1e-8)
    assert len(run.notes) == 1
    assert str(path) in run.notes[0]
    assert os.strerror(errno.ENOSPC) in run.notes[0]
    assert path.read_bytes() == good
    assert [entry.name for entry in tmp_path.iterdir()] == ["water.h5"]


def test_a_disk_with_room_again_is_written_to_again(tmp_path, monkeypatch):
    mf, path = mean_field("water"), tmp_path / "water.h5"
    write = Checkpoint.write

    def full_until_the_fourth(self, target):
        return full_disk() if self.iteration < 4 else write(self, target)

    monkeypatch.setattr(Checkpoint, "write", full_until_the_fourth)
    run = tilewise.CCSD(mf, checkpoint=path).run()
    assert len(run.notes) == 1
    assert Checkpoint.read(path).iteration == len(run.iterations)


def test_a_folder_that_is_not_there_is_noted(tmp_path):
    run = tilewise.CCSD(mean_field("water"), checkpoint=tmp_path / "none" / "water.h5").run()
    assert run.converged
    assert len(run.notes) == 1
    assert "none" in run.notes[0]


def test_an_interrupted_write_leaves_the_last_good_file(tmp_path, monkeypatch):
    mf, path = mean_field("water"), tmp_path / "water.h5"
    cut_off(path, mf)
    good = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tilewise.CCSD(mf, checkpoint=path).run()
    assert path.read_bytes() == good
    assert [entry.name for entry in tmp_path.iterdir()] == ["water.h5"]


def test_an_interrupted_run_goes_on_from_its_last_iteration(tmp_path):
    mf, path = mean_field("water"), tmp_path / "water.h5"

    def interrupt(iteration):
        if iteration.number == CYCLES:
            raise KeyboardInterrupt

    first = tilewise.CCSD(mf, checkpoint=path, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    assert Checkpoint.read(path).iteration == CYCLES - 1
    again = tilewise.CCSD(mf, restart=path).run()
    assert again.iterations[0].residual == pytest.approx(first.iterations[-1].residual, rel=1e-6)
    assert again.e_corr == pytest.approx(pyscf_ccsd("water").e_corr, abs=1e-8)


def test_pyscf_and_a_restart_agree_for_a_stretched_molecule(tmp_path):
    mf, path = scf_of("N 0 0 0; N 0 0 1.4", "sto-3g"), tmp_path / "n2.h5"
    tilewise.CCSD(mf, checkpoint=path, max_cycle=3, symmetry="C1").run()
    run = tilewise.CCSD(mf, restart=path).run()
    assert run.converged
    assert run.e_corr == pytest.approx(pyscf_run(mf).e_corr, abs=1e-8)
