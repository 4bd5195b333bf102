"""Restart files with a right digest and wrong contents: refused in a sentence, or without harm."""

import io

import h5py
import numpy as np
import pytest
from ccsd_oracles import mean_field, pyscf_ccsd
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewise
from tilewise.errors import CheckpointError, ConvergenceError
from tilewise.methods.checkpoint import FORMAT
from tilewise.sealed import HEADER, digest

MOLECULE = "hydrogen fluoride, minimal"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("forged") / "good.h5"
    tilewise.CCSD(mean_field(MOLECULE), checkpoint=path, max_cycle=3).run()
    return path.read_bytes()[HEADER:]


def forged(image, change):
    """The file after a change of its contents, with the digest that belongs to it."""
    buffer = io.BytesIO(image)
    with h5py.File(buffer, "r+") as file:
        change(file)
    content = buffer.getvalue()
    header = f"{FORMAT}\n{digest(content)}\n".encode()
    return header.ljust(HEADER, b"\0") + content


def items(image):
    """(path of an object, name of its attribute or None for the object itself) of all that there is."""
    found = []

    def note(path, thing):
        found.extend((path, name) for name in thing.attrs)
        found.append((path, None))

    with h5py.File(io.BytesIO(image)) as file:
        found.extend(("/", name) for name in file.attrs)
        file.visititems(note)
    return found


def number_arrays(draw):
    shape = draw(st.sampled_from([(), (0,), (1,), (3,), (2, 2), (6, 6), (0, 10**9), (1, 2, 3)]))
    value = draw(st.sampled_from([0, 1, -1, 10**6, 10**18, 0.5, np.nan, np.inf, 1e300]))
    return np.full(shape, value) if 0 not in shape else np.zeros(shape, draw(st.sampled_from(["i8", "f8"])))


@st.composite
def replacements(draw):
    """Something else to stand in the place of an array, a number or a text."""
    return draw(
        st.one_of(
            st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=20),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(),
            st.just(h5py.Empty("f8")),
            st.just(np.array([b"a", b"bc"])),
            st.builds(number_arrays, st.just(draw)),
        )
    )


@st.composite
def warped(draw, value):
    """The same numbers in another shape, order or size."""
    array = np.array(value)
    warps = [
        lambda a: a[..., :-1],
        lambda a: a[:-1],
        lambda a: a[None],
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: -a,
        lambda a: a * 1000,
        lambda a: np.concatenate([a, a]),
        lambda a: a.astype("f4"),
        lambda a: a.astype("c16"),
        lambda a: a.astype("S8"),
    ]
    return draw(st.sampled_from(warps))(array)


@st.composite
def changes(draw, image):
    path, attribute = draw(st.sampled_from(items(image)))

    def change(file):
        place, key = (file[path].attrs, attribute) if attribute else (file, path)
        kind = draw(st.sampled_from(["delete", "replace", "warp", "group", "huge"]))
        old = place[key]
        is_array = isinstance(old, h5py.Dataset | np.ndarray) and np.ndim(old) > 0
        new = draw(warped(old[()])) if kind == "warp" and is_array else draw(replacements())
        del place[key]
        if kind == "huge" and not attribute:
            file.create_dataset(path, shape=(10**6, 10**6), dtype="f8", chunks=(1000, 1000))
        elif kind == "group" and not attribute:
            file.create_group(path)
        elif kind != "delete":
            place[key] = new

    return change


def assert_refused_or_right(path, **options):
    try:
        run = tilewise.CCSD(mean_field(MOLECULE), restart=path, max_cycle=100, **options).run()
    except CheckpointError as error:
        text = str(error)
        assert text.startswith(f"{path}: ") and "\n" not in text and "BytesIO" not in text
        return
    except ConvergenceError:
        return  # amplitudes that are too large diverge, as they would from any other source
    if run.converged:
        assert run.e_corr == pytest.approx(pyscf_ccsd(MOLECULE).e_corr, abs=1e-7)


@settings(max_examples=100)
@given(data=st.data())
def test_whatever_is_changed_in_a_file_is_refused_or_does_no_harm(good, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "changed.h5"
    path.write_bytes(forged(good, data.draw(changes(good))))
    assert_refused_or_right(path)


def replace(path, value):
    def change(file):
        del file[path]
        file[path] = value

    return change


def set_attribute(path, name, value):
    return lambda file: file[path].attrs.__setitem__(name, value)


KNOWN = {
    "orbitals over other functions": replace("orbitals/occ", np.zeros((3, 5))),
    "fewer positions than atoms": replace("orbitals/positions", np.zeros((1, 3))),
    "positions in a line": replace("orbitals/positions", np.zeros(6)),
    "an overlap that is not square": replace("orbitals/overlap", np.zeros((6, 5))),
    "an overlap that is not finite": replace("orbitals/overlap", np.full((6, 6), np.nan)),
    "fewer numbers than orbitals": replace("orbitals/occ_numbers", np.arange(2)),
    "numbers in words": replace("orbitals/vir_numbers", np.array([b"one"])),
    "more orbitals in the amplitudes": set_attribute("amplitudes/t/rows/0", "counts", [[10**15, 0, 0, 0]]),
    "another space": set_attribute("amplitudes/t/rows/0", "name", "q"),
    "no tile": set_attribute("amplitudes/t/rows/0", "tile", 0),
    "a text for the tile": set_attribute("amplitudes/t/rows/0", "tile", "wide"),
    "complex counts": set_attribute("amplitudes/t/rows/0", "counts", [[1j, 0, 0, 0]]),
    "three irreps": set_attribute("amplitudes/t/rows/0", "counts", [[1, 0, 0]]),
    "other indices": lambda file: (
        file.move("amplitudes/T", "amplitudes/x") or file.copy("amplitudes/t", "amplitudes/T")
    ),
    "no amplitudes": lambda file: file.pop("amplitudes"),
    "another kind": set_attribute("orbitals", "kind", "atoms\nand more"),
    "an energy in words": set_attribute("/", "e_corr", "low"),
    "a complex energy": set_attribute("/", "e_corr", 1j),
    "an energy that is no number": set_attribute("/", "e_corr", np.nan),
    "half an iteration": set_attribute("/", "iteration", 1.5),
    "two iterations": set_attribute("/", "iteration", [1, 2]),
    "another method, in two lines": set_attribute("/", "method", "cc\nsdt"),
}


@pytest.mark.parametrize("change", KNOWN.values(), ids=KNOWN)
def test_contents_that_do_not_fit_together_are_refused(good, tmp_path, change):
    path = tmp_path / "forged.h5"
    path.write_bytes(forged(good, change))
    with pytest.raises(CheckpointError) as caught:
        tilewise.CCSD(mean_field(MOLECULE), restart=path).run()
    text = str(caught.value)
    assert text.startswith(f"{path}: ") and "\n" not in text and "BytesIO" not in text


@pytest.mark.parametrize("name", ["t", "T"])
@pytest.mark.parametrize("size", [1e60, 1e110, 1e300])
def test_amplitudes_that_are_too_large_diverge(good, tmp_path, name, size):
    path = tmp_path / "large.h5"
    path.write_bytes(forged(good, lambda file: file[f"amplitudes/{name}/data"].write_direct(
        np.full(file[f"amplitudes/{name}/data"].shape, size))))  # fmt: skip
    with pytest.raises(ConvergenceError, match="the amplitudes diverge in iteration"):
        tilewise.CCSD(mean_field(MOLECULE), restart=path).run()


def test_an_array_that_claims_to_be_larger_than_its_file_is_not_made(good, tmp_path):
    def claim(file):
        del file["amplitudes/T/data"]
        file.create_dataset("amplitudes/T/data", shape=(10**13,), dtype="f8", chunks=(1000,))

    path = tmp_path / "huge.h5"
    path.write_bytes(forged(good, claim))
    with pytest.raises(CheckpointError, match="larger than the file"):
        tilewise.CCSD(mean_field(MOLECULE), restart=path).run()
