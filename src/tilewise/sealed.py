"""HDF5 data behind a digest: HDF5 itself can crash or hang over a few wrong bits, so they are found first.

The header fills what HDF5 calls a user block: other programs read such a file as any other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from tilewise.errors import CheckpointError

HEADER = 512
"""Bytes in front of the data: the format, a digest of what follows, and perhaps more lines."""


def digest(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()


def write_sealed(place: Path, form: str, image: bytes | memoryview, *more: str) -> None:
    """Writes plain bytes, for HDF5 crashes on a full disk. Raises OSError if the disk does not take them."""
    write_sealed_stream(place, form, [image], *more)


def write_sealed_stream(place: Path, form: str, stream: Iterable[bytes | memoryview], *more: str) -> None:
    """The same with bytes that come one after the other; the digest goes to its place when all have come."""
    found = hashlib.sha256()
    with open(place, "wb") as disk:
        disk.write(bytes(HEADER))
        for part in stream:
            found.update(part)
            disk.write(part)
        disk.seek(0)
        disk.write("\n".join((form, found.hexdigest(), *more, "")).encode().ljust(HEADER, b"\0"))
        disk.flush()
        os.fsync(disk.fileno())


def header_of(path: Path) -> list[bytes]:
    """The lines of the header, the format first; none of a file that cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(HEADER).split(b"\n")[:-1]
    except OSError:
        return []


def read_sealed(path: Path, form: str, what: str) -> bytes:
    """The HDF5 data of a file that is whole; `what` it should be is said of any other."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: it cannot be read ({error.strerror or error})") from error
    header, image = content[:HEADER].split(b"\n"), content[HEADER:]
    if header[0] != form.encode():
        raise CheckpointError(f"{path}: not a {what} of tilewise")
    if len(header) < 3 or header[1] != digest(image).encode():
        raise CheckpointError(f"{path}: truncated or corrupt {what}")
    return image
