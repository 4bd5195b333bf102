"""The tasks of connected triples: (i, j, run of k of one irrep), in triples of virtual tiles.

No task waits for another one, and each adds one number to the energy. What each costs is known exactly: the
multiply-adds of its products and the elements of its results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from tilewise.equations.program import Operation
from tilewise.inspect.graph import NO_TASKS, TaskGraph
from tilewise.inspect.operations import empty_tables
from tilewise.inspect.operations.triples import BUFFERS, FORMS, OUTPUTS, TILE_TRIPLE, TRIPLES
from tilewise.inspect.records import KINDS, TASK, Table
from tilewise.inspect.triples_blocks import TriplesBlocks, padded
from tilewise.lazy import cached_property

CLOSED, ONE_SPIN, TWO_SPINS, SQUARES = (
    FORMS.index(name) for name in ("closed", "one spin", "two spins", "squares")
)

TASKS_PER_WORKER = 40
"""Tasks of a worker, at least: the longest ones first, all then end within a fraction of a percent."""


@dataclass(frozen=True)
class TriplesOperation(Operation):
    """E(T) of electrons of given spins: a number for each task."""

    @property
    def scalar(self) -> str:
        return "e_t"

    @property
    def outputs(self) -> dict[str, bool]:
        return dict.fromkeys(OUTPUTS, False)

    @property
    def reads(self) -> tuple[str, ...]:
        return BUFFERS[: -len(OUTPUTS)]


@dataclass
class TriplesGraph(TaskGraph):
    """Tasks of triples, each of one record; buffers are vectors."""

    def describe(self, task: int) -> str:
        record = self._records[task]
        last = record["k"] + record["n_k"] - 1
        run = f"k = {record['k']}" + (f" to {last}" if record["n_k"] > 1 else "")
        operation = self.operations[self.tasks["operation"][task]]
        return f"operation '{operation.text}', occupied orbitals i = {record['i']}, j = {record['j']}, {run}"

    @cached_property
    def tuples(self) -> tuple[np.ndarray, np.ndarray]:
        """None is visited in vain."""
        operation = self.tasks["operation"]
        count = np.bincount(operation, minlength=len(self.operations))
        return np.arange(len(self)) - (np.cumsum(count) - count)[operation], count

    @cached_property
    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A block is all that belongs to one occupied orbital."""
        n_occ, records = self.records["triples_space"]["n_occ"][0], self._records
        first = np.array([0, n_occ[0]])
        every = np.arange(len(self))
        pairs = [np.stack([first[records["s"]] + records[name], every]) for name in ("i", "j")]
        owner = np.repeat(every, records["n_k"])
        run = np.arange(len(owner)) - np.repeat(np.cumsum(records["n_k"]) - records["n_k"], records["n_k"])
        pairs.append(np.stack([first[records["r"][owner]] + records["k"][owner] + run, owner]))
        block, task = np.unique(np.concatenate(pairs, axis=1), axis=1)
        size = 8.0 * self.vectors["blocks"] / max(1, int(n_occ.max()))
        return task, block, np.full(int(block.max(initial=-1)) + 1, size)

    @property
    def _records(self) -> Table:
        """The record of each task."""
        return self.records["triples"][self.tasks["first"]]


def inspect_triples(blocks: TriplesBlocks, workers: int = 1, longest_run: int | None = None) -> TriplesGraph:
    """The graph of all triples: enough tasks for that many workers, of at most so many k each."""
    cases = list(_cases(blocks))
    tables = [_Case(blocks, *case) for case in cases]
    most = TASKS_PER_WORKER * workers
    for run, parts in _cuts(blocks):
        if longest_run is not None and run > longest_run:
            continue
        records = [case.records(run, parts) for case in tables]
        if sum(map(len, records)) >= most:
            break
    return _graph(blocks, [case.name for case in tables], records, [case.tiles for case in tables])


def _cases(blocks: TriplesBlocks) -> Iterator[tuple[int, int, int]]:
    """Form and sets of the triples: one case of a closed shell, four of an open one."""
    if not blocks.is_open:
        yield (SQUARES if blocks.by_squares else CLOSED), 0, 0
        return
    for s, r in ((0, 0), (0, 1), (1, 0), (1, 1)):
        yield (ONE_SPIN if s == r else TWO_SPINS), s, r


def _cuts(blocks: TriplesBlocks) -> Iterator[tuple[int, int]]:
    """Orbitals k in a run and parts of the list of tiles, from few tasks to many."""
    longest = max(1, *(max(own.occ) for own in blocks.sets))
    for run in (longest, 4, 2, 1):
        if run <= longest:
            yield run, 1
    for parts in () if blocks.by_squares else (2, 4, 8, 16, 32):
        yield 1, parts


def _graph(
    blocks: TriplesBlocks, names: list[str], records: list[np.ndarray], tiles: list[np.ndarray]
) -> TriplesGraph:
    first = 0
    for own, listed in zip(records, tiles, strict=True):
        own["first_tiles"] += first
        first += len(listed)
    joined = np.concatenate(records)
    joined["part"] = np.arange(len(joined))
    tasks: Table = np.zeros(len(joined), TASK)
    tasks["kind"], tasks["count"], tasks["first"] = KINDS.index("triples"), 1, np.arange(len(joined))
    tasks["operation"] = np.repeat(np.arange(len(records)), [len(own) for own in records])
    space, numbers = blocks.tables
    tables = empty_tables() | {
        "triples": joined,
        "tile_triple": np.concatenate(tiles),
        "triples_space": space,
        "triples_numbers": numbers,
    }
    vectors = blocks.lengths | dict.fromkeys(OUTPUTS, len(joined))
    return TriplesGraph(
        tuple(TriplesOperation(name) for name in names),
        BUFFERS,
        {},
        tasks,
        tables,
        NO_TASKS,
        0,
        blocks.largest_result,
        NO_TASKS,
        NO_TASKS,
        vectors,
    )


class _Case:
    """Triples of one form and two sets, counted by the irreps of i, j and k."""

    def __init__(self, blocks: TriplesBlocks, form: int, s: int, r: int) -> None:
        self.blocks, self.form, self.s, self.r = blocks, form, s, r
        self.one, self.two = blocks.sets[s], blocks.sets[r]
        self.is_closed = form in (CLOSED, SQUARES)
        self.tiles, self.first = self._tile_triples()
        self._known: dict[tuple[int, ...], np.ndarray] = {}

    @property
    def name(self) -> str:
        spins = "ab"[self.s] * 2 + "ab"[self.r]
        return "(T)" if self.is_closed else f"(T) {''.join(sorted(spins))}"

    def _tile_triples(self) -> tuple[np.ndarray, np.ndarray]:
        """A >= B >= C, or A >= B and any C of the other set; by the product of their irreps."""
        one, two = self.one.tiles, self.two.tiles
        a, b, c = np.indices((len(one), len(one), len(two))).reshape(3, -1)
        keep = a >= b
        if self.s == self.r:
            keep &= b >= c
        if not self.is_closed:  # a > b > c
            keep &= (a != b) | (one.size[a] > 1)
        a, b, c = (x[keep] for x in (a, b, c))
        irrep = one.irrep[a] ^ one.irrep[b] ^ two.irrep[c]
        order = np.argsort(irrep, kind="stable")
        tiles: Table = np.zeros(len(order), TILE_TRIPLE)
        tiles["a"], tiles["b"], tiles["c"] = a[order], b[order], c[order]
        return tiles, np.searchsorted(irrep[order], np.arange(self.one.order + 1))

    def records(self, run: int, parts: int) -> np.ndarray:
        """A record for each i, j, run of k and part of the list of tiles."""
        found = [(i, j, k, n, part) for i, j, k, n in self._runs(run) for part in range(parts)]
        records: Table = np.zeros(len(found), TRIPLES)
        if not found:
            return records
        i, j, k, n, part = np.array(found, np.int64).T
        records["form"], records["s"], records["r"] = self.form, self.s, self.r
        records["i"], records["j"], records["k"], records["n_k"] = i, j, k, n
        irreps = self.one.occ_irrep[i], self.one.occ_irrep[j], self.two.occ_irrep[k]
        group = irreps[0] ^ irreps[1] ^ irreps[2]
        first, count = self.first[group], np.diff(self.first)[group]
        records["first_tiles"] = first + count * part // parts
        records["n_tiles"] = first + count * (part + 1) // parts - records["first_tiles"]
        for field in range(4):
            name = ("needed", "done", "elements", "words")[field]
            plain = self._summed(irreps, records, 0, field)
            if not self.is_closed:
                records[name] = n * plain
                continue
            twice = self._summed(irreps, records, 1, field)
            last_equals_j = (k + n - 1 == j).astype(np.int64)  # then j = k is in the run
            records[name] = np.where(
                i == j, (n - last_equals_j) * twice, (n - last_equals_j) * plain + last_equals_j * twice
            )
            if field == 3:
                records[name] = n * plain
        return records[records["needed"] > 0]

    def _runs(self, most: int) -> Iterator[tuple[int, int, int, int]]:
        """(i, j, first k, how many): i >= j >= k, or i > j > k, or i > j and any k of the other set."""
        first = np.cumsum([0, *self.two.occ])
        n = self.one.n_occ
        for i in range(n):
            for j in range(i + self.is_closed):
                limit = {ONE_SPIN: j, TWO_SPINS: self.two.n_occ}.get(self.form, j + 1)
                for h in range(self.two.order):
                    end = min(int(first[h + 1]), limit)
                    for k in range(int(first[h]), end, most):
                        yield i, j, k, min(most, end - k)

    def _summed(self, irreps: tuple[np.ndarray, ...], records: Table, equal: int, field: int) -> np.ndarray:
        """Of one triple i, j, k: a count summed over the tiles of each record."""
        keys, which = np.unique(np.stack(irreps), axis=1, return_inverse=True)
        total, which = np.zeros(len(records)), which.ravel()
        for number, key in enumerate(keys.T.tolist()):
            mine = which == number
            before = self._counts((*key, equal))[field]
            start = self.first[key[0] ^ key[1] ^ key[2]]
            first = records["first_tiles"][mine] - start
            total[mine] = before[first + records["n_tiles"][mine]] - before[first]
        return total

    def _counts(self, key: tuple[int, ...]) -> np.ndarray:
        """(4, tiles + 1): multiply-adds needed and done, elements and words, summed up to each triple."""
        if key not in self._known:
            i, j, k, equal = key
            group = i ^ j ^ k
            tiles = self.tiles[self.first[group] : self.first[group + 1]]
            counts = self._closed(tiles, (i, j, k), equal) if self.is_closed else self._open(tiles, (i, j, k))
            self._known[key] = np.concatenate([np.zeros((4, 1)), np.cumsum(counts, axis=1)], axis=1)
        return self._known[key]

    def _closed(self, tiles: np.ndarray, irreps: tuple[int, int, int], equal: int) -> np.ndarray:
        """With two of i, j, k `equal` three of their orders are different, and else six."""
        own, n = self.one.tiles, self.one.n_sum
        (h_a, h_b, h_c), (a, b, c) = (tuple(x[tiles[t]] for t in "abc") for x in (own.irrep, own.size))
        depth = np.zeros(len(tiles), np.int64)
        for p, q, r in permutations(irreps):
            depth += n[q ^ h_b ^ h_c] + n[r ^ h_b ^ h_c] + n[p ^ h_a ^ h_b] + n[q ^ h_a ^ h_b]
            depth += n[p ^ h_a ^ h_c] + n[r ^ h_a ^ h_c]
        macs = a * b * c * depth / (2 if equal else 1)
        same = 1 + (tiles["a"] == tiles["b"]) + (tiles["b"] == tiles["c"])
        needed = macs * np.array([0, 1, 1 / 2, 1 / 6])[same]
        done = macs if equal else macs * np.array([0, 1, 1 / 2, 1 / 2])[same]
        if self.form == SQUARES:  # three groups of products, two if orbitals are equal
            needed = done = _shared(self._squares(equal), len(tiles))
        words = 2.0 * (
            a * b * n[irreps[0] ^ h_a ^ h_b]
            + a * c * n[irreps[0] ^ h_a ^ h_c]
            + b * c * n[irreps[0] ^ h_b ^ h_c]
        )
        return np.stack([needed, done, 6.0 * a * b * padded(c), words])

    def _squares(self, equal: int) -> float:
        """Multiply-adds of one i, j, k by squares."""
        o, v = self.one.n_occ, self.one.n_vir
        return float((2 if equal else 3) * v**3 * (v + 2 * o))

    def _open(self, tiles: np.ndarray, irreps: tuple[int, int, int]) -> np.ndarray:
        """What is needed: the products over pairs a > b. Tiles share it by what is done."""
        one, two = self.one.tiles, self.two.tiles
        (h_a, h_b), (a, b) = (tuple(x[tiles[t]] for t in "ab") for x in (one.irrep, one.size))
        h_c, c = two.irrep[tiles["c"]], two.size[tiles["c"]]
        i, j, k = irreps
        n, m = self.one.n_sum, self.two.n_sum
        pairs = np.where(tiles["a"] == tiles["b"], a * (a - 1) // 2, a * b)
        if self.form == ONE_SPIN:
            depth = sum(n[p ^ h_a ^ h_b] + n[p ^ h_a ^ h_c] + n[p ^ h_b ^ h_c] for p in irreps)
        else:
            depth = n[i ^ h_a ^ h_b] + n[j ^ h_a ^ h_b] + n[k ^ h_b ^ h_c] + n[k ^ h_a ^ h_c]
            depth = depth + m[i ^ h_a ^ h_c] + m[j ^ h_a ^ h_c] + m[i ^ h_b ^ h_c] + m[j ^ h_b ^ h_c]
        done = 1.0 * pairs * c * depth
        share = done / done.sum() if done.sum() else done
        words = 3.0 * (a * b * n[i ^ h_a ^ h_b] + a * c * m[i ^ h_a ^ h_c] + b * c * m[i ^ h_b ^ h_c])
        return np.stack([self._needed(irreps) * share, done, 1.0 * pairs * padded(c), words])

    def _needed(self, irreps: tuple[int, int, int]) -> float:
        """Multiply-adds of one i, j, k: pairs a > b where both are of one product, and all a, b elsewhere."""
        i, j, k = irreps
        v, w, n, m = (np.asarray(x) for x in (self.one.vir, self.two.vir, self.one.n_sum, self.two.n_sum))
        total = 0.0
        for h_a, h_b in product(range(self.one.order), repeat=2):
            h_c = i ^ j ^ k ^ h_a ^ h_b
            pairs = v[h_a] * (v[h_a] - 1) / 2 if h_a == h_b else v[h_a] * v[h_b] / 2
            if self.form == ONE_SPIN:
                total += pairs * v[h_c] * sum(n[p ^ h_a ^ h_b] for p in irreps)
                continue
            total += pairs * w[h_c] * (n[i ^ h_a ^ h_b] + n[j ^ h_a ^ h_b])
            every = v[h_a] * v[h_b] * w[h_c]
            total += every * (n[k ^ h_b ^ h_c] + m[i ^ h_a ^ h_c] + m[j ^ h_a ^ h_c])
        return float(total)


def _shared(total: float, count: int) -> np.ndarray:
    """A number, in equal parts."""
    return np.full(count, total / max(1, count))


def on_blocks(graph: TriplesGraph, blocks: TriplesBlocks, scale: float = 1.0) -> TriplesGraph:
    """The same tasks on operands that lie elsewhere, such as those of fewer occupied orbitals.

    `scale` is that of the integrals among the operands of squares.
    """
    space, numbers = blocks.tables
    space = space.copy()
    space["scale"] = scale
    records = graph.records | {"triples_space": space, "triples_numbers": numbers}
    return replace(graph, records=records, vectors=graph.vectors | blocks.lengths)
