"""Machines to simulate: nodes, cores, network and counters, read from small TOML files.

Times are in seconds and sizes in bytes. What is marked "optional" may be left out, the rest may not:

    nodes = 4                # each with
    cores = 8                # that many cores
    reserved = 1             # of these, for communication; the others work (optional: 0)
    speed = 1.0              # of a core: 1 for one with the rates below; or a list over all that work
    crowding = 1.1           # it takes so much longer when all cores of its node work (optional: 1)
    noise = 0.02             # relative standard deviation of the time of a task
    drift = 0.1              # the same of the speed of a core (optional: 0),
    stretch = 0.1            # and the seconds for which a core keeps its speed (optional: 0.1)
    barrier = 1e-5           # seconds, after the last worker has come
    prefetch = 0             # tasks that a worker takes ahead, to get their data while it computes
    overlap = true           # a task gets its next data while it computes on the last (optional: false)

    [rates]                  # of a core of speed 1 (optional: 3e10 and 3e8, `model.STANDARD`)
    gemm = 9e9               # operations per second, a multiply-add being two
    sort = 1.5e8             # words per second that are put into another order
    stream = 5e9             # words per second of the operands of products, besides gemm (optional: free)

    [network]                # of each Get and each Accumulate
    latency = 2e-6
    bandwidth = 4e9          # bytes per second
    shared = true            # by the cores of a node: messages queue at both ends (optional: false)
    buffers = 64             # Gets that a node has room for while they wait (optional: for all),
    resend = 1e-4            # and what each of the others adds to the time of a message there
    in_flight = 2            # Gets that a node has under way (optional: one of each worker)

    [counter]
    service = 1e-6           # its host answers one call after the other
    latency = 2e-6           # to reach it from another node, and again for the way back
    shared = 1e-7            # service of a counter in the shared memory of one node
    buffers = 150            # calls that its host has room for (optional: for all),
    resend = 2e-6            # and the service of a call that comes when there is none left

    [ready]                  # by data flow: queues of ready tasks (optional: all this takes no time)
    service = 2e-7           # a queue gives one task after the other
    latency = 2e-6           # to reach a queue in another node, and again for the way back
    activation = 1e-6        # to write a message that a task has ended to another node, and again to read it

    [[load]]                 # of other users on one core (optional)
    core = 0                 # counted from 0 over those of all nodes that work
    from = 0.0               # seconds; 0 if it is left out
    to = 60.0                # without end if it is left out
    jobs = 2                 # on the core, our own included: with k jobs each has 1/k of its speed
"""

from __future__ import annotations

import math
import os
from importlib.resources import files
from pathlib import Path

from tilewise.arguments import plain_text
from tilewise.errors import one_of
from tilewise.hardware.model import STANDARD, Load, MachineModel, Rates
from tilewise.hardware.text import MachineText
from tilewise.hardware.this_machine import HERE, this_machine

__all__ = ["Load", "MachineModel", "Rates", "find_machine", "read_machine", "shipped_machines"]


def shipped_machines() -> dict[str, Path]:
    """The machine files that come with tilewise, by the names of the machines."""
    return {path.stem: path for path in sorted(Path(str(files("tilewise.machines"))).glob("*.toml"))}


def find_machine(text: str | os.PathLike[str]) -> MachineModel:
    """A machine by the path of its file or by the name of a shipped one, with or without ".toml".

    "here" is the machine at hand, as measured now.
    """
    known = shipped_machines()
    text = plain_text("machine", os.fspath(text) if isinstance(text, os.PathLike) else text)
    if os.path.isfile(text):
        return read_machine(Path(text))
    if text == HERE:
        return this_machine()
    name = text.removesuffix(".toml")
    if name not in known:
        raise one_of("machine", name, [*known, HERE])
    return read_machine(known[name])


def read_machine(path: Path) -> MachineModel:
    """Raises InputError, with the line, for a missing, unknown, negative or contradictory value."""
    text = MachineText.read(path)
    text.only(
        (),
        ("nodes", "cores", "speed", "noise", "barrier", "prefetch", "network", "counter"),
        ("crowding", "drift", "stretch", "reserved", "overlap", "rates", "ready", "load"),
    )
    text.only(("network",), ("latency", "bandwidth"), ("shared", "buffers", "resend", "in_flight"))
    text.only(("counter",), ("service", "latency", "shared"), ("buffers", "resend"))
    nodes, cores = text.whole(("nodes",), least=1), text.whole(("cores",), least=1)
    reserved = text.whole(("reserved",), default=0)
    if reserved >= cores:
        raise text.wrong(("reserved",), f"{reserved} of {cores} cores are reserved, so that none works")
    counter_buffers, counter_resend = _flow_control(text, "counter")
    link_buffers, link_resend = _flow_control(text, "network")
    ready = _ready(text)
    links = text.flag(("network", "shared"))
    for key in ("buffers", "in_flight"):
        if key in text.content["network"] and not links:
            raise text.wrong(
                ("network", key), f"network.{key} has a meaning with network.shared = true alone"
            )
    return MachineModel(
        name=path.stem,
        nodes=nodes,
        cores=cores,
        speed=_speed(text, nodes * (cores - reserved)),
        crowding=_crowding(text),
        noise=text.number(("noise",)),
        drift=text.number(("drift",), default=0.0),
        stretch=text.number(("stretch",), positive=True, default=0.1),
        barrier=text.number(("barrier",)),
        prefetch=text.whole(("prefetch",)),
        latency=text.number(("network", "latency")),
        bandwidth=text.number(("network", "bandwidth"), positive=True, infinite=True),
        counter_service=text.number(("counter", "service")),
        counter_latency=text.number(("counter", "latency")),
        counter_shared=text.number(("counter", "shared")),
        loads=_loads(text, nodes * (cores - reserved)),
        reserved=reserved,
        overlap=text.flag(("overlap",)),
        rates=_rates(text),
        links=links,
        link_buffers=link_buffers,
        link_resend=link_resend,
        in_flight=text.whole(("network", "in_flight"), default=0),
        counter_buffers=counter_buffers,
        counter_resend=counter_resend,
        ready_service=ready["service"],
        ready_latency=ready["latency"],
        ready_activation=ready["activation"],
    )


def _crowding(text: MachineText) -> float:
    value = text.number(("crowding",), default=1.0)
    if value < 1:
        raise text.wrong(
            ("crowding",), f"crowding = {value:g}: a core takes longer beside others, so 1 or more"
        )
    return value


def _rates(text: MachineText) -> Rates:
    if "rates" not in text.content:
        return STANDARD
    text.only(("rates",), ("gemm", "sort"), ("stream",))
    gemm, sort = (text.number(("rates", key), positive=True) for key in ("gemm", "sort"))
    return Rates(gemm, sort, text.number(("rates", "stream"), positive=True, infinite=True, default=math.inf))


def _ready(text: MachineText) -> dict[str, float]:
    """What queues of ready tasks take, by the key of each value; nothing without the table."""
    keys = ("service", "latency", "activation")
    if "ready" not in text.content:
        return dict.fromkeys(keys, 0.0)
    text.only(("ready",), keys)
    return {key: text.number(("ready", key)) for key in keys}


def _flow_control(text: MachineText, table: str) -> tuple[int, float]:
    """Buffers of a host, 0 for as many as are needed, and what it takes to be without one."""
    given = [key for key in ("buffers", "resend") if key in text.content[table]]
    if not given:
        return 0, 0.0
    if len(given) == 1:
        raise text.wrong((table, given[0]), f"{table}.buffers and {table}.resend come together")
    return text.whole((table, "buffers"), least=1), text.number((table, "resend"))


def _speed(text: MachineText, size: int) -> float | tuple[float, ...]:
    value = text.value(("speed",))
    if not isinstance(value, list):
        return text.number(("speed",), positive=True)
    if len(value) != size:
        raise text.wrong(
            ("speed",), f"{len(value)} speeds for {size} cores: give one for each, or one number"
        )
    return tuple(text.number(("speed", k), positive=True) for k in range(size))


def _loads(text: MachineText, size: int) -> tuple[Load, ...]:
    loads: list[Load] = []
    for k in range(text.tables("load")):
        text.only(("load", k), ("core", "jobs"), ("from", "to"))
        load = Load(
            core=text.whole(("load", k, "core")),
            jobs=text.whole(("load", k, "jobs"), least=1),
            start=text.number(("load", k, "from"), default=0.0),
            end=text.number(("load", k, "to"), infinite=True, default=math.inf),
        )
        if load.core >= size:
            raise text.wrong(("load", k, "core"), f"there is no core {load.core}: the last one is {size - 1}")
        if load.end <= load.start:
            raise text.wrong(
                ("load", k, "to"), f"the load ends at {load.end:g} s, before it begins at {load.start:g} s"
            )
        for other in loads:
            if other.core == load.core and load.start < other.end and other.start < load.end:
                raise text.wrong(
                    ("load", k),
                    f"core {load.core} has two loads at the same time: give one, with all the jobs",
                )
        loads.append(load)
    return tuple(loads)
