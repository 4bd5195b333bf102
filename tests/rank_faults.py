"""Faults of one rank at random moments of a calculation: the campaign of benchmarks/faults.py.

A case is a calculation on two to four ranks that keeps a checkpoint. One rank meets a fault. The job must
end within ten seconds and say why; then a restart, on any number of ranks, must reach the energy of an
undisturbed run.

    python tests/rank_faults.py CALCULATION            (as JSON) is what the ranks of a case run
"""

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from tilewise.config import environment_without_launcher
from tilewise.execute.mpi.launch import find_mpiexec

KINDS = ("exception", "SIGKILL", "SIGSEGV", "SIGINT", "NaN", "full disk")
LIMIT = 10.0
"""Seconds from the fault to the end of the job."""
PATIENCE = 120.0
"""Seconds after which a job that met no fault counts as hung."""
LOOK = 0.05
AGREE = 1e-8
"""Hartree between the energy of a restart and that of an undisturbed run."""


@dataclass(frozen=True)
class Fault:
    """What happens to which rank, so many seconds after it began (of a NaN: in which iteration)."""

    kind: str
    rank: int
    moment: float


@dataclass
class Case:
    """One calculation with a fault; the rest is filled in when it has run."""

    ranks: int
    fault: Fault
    restart_ranks: int
    met: bool = False
    seconds: float = 0.0
    code: int = 0
    reason: str = ""
    kept: bool = False
    error: float = 0.0
    text: str = ""
    """What was said, if something is wrong."""

    @property
    def is_right(self) -> bool:
        """No hang, a reason with the rank, and the same energy after the restart."""
        in_time = self.seconds <= LIMIT
        explained = bool(self.reason) or self.code == 0 or not self.met
        return in_time and explained and abs(self.error) < AGREE


def draw(random: Random, duration: float, kind: str | None = None) -> Case:
    """A case; `duration` is that of an undisturbed run in seconds."""
    ranks = random.randint(2, 4)
    kind = kind or random.choice(KINDS)
    rank = 0 if kind == "full disk" else random.randrange(ranks)
    moment = float(random.randint(1, 8)) if kind == "NaN" else random.uniform(0.0, duration)
    return Case(ranks, Fault(kind, rank, moment), random.randint(1, 4))


def undisturbed(fcidump: Path, folder: Path, ranks: int = 3, times: int = 2) -> tuple[float, float]:
    """Energy of a run on some ranks without a fault, and its seconds once tilewise is loaded: the least."""
    runs = [_run(fcidump, folder / "whole.h5", ranks, None, None, folder)[0] for _ in range(times)]
    return runs[0]["energy"], min(found["seconds"] for found in runs)


def run_case(case: Case, fcidump: Path, energy: float, folder: Path) -> Case:
    """Runs the calculation with its fault, and then the restart."""
    kept, met = folder / "kept.h5", folder / "met"
    for path in (kept, met):
        path.unlink(missing_ok=True)
    _, case.code, text = _run(fcidump, kept, case.ranks, None, case.fault, folder, case)
    case.met = met.exists()
    who = "rank " if case.fault.kind == "NaN" else f"rank {case.fault.rank}: "  # a NaN may travel first
    said = [line for line in text.splitlines() if line.startswith(who)]
    ended = [line for line in text.splitlines() if "EXIT STRING" in line or "diverge" in line]
    case.reason = (said + ended + [""])[0]
    case.kept = kept.exists()
    if case.seconds <= LIMIT:
        found, _, _ = _run(fcidump, None, case.restart_ranks, kept if case.kept else None, None, folder)
        case.error = found.get("energy", 1.0) - energy
    case.text = "" if case.is_right else text
    return case


def _run(fcidump, kept, ranks, restart, fault, folder, case=None):
    """(what rank 0 found, exit code, standard error); the seconds since the fault go to the case."""
    met = folder / "met"
    given = {"fcidump": str(fcidump), "checkpoint": kept and str(kept), "met": str(met)}
    given |= {"restart": restart and str(restart), "fault": fault and asdict(fault)}
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    command = [
        find_mpiexec(),
        "-n",
        str(ranks),
        sys.executable,
        __file__,
        json.dumps(given | {"result": str(result)}),
    ]
    environment = environment_without_launcher() | {"OMP_NUM_THREADS": "1"}
    with open(folder / "stderr", "w+b") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, env=environment
        )
        whole = since = 0.0
        last = time.monotonic()
        while process.poll() is None and since <= 2 * LIMIT and whole <= PATIENCE:
            time.sleep(LOOK)
            now = time.monotonic()
            passed, last = min(now - last, 4 * LOOK), now  # a pause of the whole machine does not count
            whole += passed
            since += passed if fault and met.exists() and fault.kind not in ("NaN", "full disk") else 0.0
        if process.poll() is None:
            since = max(since, 2 * LIMIT)
            process.terminate()
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        stderr.seek(0)
        text = stderr.read().decode(errors="replace")
    if case is not None:
        case.seconds = since
    found = json.loads(result.read_text()) if result.exists() else {}
    return found, process.returncode, text


# On the ranks


def calculate(given: dict) -> None:
    import tilewise

    fault = Fault(**given["fault"]) if given["fault"] else None
    if fault:
        prepare(fault, Path(given["met"]))
    began = time.perf_counter()
    ccsd = tilewise.CCSD(
        tilewise.read_fcidump(given["fcidump"]),
        threads=1,
        conv_tol=1e-10,
        conv_tol_residual=1e-8,
        checkpoint=given["checkpoint"],
        restart=given["restart"],
    ).run()
    seconds = time.perf_counter() - began
    if ccsd.world.rank == 0:
        Path(given["result"]).write_text(json.dumps({"energy": ccsd.e_tot, "seconds": seconds}))


def prepare(fault: Fault, met: Path) -> None:
    """Lets the fault happen to this process, if it is the one."""
    import threading

    from tilewise.config import launcher

    place = launcher()
    if place is None or place.rank != fault.rank:
        return
    if fault.kind == "NaN":
        _poison(int(fault.moment), met)
        return

    def happen() -> None:
        time.sleep(fault.moment)
        met.write_text(fault.kind)
        _happens(fault.kind)

    threading.Thread(target=happen, daemon=True).start()


def _happens(kind: str) -> None:
    import ctypes
    import os
    import signal
    import threading

    if kind == "exception":
        main = ctypes.c_ulong(threading.main_thread().ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(RuntimeError))
    elif kind == "full disk":
        _fill_disk()
    else:
        os.kill(os.getpid(), getattr(signal, kind))


def _fill_disk() -> None:
    """From now on checkpoints end after 1000 bytes."""
    import resource

    from tilewise.methods.checkpoint_file import CheckpointFile

    write, limits = CheckpointFile.write, resource.getrlimit(resource.RLIMIT_FSIZE)

    def cut(self, saved):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            return write(self, saved)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    CheckpointFile.write = cut


def _poison(iteration: int, met: Path) -> None:
    """From one iteration on the constants of this rank are no numbers."""
    import numpy as np

    from tilewise.execute.mpi.runner import DistributedRunner

    run, calls = DistributedRunner.run, [0]

    def poisoned(self, tasks=None, shift=0.0):
        calls[0] += tasks is None
        if tasks is None and calls[0] == iteration:
            met.write_text("NaN")
            for name in self.distribution.constants:
                if name in self.tensors:
                    self.tensors[name][:] = np.nan
        return run(self, tasks, shift)

    DistributedRunner.run = poisoned


if __name__ == "__main__":
    calculate(json.loads(sys.argv[1]))
