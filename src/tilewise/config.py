"""What the machine and the user's environment offer: the only module that reads the environment.

| variable               | meaning                                               | default          |
|------------------------|-------------------------------------------------------|------------------|
| `TILEWISE_NUM_THREADS` | workers, when the caller does not say                 | OMP_NUM_THREADS  |
| `OMP_NUM_THREADS`      | the same, for scripts that set only this one          | CPUs of this job |
| `TILEWISE_CACHE_DIR`   | where measured kernel speeds are kept                 | user's cache     |

Which rank of how many this process is, is read from the variables of mpiexec, mpirun and srun (`launcher`).
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import platformdirs
from threadpoolctl import ThreadpoolController

from tilewise.arguments import MOST_THREADS, digits, whole_number
from tilewise.errors import InputError
from tilewise.wording import counted

_controller: tuple[int, ThreadpoolController] | None = None
_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")
_PROCESSORS = Path("/sys/devices/system/cpu")
_UNLIMITED = 1 << 60  # cgroup v1 writes a huge number for "no limit"
_UNITS = {"K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_MEMORY = re.compile(r"\s*([0-9.]+(?:e\+?[0-9]+)?)\s*(?:([kmgt])(i?)b?)?\s*", re.IGNORECASE)


_LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
)
"""Variables of rank and size. Slurm's alone are those of every process of srun, with MPI or without."""


@dataclass(frozen=True)
class Launcher:
    """What a launcher such as mpiexec tells a process of its place."""

    rank: int
    size: int | None
    """None where it does not tell."""


def launcher() -> Launcher | None:
    """The launcher of this process, or None if it was started alone or with nobody beside it."""
    for rank_name, size_name in _LAUNCHERS:
        rank, size = (digits(os.environ.get(name, "")) for name in (rank_name, size_name))
        if rank is not None and size is not None:
            return Launcher(rank, size) if size > 1 else None
    rank = digits(os.environ.get("PMIX_RANK", ""))
    return None if rank is None else Launcher(rank, None)


def environment_without_launcher() -> dict[str, str]:
    """The environment for a launcher that this process starts: without what its own has put there."""
    own = ("PMI_", "PMIX_", "OMPI_COMM_", "HYDI_", "MPI_LOCAL", "MV2_COMM_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


def available_cpus() -> int:
    """CPUs that this process may use: its affinity mask, cut by a container's CPU quota."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    for folder in _cgroup_folders("cpu"):
        quota = _cpu_quota(folder)
        if quota is not None:
            count = min(count, math.ceil(quota))
    return max(count, 1)


def processors() -> list[int]:
    """The processors that this process may use, or none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def processor_of_each(workers: int) -> tuple[int, ...]:
    """A processor for each worker to be bound to; refused if there are not enough."""
    found = tuple(processors()[:workers])
    if len(found) < workers:
        raise InputError(
            f"{workers} workers are to be bound to {len(found)} processors: "
            f"ask for {counted(len(found), 'thread')} or fewer"
        )
    return found


def cache_groups(workers: int) -> tuple[tuple[int, ...], ...]:
    """Workers that share a last-level cache, if each has a processor of its own, in their order."""
    allowed = processors()
    groups: dict[str, list[int]] = {}
    for w in range(workers):
        shared = _last_level_cache(allowed[w]) if w < len(allowed) else None
        groups.setdefault(shared or "", []).append(w)
    return tuple(map(tuple, groups.values()))


def _last_level_cache(processor: int) -> str | None:
    """The list of processors that share the largest cache of this one."""
    folder = _PROCESSORS / f"cpu{processor}" / "cache"
    found = sorted(folder.glob("index*"), key=lambda index: (_number(index / "level") or 0, index.name))
    return _read(found[-1] / "shared_cpu_list") if found else None


def last_level_cache() -> int:
    """Bytes of the last-level cache of the first processor; a guess where the system does not tell."""
    folder = _PROCESSORS / f"cpu{(processors() or [0])[0]}" / "cache"
    sizes = [(_read(index / "size") or "").strip() for index in folder.glob("index*")]
    known = [int(text[:-1]) * 1024 for text in sizes if text[:-1].isdecimal() and text.endswith("K")]
    return max(known, default=16 << 20)


def memory_limit() -> int:
    """Bytes this process may ever use: physical memory, cut by a container's limit."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        physical = 4 * 1000**3  # unknown system: assume a small machine rather than fail
    limits = [limit for folder in _cgroup_folders("memory") for limit, _ in _cgroup_memory(folder)]
    return min([physical, *limits])


def default_memory() -> int:
    """The default budget in bytes: 80 % of what is free now, so that the rest of the job can live."""
    free = [memory_limit()]
    match = re.search(r"MemAvailable:\s*(\d+) kB", _read(_PROC / "meminfo") or "")
    if match:
        free.append(int(match[1]) * 1024)
    for folder in _cgroup_folders("memory"):
        free.extend(max(limit - used, 0) for limit, used in _cgroup_memory(folder))
    return max(int(0.8 * min(free)), 64 * 1000**2)


def resident_memory() -> int:
    """Bytes that this process has in memory now."""
    pages = (_read(Path("/proc/self/statm")) or "").split()
    if len(pages) > 1:
        return int(pages[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def parse_memory(value: str | int | float) -> int:
    """Bytes from "8GB", "500 MB", "2GiB"; a bare number counts MB, as PySCF's max_memory does."""
    match = None if isinstance(value, bool) else _MEMORY.fullmatch(str(value))
    try:
        number = float(match[1]) if match else math.nan
    except ValueError:
        number = math.nan
    if match is None or not math.isfinite(number) or number <= 0:
        raise InputError(
            f"'{value}' is not an amount of memory: write 8GB, 500MB, 2GiB, or a number of MB such as 8000"
        )
    if match[2] is None:
        factor = _UNITS["M"]
    elif match[3]:
        factor = _BINARY_UNITS[match[2].upper() + "i"]
    else:
        factor = _UNITS[match[2].upper()]
    return max(int(number * factor), 1)


def format_bytes(count: int | float) -> str:
    """A size for people, in decimal units: 1.8 GB."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or abs(size) >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def resolve_threads(threads: int | None = None) -> int:
    """The number of workers: what the caller asks for, else the environment, else all CPUs.

    An explicit number is taken as it is, also above `available_cpus()`; one from the environment
    is capped there, because it is often inherited from a larger machine's profile.
    """
    if threads is not None:
        return whole_number("threads", threads, most=MOST_THREADS)
    available = available_cpus()
    return min(next(iter(_asked_threads().values()), available), available)


def threads_note(threads: int | None = None) -> str:
    """What to say if more threads are asked for than there are CPUs for."""
    available = available_cpus()
    cpus = counted(available, "CPU")
    if threads is not None:
        return f"{threads} threads share {cpus}" if threads > available else ""
    for variable, asked in _asked_threads().items():
        if asked > available:
            return f"{variable} asks for {asked} threads, but this process may use {cpus}"
    return ""


def _asked_threads() -> dict[str, int]:
    """The variable of the environment that asks for a number of threads, if there is one."""
    for variable in ("TILEWISE_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(variable, "").strip()
        first = text.split(",")[0].strip()  # OpenMP allows one number per nesting level
        if asked := digits(first):
            return {variable: asked}
        if text and variable.startswith("TILEWISE"):
            raise InputError(f"environment variable {variable}='{text}': it must be a whole number from 1 up")
    return {}


def cache_dir() -> Path:
    """The folder for measurements that outlive a run; made by whoever writes to it."""
    override = os.environ.get("TILEWISE_CACHE_DIR", "").strip()
    return Path(override).expanduser() if override else Path(platformdirs.user_cache_dir("tilewise"))


_held: tuple[int, ThreadpoolController] | None = None
"""The limit of the innermost block that is open, and the pools that it holds."""


@contextmanager
def thread_limits(count: int) -> Iterator[None]:
    """Hold every BLAS and OpenMP pool of the process (NumPy's, SciPy's, PySCF's) to `count`, or to the CPUs.

    With more than these a pool gains nothing, and OpenMP ends the process if the system refuses a thread.
    Libraries loaded inside the block are not held. On exit each pool has its own size again.
    A block inside of one with the same limit costs nothing.
    """
    global _held
    if count < 1:
        raise InputError(f"thread limit {count}: it must be a whole number from 1 up")
    limit = 1 if count == 1 else min(count, available_cpus())  # which are looked up in files, every time
    before, wanted = _held, (limit, _pools())
    if wanted == before:
        yield
        return
    with wanted[1].limit(limits=limit):
        _held = wanted
        try:
            yield
        finally:
            _held = before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold every BLAS pool to one thread, and leave those of OpenMP as they are.

    Between small products BLAS threads spin, beside all others that could work.
    """
    with _pools().limit(limits={"blas": 1}):
        yield


@cache
def blas_name() -> str:
    """Name, version and kernels of the BLAS that products go to: the one that SciPy has loaded."""
    loaded = [pool for pool in _pools().info() if pool["user_api"] == "blas"]
    loaded.sort(key=lambda pool: ("scipy" not in pool["filepath"], pool["filepath"]))
    if not loaded:
        return "unknown BLAS"
    words = (loaded[0].get(key) for key in ("internal_api", "version", "architecture"))
    return " ".join(str(word) for word in words if word)


def find_pools() -> None:
    """Looks up the pools of all libraries that are loaded now, so that the first calculation need not."""
    _pools()


def _pools() -> ThreadpoolController:
    """The pools of the process; looked up again only when libraries have been loaded since."""
    global _controller
    if _controller is not None and _controller[0] != len(sys.modules):
        new = islice(reversed(sys.modules), max(0, len(sys.modules) - _controller[0]))
        if all(name.partition(".")[0] in sys.stdlib_module_names for name in new):
            _controller = (len(sys.modules), _controller[1])
    if _controller is None or _controller[0] != len(sys.modules):
        _controller = (len(sys.modules), ThreadpoolController())
    return _controller[1]


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None


def _number(path: Path) -> int | None:
    text = (_read(path) or "").strip()
    return int(text) if text.lstrip("-").isdecimal() else None


def _cgroup_folders(controller: str) -> list[Path]:
    """Folders whose limits hold for this process: its own and all above, cgroup v2 and v1."""
    folders = [_CGROUP, _CGROUP / controller]
    for line in (_read(_PROC / "self" / "cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names and controller not in names.split(","):
            continue
        root = _CGROUP / controller if names else _CGROUP
        parts = Path(path.lstrip("/")).parts
        folders += [root.joinpath(*parts[: depth + 1]) for depth in range(len(parts))]
    return folders


def _cpu_quota(folder: Path) -> float | None:
    """CPUs' worth of time per period, or None without a quota."""
    words = (_read(folder / "cpu.max") or "").split()
    if len(words) == 2 and words[0].isdecimal() and int(words[1]) > 0:
        return int(words[0]) / int(words[1])
    quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
    if quota is not None and period is not None and quota > 0 and period > 0:
        return quota / period
    return None


def _cgroup_memory(folder: Path) -> list[tuple[int, int]]:
    """(limit, used) of a cgroup folder, page cache that can be dropped not counted as used."""
    found = []
    statistics = _read(folder / "memory.stat") or ""
    for limit_name, used_name, cache_name in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit = _number(folder / limit_name)
        if limit is None or limit >= _UNLIMITED:
            continue
        cache = re.search(rf"^{cache_name} (\d+)$", statistics, re.MULTILINE)
        used = (_number(folder / used_name) or 0) - (int(cache[1]) if cache else 0)
        found.append((limit, max(used, 0)))
    return found
