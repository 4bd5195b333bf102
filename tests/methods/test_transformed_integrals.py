"""Integrals over orbitals, all six kinds, against PySCF's own transformation (ao2mo)."""

from functools import lru_cache

import numpy as np
import pytest
from pyscf import ao2mo, gto, scf

import tilewise
from tilewise import Tensor
from tilewise.chem import pages, transform
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.methods.ccsd import METHOD
from tilewise.methods.integrals import constants
from tilewise.methods.plan import plan_outline
from tilewise.methods.uccsd import METHOD as OPEN_METHOD

KINDS = ("vvvv", "ovvv", "oovv", "ovov", "ooov", "oooo")
WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
RING = "; ".join(
    f"{s} {r * np.cos(k * np.pi / 3):.12f} {r * np.sin(k * np.pi / 3):.12f} 0"
    for s, r in (("C", 1.3915), ("H", 2.4715))
    for k in range(6)
)
CASES = {
    "planar": (WATER, "cc-pvdz", {}),
    "benzene": (RING, "sto-3g", {}),
    "linear": ("N 0 0 0.55; N 0 0 -0.55", "cc-pvdz", {}),
    "an atom": ("Ne 0 0 0", "cc-pvtz", {}),
    "not planar, C2": ("O 0 0.7 0; O 0 -0.7 0; H 0.8 0.9 0.4; H -0.8 -0.9 0.4", "6-31g*", {}),
    "not planar, D2h": (
        "; ".join(f"H {x} {y} {z}" for x in (1, -1) for y in (1.2, -1.2) for z in (1.5, -1.5)),
        "cc-pvdz",
        {},
    ),
    "no symmetry": ("O 0 0 0; H 0.9 0.1 0.2; F -0.3 1.4 0.1", "6-31g", {}),
    "cartesian functions": (WATER, {"O": "cc-pvtz", "H": "sto-3g"}, {"cart": True}),
    "a core potential": ("H 0 0 0; I 0 0 1.6", "lanl2dz", {"ecp": {"I": "lanl2dz"}}),
    "ghost atoms": ("He 0 0 1; ghost-He 0 0 -1; ghost-He 0 1 0", "cc-pvdz", {}),
}
TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]


def molecule(name, turned=False, **options):
    atoms, basis, own = CASES[name]
    mol = gto.M(atom=atoms, basis=basis, symmetry=True, verbose=0, **own, **options)
    if turned:
        positions = mol.atom_coords() @ TURN
        atoms = [(mol.atom_symbol(k), place) for k, place in enumerate(positions)]
        mol = gto.M(atom=atoms, unit="B", basis=basis, symmetry=True, verbose=0, **own, **options)
    return mol


@lru_cache(maxsize=1)  # kept and direct ones follow each other
def solved_once(name, turned):
    """The mean field, and all integrals over its orbitals."""
    mf = scf.RHF(molecule(name, turned))
    mf.conv_tol = 1e-11
    mf.kernel()
    whole = ao2mo.kernel(mf.mol, mf.mo_coeff, compact=False)
    return mf, np.asarray(whole).reshape((mf.mo_coeff.shape[1],) * 4)


def filled(reference, method, threads):
    """All plain constants of a method, and the program whose layouts they have."""
    plan = plan_outline(reference.outline, method=method, threads=threads, tile=5)
    return constants(plan.equation, plan.program, reference, threads), plan.program


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "direct"])
@pytest.mark.parametrize("turned", [False, True], ids=["aligned", "askew"])
@pytest.mark.parametrize("name", CASES)
def test_integrals_are_those_of_ao2mo(name, turned, kept):
    solved, whole = solved_once(name, turned)
    mf = solved.copy()
    if not kept:
        mf._eri, mf.max_memory = None, 0
    reference = from_mean_field(mf, frozen=1 if name in ("planar", "linear") else None)
    found, program = filled(reference, METHOD, 2)
    once, _ = filled(reference, METHOD, 1)
    n_occ, order = reference.outline.n_occ, reference.order
    orbitals = {"o": order[:n_occ], "v": order[n_occ:]}
    for kind in KINDS:
        expected = whole[np.ix_(*(orbitals[letter] for letter in kind))]
        assert np.abs(Tensor(program.layouts[kind], found[kind]).to_dense() - expected).max() < 1e-10
        assert np.array_equal(found[kind], once[kind])  # whatever the number of threads
    fock = reference.integrals.fock(order)
    assert np.abs(reference.fock_rest(fock)[:n_occ, n_occ:] - found_fock(found, program)).max() < 2e-9


@pytest.mark.parametrize("kept", [False, True])
def test_little_memory_gives_the_same_integrals(monkeypatch, kept):
    mf = scf.RHF(molecule("no symmetry")).run(conv_tol=1e-11)
    if not kept:
        mf._eri, mf.max_memory = None, 0
    reference = from_mean_field(mf, frozen=1)
    at_once, _ = filled(reference, METHOD, 2)
    monkeypatch.setattr(transform, "LEAST_HALF", 0)
    monkeypatch.setattr(pages, "WAVE", 64)
    monkeypatch.setattr(pages, "LAST_WAVE", 32)
    for threads in (1, 2):
        in_parts, _ = filled(reference, METHOD, threads)
        assert all(np.abs(in_parts[name] - values).max() < 1e-12 for name, values in at_once.items())


def found_fock(found, program):
    return Tensor(program.layouts["f"], found["f"]).to_dense()


@pytest.mark.parametrize("kind", ["uhf", "rohf", "rhf"])
@pytest.mark.parametrize("frozen", [None, 1])
def test_three_spin_sets_are_those_of_ao2mo(kind, frozen):
    spin = 0 if kind == "rhf" else 1
    atoms = WATER if kind == "rhf" else "N 0 0 0.1; H 0 0.8 -0.5; H 0 -0.8 -0.5"
    mol = gto.M(atom=atoms, basis="6-31g*", symmetry=True, spin=spin, verbose=0)
    mf = {"uhf": scf.UHF, "rohf": scf.ROHF, "rhf": scf.RHF}[kind](mol)
    mf.conv_tol = 1e-11
    mf.kernel()
    reference = from_mean_field(mf, frozen=frozen)
    found, program = filled(reference, OPEN_METHOD, 2)
    once, _ = filled(reference, OPEN_METHOD, 1)
    coefficients = mf.mo_coeff if kind == "uhf" else [mf.mo_coeff] * 2
    sides = [c[:, own.order] for c, own in zip(coefficients, reference.by_spin, strict=True)]
    counts = [(own.outline.n_occ, own.outline.n_vir) for own in reference.by_spin]
    plain = {"".join(s.name for s in program.layouts[key].spaces): key for key in found}
    assert set(KINDS) <= set(plain)
    for name in KINDS:
        key = plain[name]
        dense = Tensor(program.layouts[key], found[key]).to_dense()
        assert np.array_equal(found[key], once[key])
        for one in (0, 1):
            for other in (0, 1):
                blocks, place = [], []
                for letter, s in zip(name, (one, one, other, other), strict=True):
                    n_occ, n_vir = counts[s]
                    first = 0 if s == 0 else counts[0][0 if letter == "o" else 1]
                    size, start = (n_occ, 0) if letter == "o" else (n_vir, n_occ)
                    blocks.append(sides[s][:, start : start + size])
                    place.append(slice(first, first + size))
                shape = [block.shape[1] for block in blocks]
                expected = np.asarray(ao2mo.kernel(mol, blocks, compact=False)).reshape(shape)
                assert np.abs(dense[tuple(place)] - expected).max(initial=0.0) < 1e-10
        assert not dense[
            : counts[0][0 if name[0] == "o" else 1], counts[0][0 if name[1] == "o" else 1] :
        ].any()


def test_an_energy_is_the_same_askew_and_without_kept_integrals():
    energies = []
    for turned in (False, True):
        for kept in (True, False):
            mf = scf.RHF(molecule("planar", turned))
            mf.conv_tol = 1e-12
            mf.kernel()
            if not kept:
                mf._eri, mf.max_memory = None, 0
            energies.append(tilewise.CCSD(mf, conv_tol=1e-11, conv_tol_residual=1e-9, threads=2).run().e_corr)
    assert np.ptp(energies) < 1e-9
