"""What is timed to fit a cost model: products of many shapes, and CCSD of small imagined molecules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewise import native
from tilewise.config import last_level_cache, thread_limits
from tilewise.cost.model import far_share, task_features, working_set
from tilewise.equations import parse, plan_program
from tilewise.equations.ccsd import CCSD
from tilewise.inspect import TaskGraph, inspect
from tilewise.inspect.operations.gemm import GEMM, KERNELS, kernels_of
from tilewise.inspect.records import KINDS, TASK, Table
from tilewise.inspect.triples import inspect_triples
from tilewise.inspect.triples_blocks import OrbitalSet, TriplesBlocks
from tilewise.spaces import Space

SECONDS = 12.0


@dataclass(frozen=True)
class Sample:
    """Tasks with their features, by part of the model, and the seconds that each takes."""

    features: dict[str, np.ndarray]
    seconds: np.ndarray
    kinds: np.ndarray
    """Of each task, a kernel's name or the kind of its records."""

    @classmethod
    def joined(cls, samples: list[Sample]) -> Sample:
        return cls(
            {part: np.concatenate([s.features[part] for s in samples]) for part in samples[0].features},
            np.concatenate([s.seconds for s in samples]),
            np.concatenate([s.kinds for s in samples]),
        )


@dataclass
class Experiment:
    """Tasks to be timed one after the other on one worker, several times."""

    graph: TaskGraph
    buffers: list[np.ndarray]
    far: float
    runs: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tables, self._scratch = native.tables(self.graph), np.zeros(native.scratch_size(self.graph))
        self._schedule = native.static_lists([np.arange(len(self.graph))])

    def run(self) -> None:
        trace = native.run(self.graph, self._tables, self._schedule, self.buffers, self._scratch, 1).trace
        self.runs.append(np.maximum(1e-9 * (trace["end"] - trace["start"]), 1e-8))

    def sample(self, slowness: dict[str, float]) -> Sample:
        """The best time of each task, times the slowness of its kind."""
        kinds, best = kinds_of(self.graph), np.min(self.runs, axis=0)
        for kind, factor in slowness.items():
            best[kinds == kind] *= factor
        return Sample(task_features(self.graph, self.far), best, kinds)


def samples(experiments: list[Experiment]) -> list[Sample]:
    """What tasks take on the machine as it is, with all else that it has to do.

    The best time of a task says most about the task. How much slower than that all tasks of a kind together
    are in a typical round says most about the machine.
    """
    kinds = np.concatenate([kinds_of(experiment.graph) for experiment in experiments])
    rounds = [
        np.concatenate(runs) for runs in zip(*(experiment.runs for experiment in experiments), strict=True)
    ]
    best = np.min(rounds, axis=0)
    slowness = {
        str(kind): float(
            typical([times[kinds == kind].sum() for times in rounds]) / best[kinds == kind].sum()
        )
        for kind in np.unique(kinds.astype(str))
    }
    return [experiment.sample(slowness) for experiment in experiments]


def typical(times: Sequence[float] | Sequence[Sequence[float]]) -> np.ndarray:
    """The mean without the tenth at either end, or at least one of three and more, along the first axis.

    A shared core has a fast and a slow speed; a median jumps from one to the other.
    """
    cut = -(-len(times) // 10) if len(times) > 2 else 0
    return np.sort(times, axis=0)[cut : len(times) - cut].mean(axis=0)


def measure(
    experiments: list[Experiment], rounds: int, progress: Callable[[str], None] | None = None
) -> None:
    """All in turn, several times: a slow moment of the machine then spoils no experiment as a whole.

    On a slow machine, no further round begins after `SECONDS`.
    """
    began = time.perf_counter()
    with thread_limits(1):
        for number in range(rounds):
            if progress:
                progress(f"measuring kernels, round {number + 1} of {rounds}")
            for experiment in experiments:
                experiment.run()
            if time.perf_counter() - began > SECONDS:
                break


@dataclass(frozen=True)
class Molecule:
    """Orbitals per irrep of an imagined molecule, and the size of tiles to cut them into."""

    occ: tuple[int, ...]
    vir: tuple[int, ...]
    tile: int = 16


def program(molecule: Molecule) -> Experiment:
    """An iteration of CCSD; all numbers are equal, for time does not depend on them."""
    spaces = {
        "ijkl": Space.spatial("o", molecule.occ, molecule.tile),
        "abcd": Space.spatial("v", molecule.vir, molecule.tile),
    }
    graph = inspect(plan_program(parse(CCSD), spaces))
    buffers = [
        np.full(graph.length_of(name) * (name in graph.touched), 1.0 if name in graph.vectors else 1e-3)
        for name in graph.buffers
    ]
    return Experiment(graph, buffers, far_share(working_set(graph), last_level_cache()))


def triples(molecule: Molecule) -> Experiment:
    """(T) of an imagined molecule; all operands are equal."""
    graph = inspect_triples(TriplesBlocks((OrbitalSet(molecule.occ, molecule.vir, molecule.tile),)))
    buffers = [np.full(graph.length_of(name), 1e-3) for name in graph.buffers]
    gaps = buffers[graph.buffers.index("energies")]
    gaps[: sum(molecule.occ)], gaps[sum(molecule.occ) :] = -1.0, 1.0
    return Experiment(graph, buffers, 0.0)


def products(shapes: np.ndarray, size: int, seed: int = 0) -> Experiment:
    """Products of the given shapes (m, n, k, transpose_a, transpose_b) in buffers of `size` bytes.

    Their operands lie anywhere, so that they are in no core's own cache, in rows of up to twice their length.
    """
    rng = np.random.default_rng(seed)
    g: Table = np.zeros(len(shapes), GEMM)
    g["m"], g["n"], g["k"], g["transpose_a"], g["transpose_b"] = shapes.T
    rows = {"a": np.where(g["transpose_a"], g["k"], g["m"]), "b": np.where(g["transpose_b"], g["n"], g["k"])}
    cols = {"a": np.where(g["transpose_a"], g["m"], g["k"]), "b": np.where(g["transpose_b"], g["k"], g["n"])}
    rows["c"], cols["c"] = g["m"], g["n"]
    stride = {key: (cols[key] * rng.choice([1.0, 1.0, 1.3, 2.0], len(g))).astype(np.int64) for key in "abc"}
    needed = {key: (rows[key] - 1) * stride[key] + cols[key] for key in "abc"}
    length = max(size // 24, *(int(needed[key].max()) for key in "abc"))
    for number, key in enumerate("abc"):
        g[key], g[f"ld{key}"] = number, stride[key]
        g[f"{key}_offset"] = (length - needed[key]) * rng.random(len(g))
    g["alpha"], g["beta"] = 1e-3, rng.choice([0.0, 1.0], len(g))
    tasks: Table = np.zeros(len(g), TASK)
    tasks["kind"], tasks["first"], tasks["count"] = KINDS.index("gemm"), np.arange(len(g)), 1
    graph = TaskGraph.bare(tasks, {"gemm": g})
    buffers = [np.full(length, 1e-3) for _ in range(3)]
    return Experiment(graph, buffers, far_share(24 * length, last_level_cache()))


def kinds_of(graph: TaskGraph) -> np.ndarray:
    """Of each task the kernel of its first product, or the kind of its records."""
    kinds = np.array(KINDS, object)[graph.tasks["kind"]]
    products = np.flatnonzero(kinds == "gemm")
    kernel = kernels_of(graph.records["gemm"])
    kinds[products] = np.array(KERNELS, object)[kernel[graph.tasks["first"][products]]]
    return kinds
