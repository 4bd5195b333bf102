"""Which store suits which ranks."""

from types import SimpleNamespace

import pytest

from tilewise import TilewiseError
from tilewise.execute.mpi.local_world import LocalWorld
from tilewise.execute.mpi.stores import kind_of
from tilewise.execute.mpi.world import SelfTest

RIGHT = SelfTest("", "without the target", 0.1, is_passive=True)
NEEDS_HELP = SelfTest("", "when the target looks", 0.1)
WRONG = SelfTest("Get", "", 0.1)
ONE, TWO = [[0, 1]], [[0], [1]]

CASES = {
    "one node": (ONE, RIGHT, "auto", "shared"),
    "one node where data needs help": (ONE, NEEDS_HELP, "auto", "one-sided"),
    "two nodes": (TWO, RIGHT, "auto", "one-sided"),
    "two nodes where data needs help": (TWO, NEEDS_HELP, "auto", "one-sided"),
    "what fails": (ONE, WRONG, "auto", "messages"),
    "what was asked for": (ONE, RIGHT, "one-sided", "one-sided"),
    "messages": (ONE, RIGHT, "messages", "messages"),
    "memory": (ONE, NEEDS_HELP, "shared", "shared"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_store_suits_nodes_and_library(case):
    nodes, found, wish, expected = CASES[case]
    assert kind_of(SimpleNamespace(communicator=1, nodes=nodes, self_test=found), wish) == expected


def test_nodes_share_no_memory():
    with pytest.raises(TilewiseError, match="store shared needs all ranks on one node, and they are on 2"):
        kind_of(SimpleNamespace(communicator=1, nodes=TWO, self_test=RIGHT), "shared")


def test_threads_of_one_process_send_messages():
    assert LocalWorld.run(2, kind_of) == ["messages", "messages"]


def test_a_store_has_a_name():
    with pytest.raises(TilewiseError, match="store"):
        kind_of(SimpleNamespace(communicator=1, nodes=ONE, self_test=RIGHT), "boxes")
