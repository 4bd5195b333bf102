"""FCIDUMP files with integrals for each spin, as Molpro writes them, against PySCF's UCCSD."""

import numpy as np
import pytest
from open_shells import TIGHT, broken_symmetry, mean_field, pyscf_ccsd
from pyscf import ao2mo

import tilewise
from tilewise.chem.fcidump import MOLPRO_NUMBERS
from tilewise.errors import InputError
from tilewise.symmetry.groups import group_named

SECTIONS = ("aa", "bb", "ab", "a", "b")
END = "0.0 0 0 0 0\n"


def ordered(mf, group):
    """Alpha and beta orbitals by irrep, then energy, and the irrep of each in Molpro's numbering."""
    if group == "C1":
        return mf.mo_coeff, np.ones(mf.mol.nao, int)
    orders = [np.lexsort((energy, own.orbsym)) for energy, own in zip(mf.mo_energy, mf.mo_coeff, strict=True)]
    labels = [np.asarray(own.orbsym)[order] for own, order in zip(mf.mo_coeff, orders, strict=True)]
    assert (labels[0] == labels[1]).all()
    numbers = np.array(MOLPRO_NUMBERS[group_named(group).name])[labels[0]]
    return [c[:, order] for c, order in zip(mf.mo_coeff, orders, strict=True)], numbers


def sections(mf, orbitals):
    """The text of each section."""
    alpha, beta = map(np.asarray, orbitals)
    high, low = np.tril_indices(alpha.shape[1])

    def two(one, other, same):
        values = ao2mo.general(mf.mol, (one, one, other, other), compact=True)
        return "".join(
            f"{values[k, m]:.16e} {high[k] + 1} {low[k] + 1} {high[m] + 1} {low[m] + 1}\n"
            for k in range(len(high))
            for m in range(k + 1 if same else len(high))
            if abs(values[k, m]) > 1e-14
        )

    def one(own):
        h = own.T @ mf.get_hcore() @ own
        rows = zip(h[high, low], high + 1, low + 1, strict=True)
        return "".join(f"{value:.16e} {p} {q} 0 0\n" for value, p, q in rows if abs(value) > 1e-14)

    texts = two(alpha, alpha, True), two(beta, beta, True), two(alpha, beta, False), one(alpha), one(beta)
    return dict(zip(SECTIONS, texts, strict=True))


def written(mf, path, group="C1", order=SECTIONS, flag="IUHF=1"):
    orbitals, labels = ordered(mf, group)
    n, mol = mf.mol.nao, mf.mol
    head = f"&FCI NORB={n},NELEC={mol.nelectron},MS2={mol.spin},\n ORBSYM={','.join(map(str, labels))},\n"
    texts = sections(mf, orbitals)
    body = "".join(texts[name] + END for name in order) + f"{mol.energy_nuc():.16e} 0 0 0 0\n"
    path.write_text(f"{head} ISYM=1,{flag},\n&END\n{body}")
    return path


@pytest.mark.parametrize(("group", "frozen", "flag"), [("C2v", 1, "IUHF=1"), ("C1", None, "UHF=.TRUE.")])
def test_energy_and_amplitudes_are_those_of_pyscf(tmp_path, group, frozen, flag):
    mf = mean_field("NH2", "6-31g", 1, "uhf")
    reference = tilewise.read_fcidump(written(mf, tmp_path / "dump", group, flag=flag), frozen)
    assert reference.kind == "uhf" and reference.outline.group.name == group
    found, expected = tilewise.CCSD(reference, **TIGHT).run(), pyscf_ccsd(mf, frozen)
    assert abs(found.e_hf - mf.e_tot) < 1e-9 and abs(found.e_corr - expected.e_corr) < 1e-8
    assert found.s_squared is None  # the file does not have <alpha|beta>
    if group == "C1":  # in PySCF's own order
        assert np.abs(found.to_pyscf()[1][1] - expected.t2[1]).max() < 1e-6


def test_no_beta_electron_and_a_broken_symmetry_singlet(tmp_path):
    for mf in (mean_field("He", "cc-pvtz", 2, "uhf"), broken_symmetry("H 0 0 0; H 0 0 2.5", "6-31g")):
        found = tilewise.CCSD(tilewise.read_fcidump(written(mf, tmp_path / "dump")), **TIGHT).run()
        assert abs(found.e_hf - mf.e_tot) < 1e-9 and abs(found.e_corr - pyscf_ccsd(mf).e_corr) < 1e-8


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (("aa", "ab", "bb", "a", "b"), r"is given again .* 8 equal permutations"),
        (("bb", "aa", "ab", "a", "b"), r"no determinant of its orbitals solves the UHF equations"),
        (("aa", "bb", "a", "b"), r"sections .aa.aa.*lines without orbitals: 5"),
        (("a", "b", "aa", "bb", "ab"), r"are read in the sections"),
    ],
)
def test_other_sections_are_refused(tmp_path, order, message):
    path = written(mean_field("OH", "6-31g", 1, "uhf"), tmp_path / "dump", order=order)
    with pytest.raises(InputError, match=message):
        tilewise.read_fcidump(path)
