"""Machine files: shipped ones with other values and damage."""

from __future__ import annotations

import random
from functools import cache
from importlib.resources import files
from pathlib import Path

from fuzzing.case import Case, kind
from fuzzing.commands import CommandCase
from fuzzing.mutations import damaged_bytes, damaged_text
from fuzzing.options import POLICIES
from fuzzing.world import World

VALUES = (
    "0", "1", "-1", "2", "8", "1.5", "1e-9", "1e300", "1e-300", "nan", "inf", "-inf", "true", "false", '"x"',
    "[]", "[1.0, 2.0]", "[1]", "{}", "{ a = 1 }", "1979-05-27", "9223372036854775807", "9223372036854775808",
    "0x10", "1_0",
)  # fmt: skip
ADDED = (
    "crowding = {}", "drift = {}", "stretch = {}", "reserved = {}", "overlap = {}",
    "[rates]\ngemm = {}\nsort = 1e8", "[[load]]\ncore = {}\njobs = 2", "[[load]]\ncore = 0\njobs = {}",
    "[[load]]\ncore = 0\nfrom = {}\nto = 1.0\njobs = 2", "load = {}", "speed = {}", "[network]\nshared = {}",
    "unknown = {}", "nodes.x = {}", "[counter.buffers]\nx = {}",
)  # fmt: skip


@cache
def shipped() -> dict[str, str]:
    folder = Path(str(files("tilewise.machines")))
    return {path.stem: path.read_text() for path in sorted(folder.glob("*.toml")) if path.stem != "million"}


@kind("machine file", 60)
def machine_file(rng: random.Random, world: World) -> Case:
    text = shipped()[rng.choice(sorted(shipped()))]
    for _ in range(rng.randint(1, 3)):
        text = _another_value(rng, text) if rng.random() < 0.7 else _added(rng, text)
    content = text.encode()
    if rng.random() < 0.3:
        content = damaged_text(rng, text) if rng.random() < 0.7 else damaged_bytes(rng, content)
    workers = ("--workers", rng.choice(("1", "2", "1,3", "4", "16")))
    files_ = {"h2.dump": world.content("h2.dump"), "m.toml": content}
    if rng.random() < 0.3:
        return CommandCase(("plan", "h2.dump", "--machine", "m.toml"), (workers,), files_)
    more = (("--policy", rng.choice(POLICIES)),) if rng.random() < 0.8 else ()
    return CommandCase(("simulate", "h2.dump", "--machine", "m.toml", *workers), more, files_)


def _another_value(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    valued = [k for k, line in enumerate(lines) if "=" in line.split("#")[0]]
    if valued:
        k = rng.choice(valued)
        lines[k] = f"{lines[k].split('=')[0]}= {rng.choice(VALUES)}"
    return "\n".join(lines)


def _added(rng: random.Random, text: str) -> str:
    line = rng.choice(ADDED).format(rng.choice(VALUES))
    return f"{text}\n{line}\n" if line.startswith("[") else f"{line}\n{text}"
