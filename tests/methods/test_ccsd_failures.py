"""Numbers that are none: a run ends with one error that names the operation and the block."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from ccsd_oracles import mean_field, pyscf_ccsd

import tilewise
from tilewise.chem.pyscf_source import from_mean_field
from tilewise.errors import TaskError


@dataclass(frozen=True)
class Poisoned:
    """Integrals with a wrong value at one pair of orbital pairs."""

    integrals: Any
    at: tuple[int, int, int, int]
    value: float

    def eri(self, order):
        values = np.array(self.integrals.eri(order))
        p, q, r, s = self.at
        rows, cols = (max(x, y) * (max(x, y) + 1) // 2 + min(x, y) for x, y in ((p, q), (r, s)))
        values[rows, cols] = values[cols, rows] = self.value
        return values

    def basis_integrals(self, *_):
        return None

    def __getattr__(self, name):
        return getattr(self.integrals, name)


def poisoned(name, at, value, **options):
    reference = from_mean_field(mean_field(name), **options)
    return replace(reference, integrals=Poisoned(reference.integrals, at, value))


# Water in 6-31G: orbitals 0 to 4 are occupied, 5 to 12 virtual; (pp|qq) is totally symmetric.
PLACES = {
    "oooo": (0, 0, 4, 4),
    "ooov": (2, 2, 2, 5),
    "oovv": (1, 1, 6, 6),
    "ovov": (0, 5, 0, 5),
    "ovvv": (0, 5, 5, 5),
    "vvvv": (6, 6, 12, 12),
}


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(
    ("executor", "value"), [("threads", np.nan), ("serial", np.nan), ("threads", np.inf)]
)
def test_an_integral_that_is_no_number_ends_the_run(kind, executor, value):
    ccsd = tilewise.CCSD(poisoned("water", PLACES[kind], value), executor=executor, threads=2)
    with pytest.raises(TaskError) as caught:
        ccsd.run()
    message = str(caught.value)
    assert "not finite" in message
    assert "operation '" in message
    assert "block " in message
    assert "rows " in message
    assert "\n" not in message
    assert not ccsd.converged


@pytest.mark.parametrize("policy", tilewise.policies)
def test_with_every_policy_all_workers_stop(policy):
    reference = poisoned("nitrogen", (0, 0, 3, 3), np.nan)
    with pytest.raises(TaskError, match=r"operation '.*block"):
        tilewise.CCSD(reference, policy=policy, threads=4, tile=2).run()
    # The process is fit for the next run.
    ccsd = tilewise.CCSD(mean_field("nitrogen"), policy=policy, threads=4, tile=2).run()
    assert ccsd.e_corr == pytest.approx(pyscf_ccsd("nitrogen").e_corr, abs=1e-8)


def test_the_message_names_an_operation_that_reads_the_wrong_integral():
    with pytest.raises(TaskError) as caught:
        tilewise.CCSD(poisoned("water", PLACES["vvvv"], np.nan)).run()
    assert re.search(r"vvvv.*block V\(irrep \d", str(caught.value))


def test_a_denominator_of_zero_ends_the_run():
    reference = from_mean_field(mean_field("water"))
    flat = replace(reference, occ_energies=np.full(5, -0.5), vir_energies=np.full(8, -0.5))
    with pytest.raises(TaskError, match=r"not finite.*operation"):
        tilewise.CCSD(flat).run()


def test_a_wrong_but_finite_integral_gives_another_energy():
    """The poison reaches the equations: without that the tests above would prove nothing."""
    for kind, at in PLACES.items():
        run = tilewise.CCSD(poisoned("water", at, 0.123), max_cycle=60).run()
        assert abs(run.e_corr - pyscf_ccsd("water").e_corr) > 1e-7, kind
