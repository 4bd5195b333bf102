"""The method of docs/new-method.md, as it stands there: linearized CCD."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from pyscf import gto, scf

import tilewise
from tilewise import policies
from tilewise.errors import InputError
from tilewise.methods.method import METHODS, _find_methods, method_named

PAGE = Path(__file__).parents[2] / "docs" / "new-method.md"
CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def lccd():
    assert len([line for line in CODE[0].splitlines() if line.strip()]) < 30
    names: dict = {"__name__": "lccd"}
    exec(CODE[0], names)
    return names["LCCD"]


def spin_orbital_lccd(mf):
    """The energy by the equations over spin orbitals, with dense arrays."""
    mo, n_occ = mf.mo_coeff, mf.mol.nelectron // 2
    n = mo.shape[1]
    eri = np.einsum("pi,qj,pqrs,rk,sl->ijkl", mo, mo, mf.mol.intor("int2e"), mo, mo, optimize=True)
    order = [*range(n_occ), *range(n_occ), *range(n_occ, n), *range(n_occ, n)]
    spin = np.repeat([0, 1, 0, 1], [n_occ, n_occ, n - n_occ, n - n_occ])
    full = eri[np.ix_(order, order, order, order)] * (spin[:, None] == spin)[:, :, None, None]
    full = (full * (spin[:, None] == spin)).transpose(0, 2, 1, 3)
    g = full - full.transpose(0, 1, 3, 2)  # <pq||rs>
    o, v, e = slice(0, 2 * n_occ), slice(2 * n_occ, None), np.asarray(mf.mo_energy)[order]
    gap = e[o, None, None, None] + e[o, None, None] - e[v, None] - e[v]
    t = g[o, o, v, v] / gap
    for _ in range(60):
        ring = np.einsum("kbcj,ikac->ijab", g[o, v, v, o], t, optimize=True)
        ring = ring - ring.transpose(1, 0, 2, 3)
        ring = ring - ring.transpose(0, 1, 3, 2)
        r = g[o, o, v, v] + 0.5 * np.einsum("abcd,ijcd->ijab", g[v, v, v, v], t, optimize=True)
        r = r + 0.5 * np.einsum("klij,klab->ijab", g[o, o, o, o], t, optimize=True) + ring
        t = r / gap
    return 0.25 * (g[o, o, v, v] * t).sum()


def test_the_page_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "page"}
    for code in CODE:
        exec(code, names)
    assert names["lccd"].converged and names["again"].converged
    assert len(names["again"].iterations) <= 3
    assert abs(names["again"].e_corr - names["lccd"].e_corr) < 1e-8


@pytest.mark.parametrize("policy", policies)
def test_every_policy_gives_the_energy_of_the_spin_orbital_equations(lccd, policy):
    mol = gto.M(atom="Li 0 0 0; H 0 0 1.6", basis="6-31g", symmetry=True, verbose=0)
    mf = scf.RHF(mol).run(conv_tol=1e-12)
    found = lccd(mf, threads=2, policy=policy, conv_tol=1e-10, conv_tol_residual=1e-8).run()
    assert found.converged and abs(found.e_corr - spin_orbital_lccd(mf)) < 1e-8


def test_a_checkpoint_of_another_method_is_refused(lccd, tmp_path):
    mol = gto.M(atom="He 0 0 0", basis="6-31g", verbose=0)
    mf = scf.RHF(mol).run()
    tilewise.CCSD(mf, checkpoint=tmp_path / "ccsd.h5").run()
    with pytest.raises(InputError, match="it holds amplitudes of ccsd, not of lccd"):
        lccd(mf, restart=tmp_path / "ccsd.h5").run()
    with pytest.raises(InputError, match="the plan is one of ccsd, not of lccd"):
        lccd(mf, plan=tilewise.plan(mol))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"text": "input T[a|i]\ne[] = T[a|i] T[a|i]\n"}, "its text has no solve line"),
        ({"energy": "E"}, r"its text makes no scalar E\[\]"),
        ({"start": {"U": "K"}}, "U is no amplitude; the text solves for T"),
        ({"start": {"T": "J"}}, r"T starts as J, which must be a tensor of the form \[ab\+-\|ij\+-\]"),
        ({"results": {"t2": "t"}}, "t is no amplitude"),
    ],
)
def test_data_that_do_not_belong_to_the_text_are_refused(lccd, changed, message):
    fields = {name: getattr(lccd, name) for name in ("name", "text", "start", "results", "energy")}
    with pytest.raises(InputError, match=f"method lccd: .*{message}"):
        tilewise.Method(**(fields | changed))


def test_a_method_in_the_folder_is_known_by_name_without_another_line(tmp_path, monkeypatch):
    (tmp_path / "doubled.py").write_text(
        "from dataclasses import replace\n"
        "from tilewise.methods.ccsd import METHOD\n"
        "from tilewise.methods.method import register\n"
        'DOUBLED = register(replace(METHOD, name="doubled"))\n'
    )
    monkeypatch.setattr("tilewise.methods.__path__", [*tilewise.methods.__path__, str(tmp_path)])
    _find_methods.cache_clear()
    try:
        assert method_named("doubled").text == method_named("ccsd").text
        assert set(METHODS) >= {"ccsd", "uccsd", "doubled"}
    finally:
        METHODS.pop("doubled", None)
        _find_methods.cache_clear()
        sys.modules.pop("tilewise.methods.doubled", None)
