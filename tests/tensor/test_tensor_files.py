"""Tensors in HDF5 files."""

import io

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from random_spaces import SEEDS, layouts
from tilewise import Layout, Space, Tensor
from tilewise.errors import CheckpointError
from tilewise.sealed import HEADER, write_sealed
from tilewise.tensor.tensor import FORMAT


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layouts(), SEEDS)
def test_a_saved_tensor_is_loaded_bit_by_bit(tmp_path, layout, seed):
    tensor = Tensor.random(layout, seed, "T'")
    tensor.save(tmp_path / "x.h5")
    loaded = Tensor.load(tmp_path / "x.h5")
    assert loaded.layout == layout and loaded.name == "T'"
    assert np.array_equal(loaded.data, tensor.data)


@pytest.fixture
def tensor():
    o, v = Space.spatial("o", [3, 2], 2), Space.spatial("v", [4, 4], 3)
    return Tensor.random(Layout.parse("ab+-|ij+-", {"ab": v, "ij": o}), 1, "T")


def test_several_tensors_share_a_file(tmp_path, tensor):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name in ("one", "two"):
            tensor.save(file.create_group(name))
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(Tensor.load(file["two"]).data, tensor.data)


def test_a_truncated_file_is_a_damaged_checkpoint(tmp_path, tensor):
    path = tmp_path / "x.h5"
    tensor.save(path)
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 25).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"x\.h5: "):
            Tensor.load(path)


def test_every_bit_of_a_file_counts(tmp_path, tensor):
    """Also those over which HDF5 itself hangs, such as a heap of texts without its sizes."""
    path = tmp_path / "x.h5"
    tensor.save(path)
    whole = path.read_bytes()
    for first in range(HEADER, len(whole), 200):
        path.write_bytes(whole[:first] + b"\0" * 64 + whole[first + 64 :])
        if path.read_bytes()[: len(whole)] != whole:
            with pytest.raises(CheckpointError, match=r"x\.h5: truncated or corrupt tensor file"):
                Tensor.load(path)


def test_a_missing_file_and_another_file_are_no_checkpoints(tmp_path):
    with pytest.raises(CheckpointError, match=r"absent\.h5: it cannot be read \(No such file"):
        Tensor.load(tmp_path / "absent.h5")
    (tmp_path / "text.h5").write_text("tensor")
    with pytest.raises(CheckpointError, match=r"text\.h5: not a tensor file of tilewise"):
        Tensor.load(tmp_path / "text.h5")


def test_other_programs_read_a_file_as_any_other(tmp_path, tensor):
    tensor.save(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as file:
        assert np.array_equal(file["data"][()], tensor.data)
        assert np.array_equal(Tensor.load(file).data, tensor.data)


def forge(path, change):
    """Changes the contents of a file, and gives it the digest that belongs to them."""
    image = io.BytesIO(path.read_bytes()[HEADER:])
    with h5py.File(image, "r+") as file:
        change(file)
    write_sealed(path, FORMAT, image.getvalue())


@pytest.mark.parametrize("lost", ["data", "rows", "cols"])
def test_a_file_without_one_of_its_parts_is_incomplete(tmp_path, tensor, lost):
    tensor.save(tmp_path / "x.h5")
    forge(tmp_path / "x.h5", lambda file: file.pop(lost))
    with pytest.raises(CheckpointError, match=r"x\.h5: the tensor in it is incomplete"):
        Tensor.load(tmp_path / "x.h5")


@pytest.mark.parametrize("length", [0, 5])
def test_a_file_with_data_of_another_length_is_a_damaged_checkpoint(tmp_path, tensor, length):
    def cut(file):
        del file["data"]
        file["data"] = np.zeros(length)

    tensor.save(tmp_path / "x.h5")
    forge(tmp_path / "x.h5", cut)
    with pytest.raises(CheckpointError, match=r"x\.h5"):
        Tensor.load(tmp_path / "x.h5")
