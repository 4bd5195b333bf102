"""Where the blocks lie that tasks get: against a plain loop over the products."""

import numpy as np
import pytest

from tilewise.spaces import TileSpace
from tilewise.tce.inspector import inspect_routines
from tilewise.tce.places import block_places
from tilewise.tce.routines import tce_routines
from tilewise.tce.trees import cut


@pytest.fixture(scope="module")
def graph():
    return inspect_routines(tce_routines("ccsd"), TileSpace((2, 1), (3, 2), 2))


def gets(graph):
    """(task, tensor, block, words) of each Get, in order; None for sums of other tasks."""
    for t, task in enumerate(graph.tasks):
        parts = [(part.name, part.kinds) for part in graph.operations[task["operation"]].inputs]
        known = 0
        for p in graph.products[task["first"] : task["first"] + task["count"]]:
            for part, key, words in ((0, "a", p["m"] * p["k"]), (1, "b", p["k"] * p["n"])):
                for _ in range(p[f"gets_{key}"]):
                    known += 1
                    yield t, parts[part], int(p[key]), int(words)
        if task["reads"] >= 0:
            for _ in range(task["gets"]):
                known += 1
                yield t, parts[0], int(task["reads"]), int(task["bytes_got"] // task["gets"] // 8)
        for _ in range(task["gets"] - known):
            yield t, None, None, None


def expected(graph):
    blocks = {}
    for _, tensor, block, words in gets(graph):
        if tensor is not None:
            blocks.setdefault(tensor, {})[block] = words
    middle = {}
    for tensor, sizes in blocks.items():
        before, total = 0, sum(sizes.values())
        for block in sorted(sizes):
            middle[tensor, block] = (before + 0.5 * sizes[block]) / total
            before += sizes[block]
    return np.array([middle.get((tensor, block), np.nan) for _, tensor, block, _ in gets(graph)])


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_places_are_those_of_the_blocks_in_their_tensors(graph, parts):
    graph = cut(graph, np.minimum(parts, graph.gemms))
    found, wanted = block_places(graph), expected(graph)
    assert len(found) == graph.tasks["gets"].sum()
    known = ~np.isnan(wanted)
    assert known.sum() > 1000 and known.all() == (parts < 2)
    np.testing.assert_allclose(found[known], wanted[known], atol=1e-12)
    assert ((found >= 0) & (found <= 1)).all()
