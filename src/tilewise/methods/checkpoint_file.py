"""Where a run keeps its amplitudes: a file of its own, also beside runs of other molecules of that name."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tilewise.arguments import path_or_none
from tilewise.methods.checkpoint import Checkpoint, belongs_to, is_owned
from tilewise.output_files import beside

SUFFIX = ".tilewise.h5"


@dataclass
class CheckpointFile:
    """A file that is written again after each iteration.

    One with an owner leaves the files of other owners alone: if `m.tilewise.h5` belongs to another input,
    the first write takes `m-2.tilewise.h5`, and so on, and `path` says so from then on.
    """

    path: Path
    owner: str = ""
    _is_taken: bool = field(default=False, init=False)

    @classmethod
    def wished(cls, wish: str | Path | CheckpointFile | None) -> CheckpointFile | None:
        """What a caller wishes for: a file by its name, one that is ready, or none."""
        if isinstance(wish, CheckpointFile):
            return wish
        path = path_or_none("checkpoint", wish)
        return cls(path) if path else None

    @classmethod
    def of_input(cls, source: Path, frame: int | None = None) -> CheckpointFile:
        """In the current folder, with the name of the input; its way from here is the owner."""
        which = _frame_name(frame)
        return cls(Path(f"{source.stem}{which}{SUFFIX}"), f"{os.path.relpath(source)}{which}")

    def write(self, saved: Checkpoint) -> None:
        """Raises OSError if the disk does not take it; what was there before is then still there."""
        if not self.owner:
            saved.write(self.path)
            return
        with beside(self.path) as place:
            saved.write_to(place, self.owner)
            if self._is_taken:
                os.replace(place, self.path)
                return
            self.path = next(path for path in self._names() if self._takes(path, place))
            self._is_taken = True

    def _names(self) -> Iterator[Path]:
        """The owner's file if there is one, then one name after the other."""
        stem = self.path.name.removesuffix(SUFFIX)
        numbered = self.path.parent.glob(f"{glob.escape(stem)}-*{SUFFIX}")
        yield from (path for path in (self.path, *sorted(numbered)) if belongs_to(path, self.owner))
        yield self.path
        for number in count(2):
            yield self.path.with_name(f"{stem}-{number}{SUFFIX}")

    def _takes(self, path: Path, place: Path) -> bool:
        """Moves what was written to `path`, unless it is another owner's, be it since this moment."""
        if not os.path.lexists(path):
            try:
                os.link(place, path)  # unlike a renaming, it fails if there is a file by now
                return True
            except FileExistsError:
                pass
            except OSError:  # a file system without links
                os.replace(place, path)
                return True
        if is_owned(path) and not belongs_to(path, self.owner):
            return False
        os.replace(place, path)
        return True


def _frame_name(frame: int | None) -> str:
    """The end of the name of a checkpoint of one geometry among several: the third, or the last but one."""
    if frame is None:
        return ""
    return f"-frame{frame}" if frame > 0 else f"-last{-frame if frame < -1 else ''}"
