"""Machine files written from a model: what was measured becomes what is simulated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tilewise.hardware.model import MachineModel


def machine_text(model: MachineModel, comments: Sequence[str]) -> str:
    """A machine file that `read_machine` takes for this model; loads of other users are not written."""
    network = {"latency": model.latency, "bandwidth": model.bandwidth}
    if model.links:
        network |= {"shared": True}
        network |= {"buffers": model.link_buffers, "resend": model.link_resend} if model.link_buffers else {}
        network |= {"in_flight": model.in_flight} if model.in_flight else {}
    counter = {
        "service": model.counter_service,
        "latency": model.counter_latency,
        "shared": model.counter_shared,
    }
    if model.counter_buffers:
        counter |= {"buffers": model.counter_buffers, "resend": model.counter_resend}
    ready = {
        "service": model.ready_service,
        "latency": model.ready_latency,
        "activation": model.ready_activation,
    }
    machine = {
        "nodes": model.nodes,
        "cores": model.cores,
        "reserved": model.reserved,
        "speed": model.speed,
        "crowding": model.crowding,
        "noise": model.noise,
        "drift": model.drift,
        "stretch": model.stretch,
        "barrier": model.barrier,
        "prefetch": model.prefetch,
        "overlap": model.overlap,
    }
    rates = {"gemm": model.rates.gemm, "sort": model.rates.sort} if model.rates else {}
    if model.rates and model.rates.stream != math.inf:
        rates["stream"] = model.rates.stream
    lines = [f"# {comment}" for comment in comments]
    lines += _values(machine)
    for name, table in (("rates", rates), ("network", network), ("counter", counter), ("ready", ready)):
        if table:
            lines += ["", f"[{name}]", *_values(table)]
    return "\n".join(lines) + "\n"


def _values(table: Mapping[str, object]) -> list[str]:
    return [f"{name} = {_shown(value)}" for name, value in table.items()]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else repr(float(f"{value:.6g}"))
    return str(value)
