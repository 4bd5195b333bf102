"""Random spaces, layouts and expressions for the tests of the engine, and their oracles.

Orbitals are drawn one by one with a random spin and irrep, so empty irreps, one-sided spins and
empty spaces all occur. Letters i..n run over space o, a..f over space v.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from tilewise import Layout, Space, Tensor, policies
from tilewise.equations.planner import plan_statements
from tilewise.equations.terms import Factor, Statement, Term
from tilewise.inspect import PanelRule
from tilewise.tensor.compound import PACKINGS, Compound

LETTERS = {"o": "ijklmn", "v": "abcdef"}
LARGEST = (6, 6, 8, 6, 5, 4, 3)
"""Orbitals of a space at most, for the rank of the largest tensor: dense arrays stay near 1000 elements."""

RULES = (PanelRule(), PanelRule(1, 1), PanelRule(5, 7), PanelRule(3, 1000))
SEEDS = st.integers(0, 1 << 16)
WORKERS = st.integers(1, 4)
POLICIES = st.sampled_from([*policies, "dataflow(queues=worker)"])


# Spaces


@st.composite
def space_of(draw, name, order, spin, largest, smallest=0):
    rows = 2 if spin else 1
    labels = draw(st.lists(st.integers(0, rows * order - 1), min_size=smallest, max_size=largest))
    counts = np.bincount(np.array(labels, int), minlength=rows * order).reshape(rows, order)
    tile = draw(st.integers(1, 5))
    return Space(name, tuple(map(tuple, counts.tolist())), (1, -1) if spin else (0,), tile)


@st.composite
def worlds(draw, largest=6, smallest=0, spin=None):
    """{letters: space} for an occupied and a virtual space of one group."""
    order = draw(st.sampled_from([1, 2, 4, 8]))
    spin = draw(st.booleans()) if spin is None else spin
    return {
        letters: draw(space_of(name, order, spin, largest, smallest)) for name, letters in LETTERS.items()
    }


def space_by_letter(world):
    return {letter: space for letters, space in world.items() for letter in letters}


# Layouts


@st.composite
def letters_of(draw, rank, unused=None):
    """Distinct letters of random spaces."""
    unused = {name: list(letters) for name, letters in LETTERS.items()} if unused is None else unused
    return "".join(unused[draw(st.sampled_from("ov"))].pop(0) for _ in range(rank))


@st.composite
def form_of(draw, letters, world, signs):
    """A random matricization of these letters, in their order, with packings where a pair allows one."""
    spaces = space_by_letter(world)
    split = draw(st.integers(0, len(letters)))
    groups = []
    for group in (letters[:split], letters[split:]):
        pair = len(group) == 2 and spaces[group[0]] == spaces[group[1]]
        spinless = pair and spaces[group[0]].spins == (0,)
        packable = pair and (spinless or signs[group[0]] == signs[group[1]])
        groups.append(group + (draw(st.sampled_from(PACKINGS)) if packable else ""))
    return "|".join(groups)


def layout_of(form, world, signs):
    letters = "".join(c for c in form if c.isalpha())
    return Layout.parse(form, world, "".join(signs[c] for c in letters))


@st.composite
def signs_of(draw, letters):
    return {c: draw(st.sampled_from("+-")) for c in letters}


@st.composite
def layouts(draw, max_rank=6):
    rank = draw(st.integers(0, max_rank))
    world = draw(worlds(LARGEST[rank]))
    letters = draw(letters_of(rank))
    signs = draw(signs_of(letters))
    return layout_of(draw(form_of(letters, world, signs)), world, signs)


# Oracles of layouts, from the definitions


def brute_states(compound: Compound):
    """States as (label, tiles, {orbital tuple: coefficient}), in the order that the design asks for."""
    irreps = [space.irreps for space in compound.spaces]
    spins = [np.repeat(space.spins, [sum(row) for row in space.counts]) for space in compound.spaces]
    found = []
    for orbitals in product(*(range(space.size) for space in compound.spaces)):
        irrep = 0
        for values, o in zip(irreps, orbitals, strict=True):
            irrep ^= int(values[o])
        spin = sum(s * int(v[o]) for s, v, o in zip(compound.signs, spins, orbitals, strict=True))
        tiles = tuple(int(space.tile_of[o]) for space, o in zip(compound.spaces, orbitals, strict=True))
        for parity in {"": (0,), "+": (1,), "-": (-1,), "+-": (1, -1)}[compound.packing]:
            state = {orbitals: 1.0}
            if compound.packing:
                p, q = orbitals
                if p < q or (p == q and parity < 0):
                    continue
                state = {(p, q): 1.0} if p == q else {(p, q): 0.5**0.5, (q, p): parity * 0.5**0.5}
            shown = parity if compound.packing == "+-" else 0
            found.append(((irrep, spin, -shown), tiles, orbitals, state))
    found.sort(key=lambda entry: entry[:3])
    return [((h, s, -p), tiles, state) for (h, s, p), tiles, _, state in found]


def brute_basis(compound: Compound):
    """{label: matrix of its states by flat orbital tuples}, in storage order."""
    shape = tuple(space.size for space in compound.spaces)
    basis: dict[tuple[int, int, int], list[np.ndarray]] = {}
    for label, _, state in brute_states(compound):
        row = np.zeros(shape)
        for orbitals, coefficient in state.items():
            row[orbitals] = coefficient
        basis.setdefault(label, []).append(row.ravel())
    return {label: np.array(rows) for label, rows in basis.items()}


def brute_sectors(layout: Layout, dense: np.ndarray):
    """[(label, matrix)] of a dense array, in storage order; what symmetry excludes is left out."""
    rows, cols = brute_basis(layout.rows), brute_basis(layout.cols)
    n = int(np.prod(dense.shape[: layout.rows.rank], dtype=np.int64))
    m = int(np.prod(dense.shape[layout.rows.rank :], dtype=np.int64))
    matrix = dense.reshape(n, m)
    return [
        ((h, s, p or q), u @ matrix @ w.T, u, w)
        for (h, s, p), u in rows.items()
        for (g, r, q), w in cols.items()
        if h == g and s == -r and (p == q or 0 in (p, q))
    ]


def projected(layout: Layout, dense: np.ndarray) -> np.ndarray:
    """The part of a dense array that a layout can hold."""
    n = int(np.prod(dense.shape[: layout.rows.rank], dtype=np.int64))
    m = int(np.prod(dense.shape[layout.rows.rank :], dtype=np.int64))
    total = np.zeros((n, m))
    for _, block, u, w in brute_sectors(layout, dense):
        total += u.T @ block @ w
    return total.reshape(dense.shape)


def assert_close(found, expected, tol=1e-12):
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = float(np.abs(np.asarray(found) - expected).max(initial=0.0))
    assert error <= tol * scale, f"off by {error:.3g} of {scale:.3g}"  # false for NaN too


# Expressions


@dataclass(frozen=True)
class Expression:
    """An einsum on tensors, and the forms in which its result can be stored."""

    letters: tuple[str, ...]
    result: str
    tensors: tuple[Tensor, ...]
    world: dict[str, Space]
    signs: dict[str, str]  # of the result

    @property
    def einsum(self) -> str:
        return ",".join(self.letters) + "->" + self.result

    def dense(self) -> np.ndarray:
        return np.einsum(self.einsum, *(t.to_dense() for t in self.tensors))

    def __repr__(self) -> str:
        return f"{self.einsum} on " + " and ".join(f"{t.layout}" for t in self.tensors)


@st.composite
def tensor_on(draw, letters, world, signs):
    """A random tensor in a random matricization; the letters may repeat (a trace)."""
    names = {name: list(each) for name, each in LETTERS.items()}
    # Letters of its own for the axes of a trace, which have signs of their own.
    own = [names["o" if c in LETTERS["o"] else "v"].pop(0) for c in letters]
    layout = layout_of(
        draw(form_of("".join(own), world, dict(zip(own, signs, strict=True)))),
        world,
        dict(zip(own, signs, strict=True)),
    )
    return Tensor.random(layout, draw(SEEDS))


def opposite(sign):
    return "-" if sign == "+" else "+"


@st.composite
def single_expressions(draw, max_rank=6, traces=(0, 0, 1, 2)):
    """Permutations and partial traces of one tensor."""
    n_trace = min(draw(st.sampled_from(traces)), max_rank // 2)
    rank = draw(st.integers(0, max_rank - 2 * n_trace))
    world = draw(worlds(LARGEST[rank + 2 * n_trace]))
    unused = {name: list(each) for name, each in LETTERS.items()}
    free, traced = draw(letters_of(rank, unused)), draw(letters_of(n_trace, unused))
    signs = draw(signs_of(free))
    axes = [(c, signs[c]) for c in free] + [(c, s) for c in traced for s in "+-"]
    axes = draw(st.permutations(axes))
    letters = "".join(c for c, _ in axes)
    tensor = draw(tensor_on(letters, world, [s for _, s in axes]))
    result = "".join(draw(st.permutations(free)))
    return Expression((letters,), result, (tensor,), world, signs)


@st.composite
def pair_expressions(draw, max_rank=6, outer=False):
    """Contractions of two tensors over any number of indices, or outer products."""
    n_sum = 0 if outer else draw(st.integers(1, max_rank))
    n_left = draw(st.integers(0, max_rank - n_sum))
    n_right = draw(st.integers(0, min(max_rank - n_sum, max_rank - n_left)))
    world = draw(worlds(min(LARGEST[max(n_left + n_sum, n_right + n_sum, n_left + n_right)], 5)))
    pool = {name: list(each) for name, each in LETTERS.items()}
    names = []
    for _ in range(n_left + n_right + n_sum):
        kind = draw(st.sampled_from("ov"))
        names.append(pool[kind if pool[kind] else "vo"["ov".index(kind)]].pop(0))
    left, right, summed = names[:n_left], names[n_left : n_left + n_right], names[n_left + n_right :]
    signs = draw(signs_of(names))
    a = draw(st.permutations(left + summed))
    b = draw(st.permutations(right + summed))
    tensors = (
        draw(tensor_on("".join(a), world, [signs[c] for c in a])),
        draw(tensor_on("".join(b), world, [opposite(signs[c]) if c in summed else signs[c] for c in b])),
    )
    result = "".join(draw(st.permutations(left + right)))
    return Expression(("".join(a), "".join(b)), result, tensors, world, {c: signs[c] for c in result})


@st.composite
def result_forms(draw, expression: Expression, dense: np.ndarray):
    """A form of the result whose packings are valid for it."""
    letters, spaces = expression.result, space_by_letter(expression.world)
    split = draw(st.integers(0, len(letters)))
    options = []
    for first, group in ((0, letters[:split]), (split, letters[split:])):
        packings = [""]
        if len(group) == 2 and spaces[group[0]] == spaces[group[1]]:
            spinless = spaces[group[0]].spins == (0,)
            if spinless or expression.signs[group[0]] == expression.signs[group[1]]:
                swapped = np.swapaxes(dense, first, first + 1)
                packings += ["+-"]
                packings += ["+"] if np.allclose(dense, swapped, atol=1e-13) else []
                packings += ["-"] if np.allclose(dense, -swapped, atol=1e-13) else []
        options.append(packings)
    rows, cols = (draw(st.sampled_from(packings)) for packings in options)
    if rows == cols == "+-":
        both = np.swapaxes(np.swapaxes(dense, 0, 1), 2, 3)
        if not np.allclose(dense, both, atol=1e-13):
            cols = ""
    return f"{letters[:split]}{rows}|{letters[split:]}{cols}"


def plan_expression(expression: Expression, form: str, alpha: float = 1.0):
    """A program that makes C from A (and B), with a layout of our own choice for C."""
    names = "AB"[: len(expression.tensors)]
    tables = {name: t.layout for name, t in zip(names, expression.tensors, strict=True)}
    tables["C"] = layout_of(form, expression.world, expression.signs)
    factors = tuple(Factor(n, letters) for n, letters in zip(names, expression.letters, strict=True))
    statement = Statement(Factor("C", expression.result), False, (Term(alpha, factors),))
    kinds = dict.fromkeys(names, "input") | {"C": "intermediate"}
    return plan_statements((statement,), tables, kinds), dict(zip(names, expression.tensors, strict=True))
