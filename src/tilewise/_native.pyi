"""The native executor and integral transformation."""

from collections.abc import Mapping, Sequence

import numpy as np

narrow_scratch: int

def use_dgemm(capsule: object) -> None: ...
def record_sizes() -> dict[str, int]: ...
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
) -> tuple[int, str, int]: ...
def half_transform(
    *, kets: np.ndarray, out: np.ndarray, n_workers: int, **orbitals: np.ndarray | bool
) -> None: ...
def unpack_rows(packed: np.ndarray, n_pairs: int, rows: np.ndarray, out: np.ndarray) -> None: ...
