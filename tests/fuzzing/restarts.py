"""Checkpoints that are damaged or forged, and measurements of the machine that are."""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from fuzzing.case import Case, Verdict, kind
from fuzzing.commands import CommandCase
from fuzzing.mutations import WILD_VALUES, damaged_bytes, damaged_document, damaged_text
from fuzzing.world import RESTARTED, SYSTEMS, World
from tilewise.sealed import HEADER, digest

ARRAYS = (
    np.zeros(0), np.zeros((0, 0)), np.array([np.nan]), np.array([1e300]), np.zeros((2, 2), np.int64),
    np.array(-1), np.array(10**9), np.array([b"x"]), np.zeros((3, 1, 2)), np.ones(7, np.complex128),
    np.ones(4, np.float32),
)  # fmt: skip


@kind("restart from damaged file", 30)
def damaged(rng: random.Random, world: World) -> Case:
    """Cut, flipped or with another header: refused, and the file stays as it is."""
    name = rng.choice(RESTARTED)
    content = world.content(f"{name}.h5")
    content = (
        damaged_bytes(rng, content)
        if rng.random() < 0.7
        else damaged_bytes(rng, content[:HEADER]) + content[HEADER:]
    )
    return _restarted(rng, world, name, content)


@kind("restart from forged file", 60)
def forged(rng: random.Random, world: World) -> Case:
    """Whole by its digest, but with other things in it than tilewise writes."""
    name = rng.choice(RESTARTED)
    content, note = resealed(
        world.content(f"{name}.h5"),
        lambda file: "; ".join(forge(rng, file) for _ in range(rng.randint(1, 2))),
    )
    return replace(_restarted(rng, world, name, content), note=note)


def resealed(content: bytes, change: Callable[[h5py.File], str]) -> tuple[bytes, str]:
    """A checkpoint in which something is changed, with the digest that fits; and what `change` says of it."""
    image = io.BytesIO(content[HEADER:])
    with h5py.File(image, "r+") as file:
        note = change(file)
    data = image.getvalue()
    first = content[:HEADER].split(b"\n")[0]
    return b"\n".join((first, digest(data).encode(), b"")).ljust(HEADER, b"\0") + data, note


@kind("restart", 8)
def whole(rng: random.Random, world: World) -> Case:
    """A good checkpoint leads to the same energy, with other tiles and threads too."""
    name = rng.choice(RESTARTED)
    case = _restarted(rng, world, name, world.content(f"{name}.h5"))
    more = (
        ("--tile", rng.choice(("1", "3"))),
        ("--threads", rng.choice("12")),
        ("--symmetry", rng.choice(("auto", "C1"))),
    )
    return replace(
        case, options=more, energy=world.energy(name), must_end=(0,), reason="although the checkpoint is good"
    )


def _restarted(rng: random.Random, world: World, name: str, content: bytes) -> CommandCase:
    source = f"{name}.xyz"
    core = ("ccsd", source, *SYSTEMS[name].options, "--restart", "old.h5")
    kept = rng.choice(("old.h5", "new.h5"))
    return CommandCase(
        (*core, "--checkpoint", kept), files={source: world.content(source), "old.h5": content}
    )


def forge(rng: random.Random, file: h5py.File) -> str:
    """Changes, removes or adds one attribute or dataset, and says which."""
    items: list[Any] = [file]
    file.visititems(lambda _, item: items.append(item))
    item = rng.choice(items)
    if item.attrs and rng.random() < 0.6:
        key = rng.choice(sorted(item.attrs))
        if rng.random() < 0.2:
            del item.attrs[key]
            return f"without attribute {key} of {item.name}"
        item.attrs[key] = rng.choice((_scalar(rng), _altered(rng, np.asarray(item.attrs[key]))))
        return f"attribute {key} of {item.name} is {item.attrs[key]!r}"
    if item.name == "/":
        return "nothing changed"
    parent, place = item.parent, item.name
    old = np.asarray(item[()]) if isinstance(item, h5py.Dataset) else None
    del file[place]
    if rng.random() < 0.3:
        return f"without {place}"
    new = rng.choice(ARRAYS) if old is None or rng.random() < 0.5 else _altered(rng, old)
    parent[place.rsplit("/", 1)[1]] = new
    return f"{place} is an array of {new.dtype} {new.shape}"


def _scalar(rng: random.Random) -> Any:
    return rng.choice([value for value in WILD_VALUES if isinstance(value, bool | float | str)] + [10**9, -1])


def _altered(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Another shape, another type or other values."""
    if array.dtype.kind not in "if" or not array.size:
        return np.array(rng.choice((0, -1, 1.5)))
    flat = array.ravel().copy()
    action = rng.randrange(5)
    if action == 0:
        return flat[: rng.randrange(flat.size + 1)]
    if action == 1:
        return np.concatenate([flat, flat])
    if action == 2:
        flat[rng.randrange(flat.size)] = rng.choice((-1, 0, 1, 7, 100000))
        return flat.reshape(array.shape)
    if action == 3:
        return array.astype(rng.choice((np.float32, np.int8, np.complex128, np.bool_)))
    return np.asarray(array.T if array.ndim > 1 else array[:, None] if array.ndim else array + 1)


@dataclass(frozen=True)
class MeasuredCase(CommandCase):
    """A command with a cache folder, environment and all that may be in it."""

    environment: dict[str, str] = field(default_factory=dict)

    def run(self, world: World) -> Verdict:
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            return super().run(world)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value

    def __str__(self) -> str:
        words = " ".join(f"{name}={value!r}" for name, value in self.environment.items())
        return f"{words} {super().__str__()}"


@kind("environment", 8)
def environment(rng: random.Random, world: World) -> Case:
    variable = rng.choice(("TILEWISE_NUM_THREADS", "OMP_NUM_THREADS"))
    value = rng.choice(("", "0", "1", "2,1", "-1", "x", "1.5", "9" * 30, "١", " 2 ", "[bold]"))
    core = ("ccsd", "h2.dump", "--no-checkpoint")
    return MeasuredCase(
        core,
        files={"h2.dump": world.content("h2.dump")},
        energy=world.energy("h2"),
        environment={variable: value},
    )


@kind("measured speeds damaged", 12)
def measured(rng: random.Random, world: World) -> Case:
    """Damaged measurements are measured anew or noted: the energy stays."""
    document = json.loads((Path(os.environ["TILEWISE_CACHE_DIR"]) / "wisdom.json").read_text())
    if rng.random() < 0.6:
        content = json.dumps(damaged_document(rng, document)).encode()
    else:
        content = damaged_text(rng, json.dumps(document))
    core = ("ccsd", "h2.dump", "--no-checkpoint")
    return MeasuredCase(
        core, files={"h2.dump": world.content("h2.dump"), "wisdom.json": content}, energy=world.energy("h2"),
        environment={"TILEWISE_CACHE_DIR": "."}, must_end=(0,),
        reason="although measurements are not needed",
    )  # fmt: skip
