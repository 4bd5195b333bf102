"""The native executor, simulator, inspection of sorts and dependencies, integrals and transformation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

max_axes: int
max_sums: int
max_pairs: int
kinds: tuple[str, ...]
accesses: tuple[str, ...]
takings: tuple[str, ...]
kernels: tuple[str, ...]
own_kernels: bool
few_rows_limit: int
short_sum_limit: int
strip_rows: int
strip_cols: int
narrow_limit: int
narrow_least_rows: int
narrow_least_depth: int
narrow_rows: int
narrow_depth: int
narrow_scratch: int
worker_counts: tuple[str, ...]
simulated_columns: tuple[str, ...]
slab_width: int

def dependencies(
    task: np.ndarray, panel: np.ndarray, access: np.ndarray, n_tasks: int, n_panels: int, ordered: bool
) -> np.ndarray: ...
def use_dgemm(capsule: object) -> None: ...
def record_layouts() -> dict[str, list[tuple[str, int, str, int]]]: ...
def product_kernels(gemms: np.ndarray, out: np.ndarray) -> None: ...
def run(
    tables: Mapping[str, np.ndarray],
    schedule: Mapping[str, np.ndarray],
    buffers: Sequence[np.ndarray],
    partial: np.ndarray,
    scratch: np.ndarray,
    trace: np.ndarray,
    n_workers: int,
    n_locks: int,
    chunk: int,
    arena: int,
    processors: Sequence[int],
    shift: float = 0.0,
) -> tuple[int, str, list[tuple[int, ...]]]: ...
def simulate(
    tasks: Mapping[str, np.ndarray],
    schedule: Mapping[str, np.ndarray],
    machine: Mapping[str, np.ndarray | float],
    trace: np.ndarray,
    table: np.ndarray,
) -> list[float]: ...

class Group:
    def __init__(
        self,
        packing: str,
        tile_sizes: Sequence[np.ndarray],
        tiles: np.ndarray,
        parity: np.ndarray,
        sector: np.ndarray,
        size: np.ndarray,
        offset: np.ndarray,
        panel: np.ndarray,
        first: np.ndarray,
    ) -> None: ...

class Places:
    def __init__(
        self,
        rows: Group,
        cols: Group,
        sector_of: np.ndarray,
        width: np.ndarray,
        start: np.ndarray,
        panel_of: np.ndarray,
        row_panel: np.ndarray,
        col_panel: np.ndarray,
        parity: np.ndarray,
        bands: Sequence[np.ndarray],
    ) -> None: ...
    def alone(self) -> Places: ...

def inspect_sort(
    places: Places,
    letters: str,
    joined: tuple[bool, bool],
    elementwise: bool,
    targets: Sequence[int],
    accumulate: Sequence[bool],
    sources: Sequence[tuple[str, Places, int]],
    passes: Sequence[tuple[Sequence[int], Sequence[tuple[tuple[Sequence[Any], str], Sequence[float]]]]],
    chunk: int,
) -> tuple[Any, ...]: ...
def sort_chunks(blocks: np.ndarray, chunk: int) -> np.ndarray: ...
def sort_walks(blocks: np.ndarray, reads: np.ndarray, views: np.ndarray, chunk: int) -> np.ndarray: ...
def adapt_pairs(
    *,
    integrals: np.ndarray,
    n_pairs: int,
    out: Sequence[np.ndarray],
    n_workers: int,
    **classes: np.ndarray,
) -> None: ...
def adapt_quartets(
    *, libcint: Libcint, threshold: float, out: Sequence[np.ndarray], n_workers: int, **classes: np.ndarray
) -> None: ...
def first_half(*, out: np.ndarray, n_workers: int, **arguments: np.ndarray | int) -> None: ...
def second_half(
    *, buffers: Sequence[np.ndarray], n_workers: int, **arguments: np.ndarray | int | Sequence[np.ndarray]
) -> None: ...
def exchange_half(*, out: np.ndarray, n_workers: int, **arguments: np.ndarray | int) -> None: ...

class Libcint:
    def __init__(
        self,
        *,
        integral: int,
        optimizer: int,
        release: int,
        cartesian: bool,
        atm: np.ndarray,
        bas: np.ndarray,
        env: np.ndarray,
    ) -> None: ...
    @property
    def n_shells(self) -> int: ...
    @property
    def n_functions(self) -> int: ...

def quartet(libcint: Libcint, i: int, j: int, k: int, l: int, out: np.ndarray) -> None: ...
def diagonal(libcint: Libcint, out: np.ndarray, n_workers: int) -> None: ...
def schwarz(libcint: Libcint, out: np.ndarray, n_workers: int) -> None: ...
