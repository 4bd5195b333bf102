"""`tilewise mpi-info`: what ranks take for messages here, and a machine file for the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from tilewise import __version__
from tilewise.cli.console import Screen, plain_table
from tilewise.cli.documents import write_document
from tilewise.config import format_bytes
from tilewise.cost import load_or_calibrate
from tilewise.errors import InputError
from tilewise.execute.mpi.stores import tested
from tilewise.execute.mpi.world import World
from tilewise.hardware.model import MachineModel
from tilewise.hardware.this_machine import this_machine
from tilewise.hardware.writing import machine_text
from tilewise.output_files import SideFiles, check_target
from tilewise.wording import counted


def run_mpi_info(
    ranks: World,
    console: Console,
    threads: int | None = None,
    out: Path | None = None,
    nodes: int | None = None,
    json: str | None = None,
) -> int:
    """Self-test, measurement, and the machine file that was asked for; collective."""
    if ranks.size == 1:
        raise InputError("mpi-info measures between ranks: start it as in mpiexec -n 2 tilewise mpi-info")
    check_target("--out", str(out) if out else None)
    check_target("--json", json)
    from tilewise.execute.mpi.measure import measure

    screen = Screen(console)
    own_threads = ranks.threads(threads)
    test = tested(ranks)
    screen.ranks(ranks, own_threads, test)
    document: dict[str, Any] = {
        "version": __version__,
        "ranks": ranks.size,
        "threads": own_threads,
        "nodes": ranks.nodes,
        "library": ranks.library,
        "self_test": {"right": test.has_rma, "progress": test.progress, "seconds": test.seconds},
    }
    model = None
    if test.has_rma:
        found = measure(ranks)
        _show_times(console, found.to_dict())
        model = _machine(ranks, found, own_threads, nodes)
        document["measured"] = found.to_dict()
    elif out:
        raise InputError(f"--out {out}: one-sided communication fails here, and so nothing was measured")
    side_files = SideFiles(screen.note)
    if model and ranks.rank == 0:
        document["machine"] = model.to_dict()
        if out:
            text = machine_text(model, _comments(ranks, own_threads))
            side_files.write(out, lambda place: place.write_text(text, encoding="utf-8"))
            screen.line("machine", f"{out}, for tilewise simulate --machine {out}")
        if json:
            write_document(document, json, side_files)
    side_files.check()
    return 0


def _machine(ranks: World, found: Any, threads: int, nodes: int | None) -> MachineModel | None:
    """Rank 0 measures its cores, while the others sleep."""
    from tilewise.execute.mpi.cluster import cluster

    model = None
    if ranks.rank == 0:
        model = cluster(found, this_machine(), load_or_calibrate()[0], threads, nodes)
    ranks.barrier()
    return model


def _comments(ranks: World, threads: int) -> list[str]:
    return [
        f"Measured by tilewise mpi-info on {counted(ranks.size, 'rank')} x {counted(threads, 'thread')}, "
        f"{counted(len(ranks.nodes), 'node')}, {ranks.library}.",
        "A node of this file is a rank, its cores are the rank's threads.",
        "noise and prefetch are assumed; the rest was measured.",
    ]


def _show_times(console: Console, found: dict[str, Any]) -> None:
    table = plain_table("between ranks", "8 bytes", "8 MB")
    for name, kind in (("Get", "get"), ("Accumulate", "accumulate")):
        speed = f"{format_bytes(found[f'{kind}_bandwidth'])}/s"
        table.add_row(name, _microseconds(found[f"{kind}_latency"]), speed)
    table.add_row("draw from a counter", _microseconds(2 * found["counter_latency"]), "")
    table.add_row("draw, when all ranks draw", _microseconds(found["counter_service"]), "")
    table.add_row("message, one way", _microseconds(found["message_latency"]), "")
    table.add_row("barrier", _microseconds(found["barrier"]), "")
    console.print(table)


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} us"
