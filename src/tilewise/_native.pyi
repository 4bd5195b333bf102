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
few_rows_limit: int
short_sum_limit: int
strip_rows: int
strip_cols: int
narrow_limit: int
streamed_least_rows: int
streamed_least_depth: int
streamed_rows: int
streamed_depth: int
streamed_cols: int
streamed_scratch: int
tile_rows: tuple[tuple[int, int, int], tuple[int, int, int]]
worker_counts: tuple[str, ...]
simulated_columns: tuple[str, ...]
slab_width: int
triples_forms: tuple[str, ...]
largest_triples_tile: int
segment_lanes: int
square_slab: int
square_panels: tuple[int, int]

def dependencies(
    task: np.ndarray, panel: np.ndarray, access: np.ndarray, n_tasks: int, n_panels: int, ordered: bool
) -> np.ndarray: ...
def gather(
    jobs: np.ndarray,
    source: np.ndarray,
    one: np.ndarray,
    one_factor: np.ndarray,
    other: np.ndarray,
    other_factor: np.ndarray,
    scale: float,
    out: np.ndarray,
    workers: int,
) -> None: ...
def weighted_products(
    vectors: Sequence[np.ndarray], weights: np.ndarray, rows: np.ndarray, out: np.ndarray, workers: int
) -> None: ...
def combine(coefficients: np.ndarray, rows: np.ndarray, out: np.ndarray, workers: int) -> None: ...
def triangle_products(triangle: np.ndarray, vectors: np.ndarray, out: np.ndarray, workers: int) -> None: ...
def use_dgemm(capsule: object) -> None: ...
def record_layouts() -> dict[str, list[tuple[str, int, str, int]]]: ...
def choose_pages(numbers: np.ndarray) -> None: ...
def numbers(count: int, cleared: int, workers: int) -> np.ndarray: ...
def keep_pages() -> None: ...
def give_pages_back() -> None: ...
def settle_memory() -> None: ...
def register_lanes() -> int: ...
def use_register_lanes(most: int) -> None: ...
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
    gates: Gates | None = None,
) -> tuple[int, str, list[tuple[int, ...]]]: ...

class Gates:
    def __init__(
        self,
        first: Sequence[int],
        tasks: Sequence[int],
        group_first: Sequence[int],
        group_tasks: Sequence[int],
    ) -> None: ...
    def open(self, gates: Sequence[int]) -> None: ...
    def ended(self, seconds: float) -> list[int]: ...
    def is_waiting(self) -> bool: ...
    def is_over(self) -> bool: ...
    def stop(self) -> None: ...

box_start: int

class Carrier(Gates):
    gets: int
    bytes: int
    told: int
    spans: list[tuple[int, int]]
    def __init__(
        self,
        first: Sequence[int],
        tasks: Sequence[int],
        group_first: Sequence[int],
        group_tasks: Sequence[int],
        boxes: Sequence[np.ndarray],
        rank: int,
        run: int,
        inbound: np.ndarray,
        theirs: Sequence[np.ndarray],
        ours: Sequence[np.ndarray],
        outbound: np.ndarray,
        ways: np.ndarray,
    ) -> None: ...
    def start(self) -> None: ...
    def watch(self, seconds: float) -> bool: ...

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
    *,
    function_image: np.ndarray,
    function_sign: np.ndarray,
    libcint: Libcint,
    threshold: float,
    first_shell: int,
    last_shell: int,
    start: np.ndarray,
    out: Sequence[np.ndarray],
    n_workers: int,
    **classes: np.ndarray,
) -> None: ...

class Scratch:
    def __init__(self, n_workers: int) -> None: ...

def first_half_of_runs(*, out: np.ndarray, scratch: Scratch, **arguments: np.ndarray | int) -> None: ...
def first_half(*, out: Sequence[np.ndarray], scratch: Scratch, **arguments: np.ndarray | int) -> None: ...
def second_half(
    *,
    buffers: Sequence[np.ndarray],
    scratch: Scratch,
    **arguments: np.ndarray | int | Sequence[np.ndarray],
) -> None: ...
def exchange_half(
    *,
    half: Sequence[np.ndarray],
    out: np.ndarray,
    scratch: Scratch,
    **arguments: np.ndarray | int,
) -> None: ...

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
    @property
    def shell_sizes(self) -> list[int]: ...

def quartet(libcint: Libcint, i: int, j: int, k: int, l: int, out: np.ndarray) -> None: ...
def diagonal(libcint: Libcint, out: np.ndarray, n_workers: int) -> None: ...
def schwarz(libcint: Libcint, out: np.ndarray, n_workers: int) -> None: ...

column_counts: tuple[str, ...]

def near_lists(
    occupied: np.ndarray,
    class_of: np.ndarray,
    hop: np.ndarray,
    n_electrons: int,
    n_classes: int,
    n_orbitals: int,
    n_workers: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def far_lists(
    occupied: np.ndarray,
    class_of: np.ndarray,
    two_orbitals: np.ndarray,
    n_electrons: int,
    n_classes: int,
    n_orbitals: int,
) -> tuple[np.ndarray, np.ndarray]: ...

class ColumnMatrix:
    def __init__(
        self,
        alpha: dict[str, np.ndarray],
        beta: dict[str, np.ndarray],
        pairing: dict[str, np.ndarray],
        n_workers: int,
    ) -> None: ...
    def set_operator(self, tables: dict[str, object]) -> None: ...
    def count(self, columns: np.ndarray) -> np.ndarray: ...
    def diagonal(self) -> np.ndarray: ...
    def density(self, x: np.ndarray, n_pairs: int) -> np.ndarray: ...
    def spin_squared(self, x: np.ndarray) -> np.ndarray: ...
    def build(
        self,
        schedule: dict[str, np.ndarray],
        columns: np.ndarray,
        room: np.ndarray,
        budget: int,
        segment: int,
        stored: np.ndarray,
        trace: np.ndarray,
        processors: Sequence[int],
    ) -> tuple[int, str, list[tuple[int, ...]]]: ...
    def multiply(
        self,
        x: np.ndarray,
        y: np.ndarray,
        diagonal: np.ndarray,
        schedule: dict[str, np.ndarray],
        columns: np.ndarray,
        trace: np.ndarray,
        processors: Sequence[int],
        with_stored: bool,
    ) -> tuple[int, str, list[tuple[int, ...]]]: ...
    def elements(self, worker: int) -> int: ...
    def bytes(self, worker: int) -> int: ...
    def columns(self, worker: int) -> list[tuple[int, np.ndarray, np.ndarray]]: ...
    def clear(self) -> None: ...
