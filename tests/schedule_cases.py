"""Random graphs without content, and costs of their tasks."""

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from random_programs import bare_graph
from random_spaces import SEEDS


@st.composite
def bare_graphs(draw, largest=30):
    operation_of = sorted(draw(st.lists(st.integers(0, 5), max_size=largest)))
    possible = [
        (s, t) for s, t in combinations(range(len(operation_of)), 2) if operation_of[s] < operation_of[t]
    ]
    edges = draw(st.lists(st.sampled_from(possible), unique=True, max_size=40)) if possible else []
    return bare_graph(operation_of, sorted(edges))


@st.composite
def costs(draw, n):
    kind = draw(st.sampled_from(["zero", "equal", "giant", "random", "wide"]))
    rng = np.random.default_rng(draw(SEEDS))
    if kind == "zero":
        return np.zeros(n)
    if kind == "equal":
        return np.full(n, 0.1)
    seconds = rng.random(n) if kind != "wide" else 10.0 ** rng.uniform(-9, 3, n)
    if kind == "giant" and n:
        seconds[rng.integers(n)] = 1e6
    return seconds
