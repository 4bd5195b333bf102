"""A rank that fails ends all of them, and says who it was and why.

MPI itself does not: where one rank leaves, the others wait for it for ever. Errors that all ranks make, as of
wrong input, stay ordinary errors; whatever happens to one rank alone ends the job, and so does a task that
fails.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from tilewise.errors import TaskError, TilewiseError
from tilewise.execute.mpi.world import World, world

_COMMON = "_tilewise_all_ranks_failed"


def reason_of(error: BaseException) -> str:
    """An error in one line: our own are sentences, of others the kind is said too."""
    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, TilewiseError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def code_of(error: BaseException) -> int:
    """The exit code of a job that an error ends: 130 after Ctrl-C, as of shells."""
    return 130 if isinstance(error, KeyboardInterrupt) else 1


@contextmanager
def together(ranks: World) -> Iterator[None]:
    """In this block an error of one rank ends all; one that all ranks make is raised on each."""
    try:
        yield
    except BaseException as error:
        if not getattr(error, _COMMON, False):
            # What a task has made of a fault goes from rank to rank: each says what it has met.
            is_of_task = isinstance(error, TaskError) and ranks.size > 1
            if is_of_task or not ranks.all_failed():
                ranks.abort(reason_of(error), code_of(error))
            with contextlib.suppress(AttributeError):
                setattr(error, _COMMON, True)
        raise


def end_all_ranks(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The excepthook of ranks: an error that nobody caught."""
    try:
        ranks = world()
    except TilewiseError:  # there is no MPI: each says it for itself
        sys.__excepthook__(kind, error, trace)
        return
    is_common = getattr(error, _COMMON, False) or ranks.all_failed()
    if not is_common or ranks.rank == 0:
        sys.__excepthook__(kind, error, trace)
    if not is_common:
        ranks.abort(reason_of(error))
