"""The native executor, simulator, search for dependencies and integral transformation."""

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
) -> tuple[int, str, list[tuple[int, ...]]]: ...
def simulate(
    tasks: Mapping[str, np.ndarray],
    schedule: Mapping[str, np.ndarray],
    machine: Mapping[str, np.ndarray | float],
    trace: np.ndarray,
    table: np.ndarray,
) -> list[float]: ...
def half_transform(*, out: np.ndarray, n_workers: int, **arguments: np.ndarray | bool) -> None: ...
def second_half(*, buffers: Sequence[np.ndarray], n_workers: int, **arguments: np.ndarray) -> None: ...
