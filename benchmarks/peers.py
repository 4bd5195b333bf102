"""Other CCSD programs beside tilewise: Psi4 (ccenergy and fnocc) and NWChem (TCE), as found on PATH.

Each program makes its own SCF and is asked for the same thresholds. Its output is followed line by line
through a pipe and every line is stamped as it arrives, because Psi4 prints no time per iteration.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MEMORY = 10  # GB for a program, all its processes together
PEERS = {"psi4": ("psi4-ccenergy", "psi4-fnocc"), "nwchem": ("nwchem-tce",)}
BINARIES = {"psi4": ("psi4",), "nwchem": ("nwchem", "nwchem.openmpi", "nwchem.mpich")}


class PeerError(Exception):
    """A peer that did not come to an energy; the message is one sentence."""


@dataclass(frozen=True)
class Job:
    """One calculation of a neutral molecule, `frozen` orbitals out, `timeout` in seconds.

    `spin` is the number of unpaired electrons, `reference` the mean field, `symmetry` a group such as C1
    (Psi4 alone is told) or "auto", the molecule's own. `triples` asks for (T) after CCSD.
    """

    xyz: str
    basis: str
    frozen: int
    threads: int
    timeout: float
    spin: int = 0
    reference: str = "rhf"
    symmetry: str = "auto"
    triples: bool = False


@dataclass(frozen=True)
class Marks:
    """The lines of an output that mean something, as patterns; `energy` has the number as its group."""

    scf: str  # the SCF is converged
    start: str  # the first iteration begins
    iteration: str  # an iteration has ended
    converged: str
    triples: str = ""  # (T) begins
    energy: str = r"\s*CCSD correlation energy[^-]*(-\d+\.\d+)"
    e_t: str = r"\s*\(T\) energy[^-]*(-\d+\.\d+)"


def programs(wanted: str) -> list[str]:
    """The programs behind a list such as "psi4,nwchem" or "psi4-ccenergy".

    One sentence is printed for a peer that is not found.
    """
    found = []
    for name in filter(None, wanted.split(",")):
        peer = next((p for p, programs in PEERS.items() if name in (p, *programs)), None)
        if peer is None:
            names = [word for p, programs in PEERS.items() for word in (p, *programs)]
            raise SystemExit(f"unknown peer '{name}': valid are {', '.join(names)}")
        if _binary(peer):
            found += PEERS[peer] if name == peer else [name]
        else:
            print(f"{peer} is left out: no {' or '.join(BINARIES[peer])} on PATH.")
    return found


def run(program: str, job: Job) -> dict:
    """The result of one program, with the keys that the workers of ccsd.py return."""
    if job.reference != "rhf" and program != "psi4-ccenergy":
        raise PeerError("is run on closed shells alone.")
    if job.triples and not program.startswith("psi4"):
        raise PeerError("is not run with triples.")
    return RUNNERS[program](job)


def _binary(peer: str) -> str | None:
    return next(filter(None, map(shutil.which, BINARIES[peer])), None)


# The programs


def _psi4(job: Job, module: str, marks: Marks) -> dict:
    from tilewise.chem.xyz import read_xyz

    atoms, _ = read_xyz(job.xyz)
    geometry = "\n".join(f"{symbol} {x:.10f} {y:.10f} {z:.10f}" for symbol, (x, y, z) in atoms)
    text = f"""memory {MEMORY} GB
molecule mol {{
0 {job.spin + 1}
{geometry}
units angstrom
{"" if job.symmetry == "auto" else f"symmetry {job.symmetry.lower()}"}
}}
mol.update_geometry()
mol.symmetrize(1e-5)
set {{
basis {job.basis}
puream true
scf_type pk
reference {job.reference}
soscf {"true" if job.reference == "uhf" else "false"}
num_frozen_docc {job.frozen}
e_convergence 1e-8
d_convergence 1e-8
r_convergence 1e-6
cc_type conv
qc_module {module}
}}
energy('{"ccsd(t)" if job.triples else "ccsd"}')
"""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "input.dat").write_text(text)
        command = [str(_binary("psi4")), "-i", "input.dat", "-o", "stdout", "-n", str(job.threads)]
        environment = {"OMP_NUM_THREADS": str(job.threads), "PSI_SCRATCH": folder}
        return _follow(command, folder, environment, marks, job)


def psi4_ccenergy(job: Job) -> dict:
    """Psi4's own coupled cluster, in the molecule's abelian point group; iteration 0 is MP2."""
    marks = Marks(
        scf=r"\s*Energy and wave function converged",
        start=r"\s+0\s+-\d+\.\d+\s+\d\.\d+e",
        iteration=r"\s+[1-9]\d*\s+-\d+\.\d+\s+\d\.\d+e",
        converged=r"\s*Iterations converged",
        triples=r"\s*\*\s+CCTRIPLES\s+\*",
    )
    return _psi4(job, "ccenergy", marks)


def psi4_fnocc(job: Job) -> dict:
    """Psi4's coupled cluster without point groups; MP4(SDQ), which it makes on the way, counts."""
    marks = Marks(
        scf=r"\s*Energy and wave function converged",
        start=r"\s*Iter\s+DIIS\s+Energy",
        iteration=r"\s+\d+\s+\d+ \d+\s+-\d+\.\d+",
        converged=r"\s*CCSD iterations converged",
        triples=r"\s*\*\s+CCSD\(T\)\s+\*",
    )
    return _psi4(job, "fnocc", marks)


def nwchem_tce(job: Job) -> dict:
    """NWChem's TCE, one MPI rank per thread.

    TCE takes abelian groups only and NWChem detects others too: the group and the axes are PySCF's.
    """
    from tilewise.chem.pyscf_molecule import build_molecule

    binary = str(_binary("nwchem"))
    launcher = shutil.which(f"mpirun{Path(binary).suffix}") or shutil.which("mpirun")
    ranks = job.threads if launcher else 1
    mol = build_molecule(job.xyz, job.basis)
    group = {"Dooh": "D2h", "Coov": "C2v"}.get(mol.groupname, mol.groupname)
    positions = (
        (mol.atom_coords() - mol._symm_orig) @ mol._symm_axes.T if group != "C1" else mol.atom_coords()
    )
    lines = [] if group == "C1" else [f"symmetry {group}"]
    for k, (x, y, z) in enumerate(positions):
        lines.append(f"{mol.atom_pure_symbol(k)} {x:.10f} {y:.10f} {z:.10f}")
    geometry = "\n".join(lines)
    share = 1000 * MEMORY // ranks
    text = f"""start tce
memory heap {share // 20} mb stack {share // 4} mb global {7 * share // 10} mb
geometry units au noautoz noautosym nocenter
{geometry}
end
basis spherical
* library {job.basis}
end
scf
thresh 1e-8
end
tce
ccsd
{f"freeze core {job.frozen}" if job.frozen else ""}
thresh 1e-6
2eorb
2emet 13
end
task tce energy
"""
    marks = Marks(
        scf=r"\s*Final RHF\s+results",
        start=r"\s*CCSD iterations",
        iteration=r"\s+\d+\s+\d+\.\d+\s+-\d+\.\d+\s+\d+\.\d+\s+\d+\.\d+\s*$",
        converged=r"\s*Iterations converged",
    )
    command = [binary, "input.nw"]
    if launcher:
        free = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        command = [launcher, *free, "-np", str(ranks), *command]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "input.nw").write_text(text)
        return _follow(command, folder, {"OMP_NUM_THREADS": "1"}, marks, job)


RUNNERS: dict[str, Callable[[Job], dict]] = {
    "psi4-ccenergy": psi4_ccenergy,
    "psi4-fnocc": psi4_fnocc,
    "nwchem-tce": nwchem_tce,
}


# What follows a run


def _follow(command: list[str], folder: str, environment: dict, marks: Marks, job: Job) -> dict:
    """Runs a program to its end and reads times and energy off the lines as they arrive."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None
    names = ("scf", "start", "iteration", "converged", *(("triples", "e_t") if job.triples else ()))
    stamps: dict[str, list[float]] = {name: [] for name in names}
    patterns = {name: re.compile(getattr(marks, name)) for name in stamps}
    energy, e_t, last, complaint, late = None, None, "no output", "", threading.Event()
    with _watch(process, job.timeout, late) as memory:
        for line in process.stdout:
            now = time.perf_counter()
            for name, pattern in patterns.items():
                if pattern.match(line):
                    stamps[name].append(now)
            if number := re.match(marks.energy, line):
                energy = float(number[1])
            if number := re.match(marks.e_t, line):
                e_t = float(number[1])
            last = line.strip() or last
            if not complaint and re.search(r"error|exception|fatal", last, re.IGNORECASE):
                complaint = last
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if late.is_set():
        raise PeerError(f"stopped after {job.timeout:g} s, its last line was: {last}")
    if process.returncode or energy is None or not all(stamps.values()):
        raise PeerError(f"failed: {complaint or last}")
    ticks = [stamps["start"][-1], *stamps["iteration"]]
    gaps = [b - a for a, b in itertools.pairwise(ticks)]
    triples = {"e_t": e_t, "triples": stamps["e_t"][-1] - stamps["triples"][-1]} if job.triples else {}
    return triples | {
        "converged": True,
        "e_corr": energy,
        "iterations": len(gaps),
        "iteration": statistics.median(gaps),
        "total": stamps["converged"][-1] - stamps["scf"][-1],
        "peak": max([usage.ru_maxrss * 1024, *memory]),  # the kernel's record is of the largest process only
    }


@contextlib.contextmanager
def _watch(process: subprocess.Popen, timeout: float, late: threading.Event) -> Iterator[list[int]]:
    """Samples the memory of a process and those below it; ends them all when time is up or on a way out."""
    memory: list[int] = []
    over = threading.Event()
    deadline = time.monotonic() + timeout

    def sample() -> None:
        while not over.wait(0.1):
            memory.append(_resident(_family(process.pid)))
            if time.monotonic() > deadline:
                late.set()
                _end(process.pid)
                return

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield memory
    finally:
        over.set()
        sampler.join()
        if process.returncode is None:
            _end(process.pid)


def _family(pid: int) -> list[int]:
    """A process and all below it, parents first."""
    found = [pid]
    for member in found:
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{member}/task/{member}/children").read_text().split())
    return found


def _resident(pids: list[int]) -> int:
    """Bytes in memory: the private pages of all, and of the shared ones those of the largest user."""
    private, shared = 0, [0]
    for pid in pids:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/status").read_text()
            kilobytes = {name: int(number) for name, number in re.findall(r"Rss(\w+):\s+(\d+) kB", text)}
            private += kilobytes.get("Anon", 0)
            shared.append(kilobytes.get("File", 0) + kilobytes.get("Shmem", 0))
    return 1024 * (private + max(shared))


def _end(pid: int, patience: float = 5.0) -> None:
    """Asks a process to end (mpirun then takes its ranks along), and kills what is left of its family."""
    family = _family(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    began = time.monotonic()
    while any(map(_alive, family)) and time.monotonic() - began < patience:
        time.sleep(0.05)
    for member in filter(_alive, family):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)


def _alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
