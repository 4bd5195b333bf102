"""FCIDUMP files: written in other ways, cut, and damaged."""

from __future__ import annotations

import random
import re

from fuzzing.case import Case, kind
from fuzzing.commands import DONE, REFUSED, CommandCase
from fuzzing.mutations import damaged_bytes, damaged_text
from fuzzing.world import QUICK, World

SHORT = (("--max-cycle", "8"),)
_END = re.compile(r"&END\s*\n|^\s*/\s*\n", re.MULTILINE)


@kind("fcidump rewritten", 20)
def rewritten(rng: random.Random, world: World) -> Case:
    """The same integrals in another order, with other indices of the same meaning and another header."""
    name = rng.choice(QUICK)
    source = rng.choice(("m.dump", "FCIDUMP", "m.xyz"))
    core = ("ccsd", source, "--no-checkpoint")
    content = written(rng, world.content(f"{name}.dump").decode())
    return CommandCase(
        core,
        files={source: content},
        energy=world.energy(name),
        must_end=(DONE,),
        reason="although the file is valid",
    )


@kind("fcidump cut", 20)
def cut(rng: random.Random, world: World) -> Case:
    """A file whose end is lost: its last line, the core energy, is missing."""
    lines = world.content(f"{rng.choice(QUICK)}.dump").decode().splitlines(keepends=True)
    content = "".join(lines[: rng.randrange(len(lines))]).encode()
    return CommandCase(
        ("ccsd", "m.dump", "--no-checkpoint"), SHORT, {"m.dump": content}, must_end=(REFUSED,),
        reason="although the end of the file is lost",
    )  # fmt: skip


@kind("fcidump damaged", 90)
def damaged(rng: random.Random, world: World) -> Case:
    text = world.content(f"{rng.choice(QUICK)}.dump").decode()
    head, body = _split(text)
    where = rng.random()
    if where < 0.4:
        content = damaged_text(rng, head) + body.encode()
    elif where < 0.85:
        content = head.encode() + damaged_text(rng, body)
    else:
        content = damaged_bytes(rng, text.encode())
    if rng.random() < 0.4:
        return CommandCase(("plan", "m.dump"), files={"m.dump": content})
    return CommandCase(("ccsd", "m.dump", "--no-checkpoint"), SHORT, {"m.dump": content})


def written(rng: random.Random, text: str) -> bytes:
    head, body = _split(text)
    if rng.random() < 0.5:
        head = _END.sub(lambda _: rng.choice((" &END\n", "/\n", " $END\n", "&end\n")), head)
    if rng.random() < 0.3:
        head = head.replace(",", rng.choice((" , ", ", ")))
    if rng.random() < 0.3:
        head = head.lower()
    rows = [line.split() for line in body.splitlines()]
    *integrals, core = [_row(rng, row) for row in rows]
    if rng.random() < 0.5:
        rng.shuffle(integrals)
    if rng.random() < 0.3:
        integrals.insert(0, "0.0 1 1 1 1" if not any(r[1:] == ["1"] * 4 for r in rows) else "")
    return (head + "\n".join([*integrals, core]) + rng.choice(("", "\n", "\n\n"))).encode()


def _row(rng: random.Random, row: list[str]) -> str:
    """Real orbitals: (pq|rs) = (qp|rs) = (rs|pq), and so on."""
    value, indices = row[0], row[1:]
    if all(index != "0" for index in indices):
        pairs = [indices[:2], indices[2:]]
        for pair in pairs:
            rng.shuffle(pair)
        rng.shuffle(pairs)
        indices = pairs[0] + pairs[1]
    elif indices[2:] == ["0", "0"] and indices[1] != "0":
        indices = [*rng.sample(indices[:2], 2), "0", "0"]
    if rng.random() < 0.1:
        value = f"{float(value):.17e}".replace("e", rng.choice("eEdD"))
    return rng.choice(("  ", " ", "\t")).join((value, *indices)) + rng.choice(("", "", "", " ! said", " "))


def _split(text: str) -> tuple[str, str]:
    """Header and integrals."""
    end = _END.search(text)
    assert end
    return text[: end.end()], text[end.end() :]
