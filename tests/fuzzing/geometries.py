"""XYZ files: written in other ways, which changes nothing, and damaged."""

from __future__ import annotations

import math
import random

from fuzzing.case import Case, kind
from fuzzing.commands import DONE, CommandCase
from fuzzing.mutations import damaged_bytes, damaged_text
from fuzzing.world import QUICK, SYSTEMS, System, World

BOHR = 0.529177210903
NUMBERS = {"H": 1, "He": 2, "Li": 3, "O": 8}
SHORT = (("--max-cycle", "8"), ("--scf-max-cycle", "30"))
"""For molecules that damage makes larger."""


@kind("xyz rewritten", 20)
def rewritten(rng: random.Random, world: World) -> Case:
    """The same molecule, turned, moved and written in another way."""
    name = rng.choice(list(SYSTEMS)) if rng.random() < 0.2 else rng.choice(QUICK)
    system = SYSTEMS[name]
    return _valid(rng, world, name, moved(rng, system))


def _valid(rng: random.Random, world: World, name: str, system: System) -> CommandCase:
    """In angstrom or in bohr, alone in its file or one of several."""
    core = ("ccsd", "m.xyz", *system.options, "--no-checkpoint")
    if rng.random() < 0.2:
        core, system = (*core, "--unit", "bohr"), scaled(system, 1 / BOHR)
    content = written(rng, system)
    if rng.random() < 0.2:
        other = written(rng, moved(rng, SYSTEMS[rng.choice(QUICK)]), alone=False)
        number = rng.randint(1, 2)
        core = (*core, "--frame", str(number if rng.random() < 0.5 else number - 3))
        content = written(rng, system, alone=False)
        content = content + other if number == 1 else other + content
    return CommandCase(
        core,
        files={"m.xyz": content},
        energy=world.energy(name),
        must_end=(DONE,),
        reason="although the geometry is valid",
    )


@kind("xyz on standard input", 5)
def on_standard_input(rng: random.Random, world: World) -> Case:
    name = rng.choice(QUICK)
    core = ("ccsd", "-", *SYSTEMS[name].options, "--no-checkpoint")
    if rng.random() < 0.5:
        content = written(rng, moved(rng, SYSTEMS[name]))
        return CommandCase(
            core,
            stdin=content,
            energy=world.energy(name),
            must_end=(DONE,),
            reason="although the geometry is valid",
        )
    return CommandCase(core, SHORT, stdin=damaged_text(rng, SYSTEMS[name].xyz))


@kind("xyz damaged", 90)
def damaged(rng: random.Random, world: World) -> Case:
    system = SYSTEMS[rng.choice(list(SYSTEMS))]
    text = written(rng, moved(rng, system) if rng.random() < 0.3 else system).decode()
    content = damaged_text(rng, text) if rng.random() < 0.8 else damaged_bytes(rng, text.encode())
    if rng.random() < 0.7:
        return CommandCase(("plan", "m.xyz", *system.options), files={"m.xyz": content})
    return CommandCase(("ccsd", "m.xyz", *system.options), SHORT, files={"m.xyz": content})


def moved(rng: random.Random, system: System) -> System:
    """Shifted, turned about an axis, with the atoms in another order."""
    shift = [rng.choice((0.0, rng.uniform(-3, 3))) for _ in range(3)]
    angle = rng.choice((0.0, math.pi / 2, rng.uniform(0, 2 * math.pi)))
    first, second = rng.sample(range(3), 2)
    atoms = []
    for symbol, position in system.atoms:
        turned = list(position)
        turned[first] = math.cos(angle) * position[first] - math.sin(angle) * position[second]
        turned[second] = math.sin(angle) * position[first] + math.cos(angle) * position[second]
        x, y, z = (a + b for a, b in zip(turned, shift, strict=True))
        atoms.append((symbol, (x, y, z)))
    rng.shuffle(atoms)
    return System(tuple(atoms), system.basis, system.charge, system.frozen)


def scaled(system: System, factor: float) -> System:
    atoms = tuple((symbol, (factor * x, factor * y, factor * z)) for symbol, (x, y, z) in system.atoms)
    return System(atoms, system.basis, system.charge, system.frozen)


def written(rng: random.Random, system: System, alone: bool = True) -> bytes:
    """A file with the same molecule: symbols, numbers, spaces and line ends as people write them."""
    lines = []
    for symbol, position in system.atoms:
        names = [symbol, symbol.lower(), symbol.upper(), f"{symbol}{rng.randint(1, 9)}", str(NUMBERS[symbol])]
        name = rng.choice(names + (["D", "d"] if symbol == "H" else []))
        separator = rng.choice((" ", "  ", "\t", ", "))
        more = rng.choice(("", "", " 0.1 0.2", "  # an atom"))
        lines.append(
            rng.choice(("", " ", "\t")) + separator.join((name, *(_number(rng, x) for x in position))) + more
        )
    comment = rng.choice(("", "a molecule", "μ, ° and ü", "#", "energy = -1.0 charge=0", " " * 80))
    head = rng.choice(("", "  ")) + str(len(lines)) + rng.choice(("", " ", "\t"))
    text = "\n".join([head, comment, *lines])
    if alone:
        begin = rng.choice(("", "", "", "\n", " \n\n", "\ufeff"))
        text = begin + text + rng.choice(("", "\n", "\n\n \n"))
    else:
        text += "\n"
    return text.replace("\n", rng.choice(("\n", "\n", "\r\n"))).encode()


def _number(rng: random.Random, x: float) -> str:
    style = rng.randrange(5)
    if style == 0:
        return f"{x:.12e}"
    if style == 1:
        return f"{x:.12e}".replace("e", rng.choice("dDE"))
    return rng.choice(("", "+" if x >= 0 else "")) + f"{x:.10f}"
