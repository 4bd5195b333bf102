"""Small molecules and atoms for the tests of CI."""

import functools

import numpy as np
from pyscf import gto, scf

from tilewise.ci.columns import Columns
from tilewise.schedule import policy_named

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"
NITROGEN = "N 0 0 0; N 0 0 1.0977"
AMIDOGEN = "N 0 0 0.14; H 0 0.80 -0.49; H 0 -0.80 -0.49"
HYDROGEN_FLUORIDE = "F 0 0 0; H 0 0 0.917"


@functools.cache
def mean_field(atom, basis, spin=0, charge=0, symmetry=True):
    mol = gto.M(atom=atom, basis=basis, spin=spin, charge=charge, symmetry=symmetry, verbose=0)
    kind = scf.ROHF if spin else scf.RHF
    return kind(mol).run(conv_tol=1e-12, conv_tol_grad=1e-8)


def made(calculation, workers=1, policy="block", budget=1 << 28):
    """The columns of a calculation, with its Hamiltonian."""
    columns = Columns(calculation.determinants, calculation.numbers, workers, policy_named(policy))
    operator = calculation.problem.hamiltonian(calculation.numbers)
    columns.use(operator)
    room = columns.count()[:, 0]
    built = columns.build(room, 1e-8 * room + 1e-7, budget)
    return columns, operator, built


def dense(calculation):
    columns, _, _ = made(calculation)
    return columns.dense()


def lowest(calculation, count=1):
    return np.linalg.eigvalsh(dense(calculation))[:count]
