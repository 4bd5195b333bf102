"""Where the blocks lie that tasks get, if each tensor is spread over the nodes in the order of its blocks."""

from __future__ import annotations

import numpy as np

from tilewise.tce.inspector import TileGraph

_GOLDEN = 0.5 * (5**0.5 - 1)


def block_places(graph: TileGraph) -> np.ndarray:
    """Of each Get, task after task: 0 at the beginning of its tensor, 1 at the end.

    Both blocks of an alpha-alpha integral count as one place. Sums of other tasks lie anywhere.
    """
    tasks, products = graph.tasks, graph.products[graph.owners >= 0]
    owner = graph.owners[graph.owners >= 0]
    copies = np.flatnonzero(tasks["reads"] >= 0)
    operation = tasks["operation"]
    tensor = _tensors(graph)
    first_operand, second_operand = tensor[operation[owner]].T
    places = _middles(
        np.concatenate([products["a"], products["b"], tasks["reads"][copies]]),
        np.concatenate([first_operand, second_operand, tensor[operation[copies], 0]]),
        np.concatenate(
            [
                products["m"] * products["k"],
                products["k"] * products["n"],
                tasks["bytes_got"][copies] / np.maximum(tasks["gets"][copies], 1) / 8,
            ]
        ),
    )
    n = len(products)
    task = np.concatenate([np.repeat(owner, 2), copies])
    gets = np.concatenate(
        [np.stack([products["gets_a"], products["gets_b"]], axis=1).ravel(), tasks["gets"][copies]]
    )
    place = np.concatenate([np.stack([places[:n], places[n : 2 * n]], axis=1).ravel(), places[2 * n :]])
    return _in_order(tasks["gets"], np.repeat(task, gets), np.repeat(place, gets))


def _tensors(graph: TileGraph) -> np.ndarray:
    """(operations, 2): numbers of the tensors that each operation reads; a copy reads one."""
    numbers: dict[tuple[str, str], int] = {}
    found = np.zeros((len(graph.operations), 2), np.int64)
    for operation, routine in enumerate(graph.operations):
        for k, part in enumerate(routine.inputs):
            found[operation, k] = numbers.setdefault((part.name, part.kinds), len(numbers))
    return found


def _middles(block: np.ndarray, tensor: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The middle of each block, as a share of its tensor."""
    _, first, which = np.unique(block, return_index=True, return_inverse=True)
    tensor, size = tensor[first], size[first].astype(np.float64)
    total = np.bincount(tensor, size)
    # Blocks of one tensor have numbers that follow each other.
    starts = np.flatnonzero(np.diff(tensor, prepend=-1))
    before = np.cumsum(size) - size
    before -= np.repeat(before[starts], np.diff(starts, append=len(tensor)))
    return ((before + 0.5 * size) / total[tensor])[which]


def _in_order(gets: np.ndarray, task: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Places of all Gets, task after task, where some of them are known in the order of their tasks."""
    every = np.arange(int(gets.sum()), dtype=np.float64) * _GOLDEN % 1.0
    order = np.argsort(task, kind="stable")
    known = np.bincount(task, minlength=len(gets))
    position = np.arange(len(task)) - np.repeat(np.cumsum(known) - known, known)
    every[(np.cumsum(gets) - gets)[task[order]] + position] = place[order]
    return every
