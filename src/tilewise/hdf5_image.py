"""HDF5 files that are written in one stream: everything but the large arrays is made in memory first.

The arrays get their places in the file, and nothing is put there. What the file will be is then a run of
bytes in which arrays fill the gaps, piece by piece, from wherever they come.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator

import h5py
import numpy as np

PAGE = 1 << 12


class _Sparse(io.RawIOBase):
    """A file in memory that keeps only those pages that were written to."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[int, bytearray] = {}
        self.length = self.place = 0

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self.place = offset + (0, self.place, self.length)[whence]
        return self.place

    def tell(self) -> int:
        return self.place

    def truncate(self, size: int | None = None) -> int:
        self.length = self.place if size is None else size
        return self.length

    def readinto(self, out: memoryview) -> int:  # type: ignore[override]
        count = max(0, min(len(out), self.length - self.place))
        out[:count] = self.content(self.place, self.place + count)
        self.place += count
        return count

    def write(self, data: bytes) -> int:  # type: ignore[override]
        view, at = memoryview(data).cast("B"), 0
        while at < len(view):
            page, inner = divmod(self.place, PAGE)
            count = min(PAGE - inner, len(view) - at)
            self.pages.setdefault(page, bytearray(PAGE))[inner : inner + count] = view[at : at + count]
            at += count
            self.place += count
        self.length = max(self.length, self.place)
        return len(view)

    def content(self, first: int, last: int) -> bytes:
        """Bytes of the file; those that were not written are 0."""
        pages = range(first // PAGE, -(-last // PAGE))
        empty = bytes(PAGE)
        joined = b"".join(bytes(self.pages.get(page, empty)) for page in pages)
        start = first - (pages.start * PAGE if len(pages) else first)
        return joined[start : start + last - first]


Pieces = Iterable[np.ndarray]
"""An array of float64 from its beginning to its end, in pieces."""


class Image:
    """A file to be: `array` makes room for an array, `stream` gives all bytes, arrays in their places."""

    def __init__(self, fill: Callable[[h5py.File, Image], None]) -> None:
        """`fill` makes all of the file; it calls `array` instead of creating large datasets."""
        self._file, self._places = _Sparse(), list[tuple[h5py.Dataset, Pieces]]()
        self._gaps: list[tuple[int, int, Pieces]] = []
        with h5py.File(self._file, "w", libver="v108") as file:
            fill(file, self)
            file.flush()
            for dataset, pieces in self._places:
                size = int(dataset.id.get_storage_size())
                if size:
                    self._gaps.append((int(dataset.id.get_offset()), size, pieces))
        self._gaps.sort(key=lambda gap: gap[0])

    def array(self, group: h5py.Group, name: str, length: int, pieces: Pieces) -> None:
        """Room for an array of float64 in a group."""
        wish = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        wish.set_layout(h5py.h5d.CONTIGUOUS)
        wish.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        wish.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((length,))
        made = h5py.h5d.create(group.id, name.encode(), h5py.h5t.IEEE_F64LE, space, wish)
        self._places.append((h5py.Dataset(made), pieces))

    def stream(self) -> Iterator[bytes | memoryview]:
        """All bytes, in order; pieces are asked for one by one."""
        at = 0
        for first, size, pieces in self._gaps:
            yield self._file.content(at, first)
            given = 0
            for piece in pieces:
                data = np.ascontiguousarray(piece, "<f8").view(np.uint8).data
                given += len(data)
                yield data
            if given != size:
                raise ValueError(f"an array of {size} bytes was given {given}")
            at = first + size
        yield self._file.content(at, self._file.length)
