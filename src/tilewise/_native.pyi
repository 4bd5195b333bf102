"""The native executor, simulator, inspection of sorts and dependencies, and integral transformation."""

from collections.abc import Mapping, Sequence

import numpy as np

narrow_scratch: int
columns_at_once: int

def dependencies(
    task: np.ndarray, panel: np.ndarray, access: np.ndarray, n_tasks: int, n_panels: int, ordered: bool
) -> np.ndarray: ...
def use_dgemm(capsule: object) -> None: ...
def record_sizes() -> dict[str, int]: ...
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
    passes: Sequence[tuple[Sequence[int], Sequence[tuple[tuple[Sequence, str], Sequence[float]]]]],
    chunk: int,
) -> tuple: ...
def sort_scratch(blocks: np.ndarray, chunk: int) -> int: ...
def half_transform(*, out: np.ndarray, n_workers: int, **arguments: np.ndarray | bool) -> None: ...
def second_half(*, buffers: Sequence[np.ndarray], n_workers: int, **arguments: np.ndarray) -> None: ...
