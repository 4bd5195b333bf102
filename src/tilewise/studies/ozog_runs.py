"""What Ozog et al. ran: molecules, tiles and the machine, with all that was fitted or chosen for them."""

from __future__ import annotations

from tilewise.hardware.machines import MachineModel, find_machine
from tilewise.studies.constants import in_machine, in_module
from tilewise.studies.routines import SimulatedIteration, routine_graph

PAPER = "Ozog et al."
FROZEN = True
TILE = 36
BENZENE, WHOLE_IRREPS = "benzene-aug-cc-pvqz", 130


def water(molecules: int, names: tuple[str, ...] = ()) -> SimulatedIteration:
    """An iteration of a cluster, or the contractions named of it."""
    return SimulatedIteration(
        routine_graph(f"water-{molecules}", TILE, names, frozen=FROZEN), find_machine("fusion")
    )


def benzene(names: tuple[str, ...] = ()) -> SimulatedIteration:
    """An iteration of benzene, or the contractions named of it."""
    return SimulatedIteration(
        routine_graph(BENZENE, WHOLE_IRREPS, names, frozen=FROZEN), find_machine("fusion")
    )


def workers_on(machine: MachineModel, cores: int) -> int:
    """Those of whole nodes, less what is reserved."""
    return cores // machine.cores * machine.working


CORE = in_module(
    __name__,
    "FROZEN",
    "tiles of occupied orbitals: with the core correlated mk + kn of table I is 2.5 and 3.3 million",
    "fitted to table I: 2.2 and 2.7 million words of the water clusters",
)
WATER_TILES = in_module(
    __name__,
    "TILE",
    "tasks of the water clusters",
    "fitted to table I: 2,100 and 4,060 tasks, 2.2 and 2.7 million words",
    "orbitals",
)
BASIS = in_module(
    __name__, "BENZENE", "work of benzene's tasks", "chosen: figure 7 has this basis, the text aug-cc-pVTZ"
)
IRREPS = in_module(
    __name__,
    "WHOLE_IRREPS",
    "tasks of benzene: a tile for each irrep",
    "fitted to table I: 14,280 tasks",
    "orbitals",
)
MOLECULES = (CORE, WATER_TILES, BASIS, IRREPS)

SERVICE = in_machine(
    "fusion",
    "counter.service",
    "s",
    "time of a counter's call, and with it the gain of I/E Nxtval",
    "fitted to figure 7: benzene runs 25 to 33 % faster without null tuples, 29 % on average",
)
BUFFERS = in_machine(
    "fusion",
    "counter.buffers",
    "calls",
    "from how many callers on flow control sets in (paper: 150 to 200)",
    "chosen: benzene runs on 400 cores, 350 of which work, and comes to a standstill beyond",
)
RESEND = in_machine(
    "fusion",
    "counter.resend",
    "s",
    "time of a call under flow control, and with it the share of the counter on many cores",
    "fitted to figure 5: 60 % of the time of 10 H2O on 1,000 cores",
)
SHARED = in_machine(
    "fusion",
    "counter.shared",
    "s",
    "calls of the counters of Buckets",
    "chosen: an increment takes some nanoseconds, the call around it more",
)
NOISE = in_machine(
    "fusion",
    "noise",
    "",
    "how far static lists fall behind",
    "chosen: the paper speaks of noise without a number",
)
BARRIER = in_machine("fusion", "barrier", "s", "the end of each level", "chosen: next to nothing")
GEMM = in_machine(
    "fusion", "rates.gemm", "flop/s", "time of tasks", "chosen: 90 % of the 10.1 Gflop/s of a core"
)
SORT = in_machine("fusion", "rates.sort", "words/s", "time of tasks", "chosen: 2.4 GB/s")
NODES = in_machine("fusion", "nodes", "nodes", "the most workers", "chosen: the paper uses up to 300")
COUNTER = (SERVICE, BUFFERS, RESEND)
FUSION = (*COUNTER, NOISE, BARRIER, GEMM, SORT, NODES)
