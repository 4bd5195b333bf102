"""The largest abelian group of molecules of every point group, however they are turned."""

from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tilewise
from tilewise.chem.pyscf_molecule import build_molecule
from tilewise.chem.pyscf_source import outline, run_scf

GOLDEN = (1 + 5**0.5) / 2


def ring(n, radius, height=0.0, turned=0.0):
    angles = 2 * np.pi * np.arange(n) / n + turned
    return np.stack([radius * np.cos(angles), radius * np.sin(angles), np.full(n, height)], axis=1)


def all_signs(*points):
    """The points with their coordinates turned in a cycle, in all signs."""
    found = {
        tuple(np.round(np.roll(point, k) * signs, 9) + 0.0)
        for point in points
        for k in range(3)
        for signs in product((1, -1), repeat=3)
    }
    return np.array(sorted(found))


def orbit(group, point):
    """All images of a point by the rotations of a group."""
    return Rotation.create_group(group).apply(point)


def pair_of_rings(n, turned):
    return np.concatenate([ring(n, 1.0, 0.8), ring(n, 1.0, -0.8, turned)])


SHAPES = {
    "Ih, icosahedron": (all_signs((0, 1, GOLDEN)), "D2h"),
    "Ih, dodecahedron": (all_signs((1, 1, 1), (0, 1 / GOLDEN, GOLDEN)), "D2h"),
    "Ih, C60": (
        all_signs((0, 1, 3 * GOLDEN), (1, 2 + GOLDEN, 2 * GOLDEN), (GOLDEN, 2, 2 * GOLDEN + 1)),
        "D2h",
    ),
    "I": (orbit("I", (0.3, 0.7, 3.0)), "D2"),
    "Oh, octahedron": (all_signs((0, 0, 1)), "D2h"),
    "Oh, cube": (all_signs((1, 1, 1)), "D2h"),
    "O": (orbit("O", (0.3, 0.7, 1.5)), "D2"),
    "Th": (all_signs((0, 0.5, 1.3)), "D2h"),
    "Td": (np.array([(1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1)]), "D2 or C2v"),
    "T": (orbit("T", (0.4, 0.9, 1.4)), "D2"),
    "D6h": (ring(6, 1.4), "D2h"),
    "D5h": (ring(5, 1.2), "C2v"),
    "D4h": (ring(4, 1.0), "D2h"),
    "D3h": (ring(3, 1.0), "C2v"),
    "D6d": (pair_of_rings(6, np.pi / 6), "D2 or C2v"),
    "D5d": (pair_of_rings(5, np.pi / 5), "C2h"),
    "D4d": (pair_of_rings(4, np.pi / 4), "D2 or C2v"),
    "D3d": (pair_of_rings(3, np.pi / 3), "C2h"),
    "D6": (pair_of_rings(6, 0.2), "D2"),
    "D3": (pair_of_rings(3, 0.4), "C2"),
    "C6v": (np.concatenate([ring(6, 1.0), [(0, 0, 1.2)]]), "C2v"),
    "C3v": (np.concatenate([ring(3, 1.0), [(0, 0, 1.2)]]), "Cs"),
    "C6h": (np.concatenate([ring(6, 1.0), ring(6, 1.7, 0.0, 0.3)]), "C2h"),
    "C3h": (np.concatenate([ring(3, 1.0), ring(3, 1.7, 0.0, 0.3)]), "Cs"),
    "S6": (
        np.concatenate(
            [pair_of_rings(3, np.pi / 3), ring(3, 1.5, 0.3, 0.2), ring(3, 1.5, -0.3, 0.2 + np.pi / 3)]
        ),
        "Ci",
    ),
}


def helium(points, seed=None, size=1.5, digits=6):
    """Atoms at these points, turned and moved at random, with as many digits as a file has."""
    points = size * np.asarray(points)
    if seed is not None:
        turn = Rotation.random(random_state=seed).as_matrix()
        points = points @ turn.T + np.random.default_rng(seed).uniform(-1, 1, 3)
    return "; ".join(f"He {x:.{digits}f} {y:.{digits}f} {z:.{digits}f}" for x, y, z in points)


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_every_point_group_gives_its_largest_abelian_subgroup(name, seed):
    points, expected = SHAPES[name]
    assert build_molecule(helium(points, seed), "sto-3g").groupname in expected.split(" or ")


@pytest.mark.parametrize("name", ["Ih, icosahedron", "Th", "I"])
def test_a_wanted_group_is_found_by_other_axes_too(name):
    points, largest = SHAPES[name]
    assert build_molecule(helium(points, 3), "sto-3g", symmetry=largest).groupname == largest
    assert build_molecule(helium(points, 3), "sto-3g", symmetry="C2").groupname in ("C2", largest)


def test_a_wanted_group_is_preferred_to_a_larger_one():
    twisted = helium([(1, 0, 1), (-1, 0, 1), (0, 1, -1), (0, -1, -1)], 4)
    assert build_molecule(twisted, "sto-3g").groupname in ("D2", "C2v")
    for wanted in ("D2", "C2v", "Cs"):
        assert wanted in outline(build_molecule(twisted, "6-31g", symmetry=wanted)).group.subgroups


@pytest.mark.parametrize("name", ["Ih, icosahedron", "Th", "D5d", "D3d"])
def test_energies_do_not_depend_on_the_axes(name):
    text, (_, group) = helium(SHAPES[name][0], 5), SHAPES[name]
    found = tilewise.CCSD(run_scf(build_molecule(text, "6-31g"))).run()
    assert found.reference.outline.group.name == group
    plain = tilewise.CCSD(run_scf(build_molecule(text, "6-31g", symmetry="C1"))).run()
    assert found.e_tot == pytest.approx(plain.e_tot, abs=1e-7)
