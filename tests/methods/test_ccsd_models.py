"""Mean fields of models without atoms, and of molecules with a Hamiltonian of the user's own."""

import numpy as np
import pytest
from ccsd_oracles import TIGHT, WATER
from pyscf import ao2mo, cc, df, gto, scf

import tilewise
from tilewise.errors import CheckpointError, InputError

PACKINGS = ("8", "4", "1", "flat")


def stored(eri, packing):
    n = len(eri)
    return eri.reshape(n * n, n * n) if packing == "flat" else ao2mo.restore(packing, eri, n)


def model(hopping, eri, n_electrons, packing="8", overlap=None):
    """A converged RHF over functions that belong to no atom."""
    mol = gto.M(verbose=0)
    mol.nelectron, mol.incore_anyway = n_electrons, True
    mf = scf.RHF(mol)
    overlap = np.eye(len(hopping)) if overlap is None else overlap
    mf.get_hcore, mf.get_ovlp = (lambda *args: hopping), (lambda *args: overlap)
    mf._eri = stored(eri, packing)
    return mf.run(conv_tol=1e-12, conv_tol_grad=1e-8)


def hubbard(n_sites, repulsion, n_electrons, *, ring=True, noise=0.0, packing="8"):
    rng = np.random.default_rng(3)
    hopping = -np.eye(n_sites, k=1) - np.eye(n_sites, k=-1) + noise * np.diag(rng.standard_normal(n_sites))
    if ring:
        hopping[0, -1] = hopping[-1, 0] = -1.0
    eri = np.zeros((n_sites,) * 4)
    np.einsum("iiii->i", eri)[:] = repulsion
    return model(hopping, eri, n_electrons, packing)


def random_model(n, n_electrons, packing="8", seed=0):
    """Levels, and an interaction of 8-fold symmetry, at random, over functions that overlap."""
    rng = np.random.default_rng(seed)
    vectors = 0.1 * rng.standard_normal((n, n, n))
    vectors += vectors.transpose(0, 2, 1)
    eri = np.einsum("xpq,xrs->pqrs", vectors, vectors)
    noise = 0.05 * rng.standard_normal((n, n))
    return model(
        np.diag(np.arange(n)) + noise + noise.T, eri, n_electrons, packing, np.eye(n) + noise @ noise.T
    )


def pyscf_energy(mf, frozen=None):
    solver = cc.RCCSD(mf, frozen=frozen)
    solver.conv_tol, solver.conv_tol_normt, solver.max_cycle, solver.verbose = 1e-11, 1e-9, 200, 0
    solver.kernel()
    assert solver.converged
    return solver.e_tot


MODELS = {
    "ring of 6": lambda packing="8": hubbard(6, 2.0, 6, packing=packing),
    "ring of 10": lambda packing="8": hubbard(10, 1.0, 10, packing=packing),
    "chain of 8, uneven": lambda packing="8": hubbard(8, 2.0, 6, ring=False, noise=0.3, packing=packing),
    "random": lambda packing="8": random_model(7, 6, packing),
}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_has_pyscfs_energy(name, packing):
    mf = MODELS[name](packing)
    ccsd = tilewise.CCSD(mf, **TIGHT).run()
    assert ccsd.converged
    assert ccsd.e_hf == pytest.approx(mf.e_tot, abs=1e-12)
    assert ccsd.e_tot == pytest.approx(pyscf_energy(MODELS[name]("8")), abs=1e-8)


@pytest.mark.parametrize("frozen", [1, [0, 1], [0, 7]])
def test_orbitals_of_a_model_can_be_frozen(frozen):
    mf = MODELS["chain of 8, uneven"]()
    ccsd = tilewise.CCSD(mf, frozen=frozen, **TIGHT).run()
    assert ccsd.e_tot == pytest.approx(pyscf_energy(mf, frozen), abs=1e-8)
    with pytest.raises(InputError, match='frozen="auto" needs the atoms'):
        tilewise.CCSD(mf, frozen="auto")


@pytest.mark.parametrize(
    "settings", [{"cholesky": 1e-9}, {"on_the_fly": True}, {"policy": "lpt", "threads": 2}]
)
def test_a_model_can_be_treated_in_every_way(settings):
    mf = MODELS["random"]()
    assert tilewise.CCSD(mf, **settings, **TIGHT).run().e_tot == pytest.approx(pyscf_energy(mf), abs=1e-7)


def test_a_model_given_by_vectors_is_fitted():
    rng = np.random.default_rng(1)
    vectors = 0.05 * rng.standard_normal((12, 6, 6))
    vectors += vectors.transpose(0, 2, 1)
    mol = gto.M(verbose=0)
    mol.nelectron, mol.incore_anyway = 4, True
    mf = scf.RHF(mol).density_fit()
    levels = np.diag(np.arange(6.0))
    mf.get_hcore, mf.get_ovlp = (lambda *args: levels), (lambda *args: np.eye(6))
    high, low = np.tril_indices(6)
    mf.with_df = df.DF(mol)
    mf.with_df._cderi = np.ascontiguousarray(vectors[:, high, low])
    mf.run(conv_tol=1e-12)
    same = model(levels, np.einsum("xpq,xrs->pqrs", vectors, vectors), 4)
    assert tilewise.CCSD(mf, **TIGHT).run().e_tot == pytest.approx(pyscf_energy(same), abs=1e-8)


def test_a_plan_of_a_model_has_its_sizes():
    plan = tilewise.plan(MODELS["ring of 10"]())
    assert (plan.outline.occ, plan.outline.vir, plan.outline.n_electrons) == ((5,), (5,), 10)
    assert (plan.outline.title, plan.outline.basis) == ("model of 10 functions", "model")
    assert plan.outline.n_basis == 10 and plan.outline.basis_pairs == 55


def test_a_model_is_restarted_from_its_own_checkpoint(tmp_path):
    mf, path = MODELS["chain of 8, uneven"](), tmp_path / "model.h5"
    first = tilewise.CCSD(mf, checkpoint=path, **TIGHT).run()
    again = tilewise.CCSD(MODELS["chain of 8, uneven"](), restart=path, **TIGHT).run()
    assert len(again.iterations) < len(first.iterations) / 2
    assert again.e_tot == pytest.approx(first.e_tot, abs=1e-9)
    with pytest.raises(CheckpointError, match="model of 8 functions there, model of 6 functions here"):
        tilewise.CCSD(MODELS["ring of 6"](), restart=path).run()
    with pytest.raises(CheckpointError, match="another molecule: model of 8 functions there, O H H"):
        tilewise.CCSD(water(), restart=path).run()


def test_what_a_model_lacks_is_named():
    mf = MODELS["random"]()
    with pytest.raises(InputError, match=r"density fitting needs atoms.*cholesky"):
        tilewise.CCSD(mf, df=True)
    with pytest.raises(InputError, match=r"the molecule has no atoms.*mean field"):
        tilewise.plan(mf.mol)
    with pytest.raises(InputError, match="symmetry C2v was asked for"):
        tilewise.CCSD(mf, symmetry="C2v")
    mf._eri = mf._eri[:-1]
    with pytest.raises(InputError, match=r"mf._eri has 405 elements: for 7 functions 406 .*784.*2401"):
        tilewise.CCSD(mf).run()
    mf._eri = np.random.default_rng(0).standard_normal((7,) * 4)
    with pytest.raises(InputError, match=r"mf._eri lacks the symmetry"):
        tilewise.CCSD(mf).run()
    mf._eri = None
    with pytest.raises(InputError, match=r"has no two-electron integrals: set mf\._eri"):
        tilewise.CCSD(mf)


# Molecules


def water(symmetry=False, scale=None, field=(0.0, 0.0, 0.0), packing="8"):
    """Water in a field, or with two-electron integrals that are multiplied by `scale(mu nu|..)`."""
    mol = gto.M(atom=WATER, basis="6-31g", symmetry=symmetry, verbose=0)
    mf = scf.RHF(mol)
    core = scf.hf.get_hcore(mol) + np.einsum("x,xmn->mn", field, mol.intor("int1e_r"))
    mf.get_hcore = lambda *args: core
    if scale is not None:
        mf._eri = stored(mol.intor("int2e") * scale, packing)
    return mf.run(conv_tol=1e-12, conv_tol_grad=1e-8)


@pytest.mark.parametrize("field", [(0.05, 0, 0), (0.01, -0.02, 0.03)])
def test_a_field_is_felt_without_symmetry(field):
    mf = water(field=field)
    assert tilewise.CCSD(mf, **TIGHT).run().e_tot == pytest.approx(pyscf_energy(mf), abs=1e-8)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("settings", [{}, {"cholesky": 1e-9}])
def test_integrals_of_ones_own_are_used_for_a_molecule(packing, settings):
    mf = water(symmetry=True, scale=0.9, packing=packing)
    expected = pyscf_energy(water(scale=0.9))
    assert tilewise.CCSD(mf, **settings, **TIGHT).run().e_tot == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("field", "irreps", "remedy"),
    [
        ((0.01, 0, 0), "A1 and B1", "symmetry=False and run"),
        ((0, 0.01, 0), "A1 and B2", 'symmetry="Cs", which it keeps, or symmetry=False, and run'),
    ],
)
def test_a_field_that_breaks_the_symmetry_is_refused(field, irreps, remedy):
    mf = water(True, field=field)
    for calculate in (tilewise.CCSD, tilewise.plan, lambda mf: tilewise.CCSD(mf, df=True)):
        with pytest.raises(
            InputError, match=rf"breaks the symmetry C2v: .*[0-9]e-0[0-9] between .* {irreps}"
        ) as e:
            calculate(mf)
        assert remedy in str(e.value)


def test_what_the_refusal_of_a_field_advises_works():
    kept, none = water("Cs", field=(0, 0.01, 0)), water(field=(0, 0.01, 0))
    ccsd = tilewise.CCSD(kept, **TIGHT).run()
    assert ccsd.reference.outline.group.name == "Cs"
    assert ccsd.e_tot == pytest.approx(pyscf_energy(none), abs=1e-8)


def test_a_field_that_keeps_the_symmetry_is_felt():
    mf = water(True, field=(0, 0, 0.05))
    ccsd = tilewise.CCSD(mf, **TIGHT).run()
    assert ccsd.reference.outline.group.name == "C2v"
    assert ccsd.e_tot == pytest.approx(pyscf_energy(water(field=(0, 0, 0.05))), abs=1e-8)


def test_charges_beside_a_symmetric_molecule_are_refused():
    from pyscf import qmmm

    mol = gto.M(atom=WATER, basis="6-31g", symmetry=True, verbose=0)
    with pytest.raises(InputError, match="breaks the symmetry C2v"):
        tilewise.CCSD(qmmm.mm_charge(scf.RHF(mol), [(1.0, 2.0, 3.0)], [0.5]).run())
    on_the_axis = qmmm.mm_charge(scf.RHF(mol), [(0.0, 0.0, 3.0)], [0.5]).run(conv_tol=1e-12)
    assert tilewise.CCSD(on_the_axis, **TIGHT).run().e_tot == pytest.approx(
        pyscf_energy(on_the_axis), abs=1e-8
    )


def test_integrals_that_break_the_symmetry_are_refused():
    scale = np.ones((13,) * 4)
    scale[:, :, 9:11, 9:11] = scale[9:11, 9:11] = 0.99  # those of one of the two hydrogen atoms
    with pytest.raises(InputError, match=r"breaks the symmetry C2v: .*mf\._eri"):
        tilewise.CCSD(water(True, scale=scale))
    mf = water(scale=scale)
    assert tilewise.CCSD(mf, **TIGHT).run().e_tot == pytest.approx(pyscf_energy(mf), abs=1e-8)


def test_periodic_systems_are_called_periodic():
    from pyscf.pbc import gto as pbc_gto
    from pyscf.pbc import scf as pbc_scf

    cell = pbc_gto.M(atom="He 0 0 0", a=np.eye(3) * 4, basis="sto-3g", verbose=0)
    for mf in (
        pbc_scf.RHF(cell),
        pbc_scf.KRHF(cell, cell.make_kpts([2, 1, 1])),
        pbc_scf.UHF(cell),
        scf.RHF(cell),
    ):
        for calculate in (tilewise.CCSD, tilewise.plan):
            with pytest.raises(InputError, match="is periodic"):
                calculate(mf)
    with pytest.raises(InputError, match="Cell is periodic"):
        tilewise.plan(cell)
