"""Arguments of spaces, layouts, tensors and contractions that cannot be meant: one sentence names them."""

import numpy as np
import pytest

import tilewise
from tilewise import Layout, Space, Tensor, contract
from tilewise.errors import InputError

OCC, VIR = Space.spatial("o", [2, 1]), Space.spatial("v", [2, 2])
SPACES = {"ij": OCC, "abcd": VIR}
LAYOUT = Layout.parse("ij|ab", SPACES)
TENSOR = Tensor.random(LAYOUT)

WRONG = {
    "counts that are one number": (
        lambda: Space.spatial("o", 3),
        "counts=3: expected a list",
    ),
    "counts that are a text": (lambda: Space.spatial("o", "31"), "count='3': count must be a whole number"),
    "half an orbital": (lambda: Space.spatial("o", [1.5, 1]), "count=1.5: count must be a whole number"),
    "no orbital at all": (lambda: Space.spin_orbital("o", [None], [1]), "count=None"),
    "more orbitals than there are": (lambda: Space.spatial("o", [10**9]), "more than 1000000 orbitals"),
    "half a tile": (lambda: Space.spatial("o", [1], tile=2.5), "tile=2.5: tile must be a whole number"),
    "a tile in words": (lambda: Space.spatial("o", [1], tile="x"), "tile='x'"),
    "a space without a name": (lambda: Space.spatial(None, [1]), "name=None: name must be a text"),
    "a form that is a number": (lambda: Layout.parse(3, SPACES), "form=3: form must be a text"),
    "spaces without letters": (lambda: Layout.parse("i|j", OCC), "expected letters with their space"),
    "counts for a space": (lambda: Layout.parse("i|j", {"ij": [1]}), "expected letters with their space"),
    "signs that are a number": (lambda: Layout.parse("i|j", SPACES, 2), "signs=2: signs must be a text"),
    "a tensor named by a number": (lambda: Tensor(LAYOUT, name=7), "name=7: name must be a text"),
    "a list of elements": (lambda: Tensor(LAYOUT, [1, 2]), "contiguous float64 vector"),
    "a negative seed": (lambda: Tensor.random(LAYOUT, -1), "seed=-1: expected a whole number from 0 up"),
    "an expression that is a number": (
        lambda: contract(5, TENSOR),
        "expression=5: expression must be a text",
    ),
    "an array for a tensor": (lambda: contract("ij->ji", np.ones((2, 2))), "expected a Tensor, not ndarray"),
    "a factor in words": (
        lambda: contract("ijab->abij", TENSOR, alpha="2"),
        "alpha='2': alpha must be a finite",
    ),
    "a factor that is no number": (lambda: contract("ijab->abij", TENSOR, alpha=np.nan), "alpha=nan"),
    "an executor that is none": (lambda: contract("ijab->abij", TENSOR, executor=None), "executor=None"),
    "a machine that is a number": (lambda: tilewise.find_machine(8), "machine=8: machine must be a text"),
    "a machine of hundreds of letters": (lambda: tilewise.find_machine("x" * 5000), "unknown machine"),
    "water without end": (lambda: tilewise.orbitals_named("water-" + "9" * 5000), "unknown molecule"),
    "orbitals that are a number": (lambda: tilewise.orbitals_named(10), "name=10: name must be a text"),
    "a method in a list": (lambda: tilewise.tce_routines(["ccsd"]), r"method=\['ccsd'\]: method must be"),
    "a file that is a number": (lambda: tilewise.read_fcidump(3), "path=3: path must be the path of a file"),
}


@pytest.mark.parametrize(("call", "words"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_refused_by_name(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_whole_numbers_of_numpy_are_whole_numbers():
    space = Space.spatial("o", np.array([2, 1]), tile=np.int64(2))
    assert (space.counts, space.tile) == (((2, 1),), 2)


def half_stored() -> Tensor:
    return Tensor.random(Layout.parse("ab+-||cd+-", SPACES), 3, "V")


def test_a_tensor_stored_by_half_is_not_made_of_dense_elements():
    tensor = half_stored()
    with pytest.raises(InputError, match="stored by half is made by an equation"):
        Tensor.from_dense(tensor.to_dense(), tensor.layout)


def test_a_tensor_stored_by_half_comes_back_from_its_file(tmp_path):
    tensor = half_stored()
    tensor.save(tmp_path / "v.h5")
    again = Tensor.load(tmp_path / "v.h5")
    assert again.layout == tensor.layout and again.layout.half
    assert np.array_equal(again.to_dense(), tensor.to_dense())


def test_the_norm_of_a_tensor_stored_by_half_counts_both_halves():
    tensor = half_stored()
    assert np.isclose(tensor.norm(), np.linalg.norm(tensor.to_dense()))
