"""Chkfiles of PySCF: whole ones, damaged ones, and ones with other things in them than PySCF writes."""

from __future__ import annotations

import io
import random

import h5py

from fuzzing.case import Case, kind
from fuzzing.commands import CommandCase
from fuzzing.mutations import damaged_bytes
from fuzzing.restarts import forge
from fuzzing.world import RESTARTED, World

SHORT = (("--max-cycle", "8"),)


@kind("chkfile", 3)
def whole(rng: random.Random, world: World) -> Case:
    name = rng.choice(RESTARTED)
    core = ("ccsd", "m.chk", "--no-checkpoint", "--threads", rng.choice("12"))
    return CommandCase(
        core,
        files={"m.chk": world.content(f"{name}.chk")},
        energy=world.energy(name),
        must_end=(0,),
        reason="although the chkfile is whole",
    )


@kind("chkfile damaged", 6)
def damaged(rng: random.Random, world: World) -> Case:
    content = damaged_bytes(rng, world.content(f"{rng.choice(RESTARTED)}.chk"))
    return CommandCase(("ccsd", "m.chk", "--no-checkpoint"), SHORT, {"m.chk": content})


@kind("chkfile forged", 6)
def forged(rng: random.Random, world: World) -> Case:
    image = io.BytesIO(world.content(f"{rng.choice(RESTARTED)}.chk"))
    with h5py.File(image, "r+") as file:
        note = forge(rng, file)
    files = {"m.chk": image.getvalue()}
    return CommandCase(("ccsd", "m.chk", "--no-checkpoint"), SHORT, files, note=note)
