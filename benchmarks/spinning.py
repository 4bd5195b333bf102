"""What the items of benchmarks/loop.py do. A module of its own, so that joblib sends its name alone."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass

from tilewise.config import processors


def spin(rounds: int) -> bytes:
    """Computes for a time that is proportional to `rounds`, in the C library.

    A loop of Python takes up to a tenth more or less time by where its process happens to have free memory.
    """
    return hashlib.pbkdf2_hmac("sha256", b"item", b"loop", max(1, rounds))


@dataclass(frozen=True)
class Bound:
    """`spin`, by a process that binds itself to a processor before its first item.

    It takes the first of two processors that has no file in the folder; without a folder it stays free.
    """

    folder: str

    def __call__(self, rounds: int) -> bytes:
        if self.folder and len(os.sched_getaffinity(0)) > 1:
            os.sched_setaffinity(0, {self._claimed()})
        return spin(rounds)

    def _claimed(self) -> int:
        for processor in processors()[:2]:
            with suppress(FileExistsError):
                os.close(os.open(f"{self.folder}/{processor}", os.O_CREAT | os.O_EXCL))
                return processor
        raise RuntimeError("a program has more than two processes")
