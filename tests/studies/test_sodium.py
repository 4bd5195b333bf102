"""The columns of a real sodium atom: their number in the paper, and loops over them."""

import pytest

from tilewise.schedule import policy_named
from tilewise.studies.stathopoulos_atom import (
    Sodium,
    atomic_orbitals,
    count_determinants,
    count_functions,
    trials,
)
from tilewise.studies.stathopoulos_runs import COLUMNS


def test_the_number_of_columns_is_that_of_the_state_functions_up_to_g():
    orbitals = atomic_orbitals(11, 4)
    assert count_functions(orbitals) == COLUMNS
    assert count_determinants(orbitals, 0, 1) == 175552


@pytest.mark.parametrize("load", ["1-1", "2-1"])
def test_the_columns_are_made_by_each_policy_under_load(load):
    sodium = Sodium({"basis": "6-31g", "n": 4, "l": 1, "rank": 2, "term": "2S"})
    for policy in (*trials().values(), policy_named("block")):
        run = sodium.run(policy, load)
        assert run.seconds > 0 and run.over_ideal > 0 and 0 <= run.imbalance <= run.seconds
