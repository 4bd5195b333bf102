"""Mean fields shared by the tests of this folder, each run once."""

import pytest
from chem_oracles import WATER, mean_field


@pytest.fixture(scope="session")
def water():
    return mean_field(WATER, "6-31g")


@pytest.fixture(scope="session")
def nitrogen():
    return mean_field("N 0 0 0; N 0 0 1.1", "cc-pvdz")
