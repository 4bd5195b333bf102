"""Atoms: TOML files that are valid, rewritten, damaged or wrong, files of known levels, and `CI.atom`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import tilewise
from fuzzing.case import Case, kind
from fuzzing.commands import DONE, CommandCase
from fuzzing.configuration_interaction import TIGHT, compared, finite, named
from fuzzing.machine_files import VALUES
from fuzzing.mutations import damaged_bytes, damaged_text
from fuzzing.options import POLICIES
from fuzzing.python_calls import CallCase, names_of
from fuzzing.world import World
from tilewise.ci.calculation import Settings


@dataclass(frozen=True)
class KnownAtom:
    """An atom whose lowest levels are known: of each term the spin and the irrep of D2h."""

    system: str
    basis: str
    reference: str
    terms: dict[str, tuple[int, str]]


ATOMS = {
    "H": KnownAtom("h", "6-31g", "1s1", {"2S": (1, "Ag")}),
    "He": KnownAtom("he", "6-31g", "1s2", {"1S": (0, "Ag"), "3S": (2, "Ag")}),
    "Li": KnownAtom("li", "sto-3g", "1s2 2s1", {"2S": (1, "Ag"), "2Po": (1, "B1u")}),
    "Be": KnownAtom("be", "sto-3g", "1s2 2s2", {"1S": (0, "Ag"), "3Po": (2, "B1u")}),
}
LEVELS = "# known\n1S 0.0\n2S 0.0   # lowest\n3Po 21980.2\n2P* 14903.9\n"
WORDS_OF_ATOMS = (
    '"He"', '"be"', '"Xx"', '"sto-3g"', '"6-31g"', '"1s2"', '["1s2 2s2", "1s2 2p2"]', '"1s2 2s2"', '"1s3"',
    '["1s"]', '["2p"]', '"full"', '"FULL"', "3", '["1S", "3Po"]', '"1S 3Po"', '["1S", "1S"]', '"9S"', '"7Zo"',
    '"lpt"', '"gss(delta=0.3)"', '"1GB"', '"known.txt"', '"."', '"1s99999999999999999999999"', '["1s2", 3]',
    '"1s2\\n2s2"', '"\\u0000"', "-1", "100",
)  # fmt: skip
KEYS = ("atom", "basis", "reference", "charge", "frozen", "rank", "max_n", "max_l", "terms", "roots",
        "policy", "memory", "threads", "levels")  # fmt: skip
FITTING = {
    "atom": ('"He"', '"be"', '"Xx"', '"GHOST-He"', '"Be1"', '"4"', '"H"', '""'),
    "basis": ('"sto-3g"', '"6-31g"', '"nothing"', '"unc-sto-3g"', '""', '"sto-3g,"', '"H=sto-3g"'),
    "reference": (
        '"1s2"',
        '"1s2 2s2"',
        '["1s2 2s2", "1s2 2p2"]',
        '"1s1 2p1"',
        '"1s2 2s1 2p1"',
        "[]",
        '""',
        '"7i1"',
    ),
    "frozen": ('"1s"', '["1s"]', '"1s 2s"', "[]", '"2p"', '["1s", "1s"]', '"1s2"'),
    "rank": ('"full"', "0", "1", "2", "100", '"2"', "-1"),
    "terms": (
        '"1S"',
        '"1S 3Po"',
        '["1S", "1S"]',
        '"2S 2Po"',
        '["1D"]',
        "[]",
        '"3S"',
        '"1Po"',
        '"9S"',
        '"1I"',
    ),
    "policy": ('"lpt"', '"gss(delta=0.3)"', '"none"'),
    "memory": ('"1GB"', '"1kB"', "1500", "1.5", "0", '"x"'),
    "levels": ('"known.txt"', '"."', '"atom.toml"', '""'),
}
"""What may stand behind a key; numbers behind the others."""
TERMS = (None, "1S", "2S", "3S", "1Po", "2Po", "3Po", "5S", "1Se", "3P*", "2s", "1I")
LIKELY: dict[str, tuple[Any, ...]] = {
    "reference": ("1s2 2s2", "1s2 2s1", "1s2", ["1s2 2s2", "1s2 2p2"], "1s2 2s1 2p1", [], [""], ["1s2", 3]),
    "basis": ("sto-3g", "6-31g", "nothing", {"Be": "sto-3g"}),
    "rank": (None, 0, 1, 2, 99),
    "n": (None, 1, 2, 3),
    "l": (None, 0, 1, 5),
    "term": TERMS,
    "roots": (1, 2, 40),
    "charge": (0, 1, -1, 2, 4, 100),
    "frozen": ((), "1s", ["1s"], ["2s"], "1s 2s", ["1s", 2], "2p", ["1s", "1s"]),
    "m_l": (None, 0, 1, -1, 7),
    "m_s": (None, 0, 0.5, 1, 1.0, 0.3, -1),
    "parity": (None, "even", "odd", "o"),
    "direct": (None, True, False),
    "mpi": ("auto", False),
}


@kind("atom file", 16)
def valid(rng: random.Random, world: World) -> Case:
    """In any order and with what changes nothing: the energies of full CI by PySCF."""
    symbol = rng.choice(sorted(ATOMS))
    known = ATOMS[symbol]
    terms = rng.sample(sorted(known.terms), rng.randint(1, len(known.terms)))
    lines = [
        f'atom = "{rng.choice((symbol, symbol.lower()))}"',
        f'basis = "{rng.choice((known.basis, known.basis.upper()))}"',
        rng.choice(('rank = "full"', 'rank = "fci"', "rank = 9")),
        f"terms = {list(terms)!r}" if rng.random() < 0.6 else f'terms = "{" ".join(terms)}"',
    ]
    more = (
        f'reference = "{known.reference}"', "roots = 1", "charge = 0", f'policy = "{rng.choice(POLICIES)}"',
        'memory = "1GB"', "memory = 1500", "threads = 1", 'levels = "known.txt"', "max_n = 9", "max_l = 4",
        "# nothing", "",
    )  # fmt: skip
    extra = {line.split(" ")[0]: line for line in rng.sample(more, rng.randint(0, 5))}
    lines += extra.values()
    rng.shuffle(lines)
    end = rng.choice(("\n", "\n", "\r\n"))
    sectors = [known.terms[term] for term in terms]
    expected = [world.levels(known.system, spin=spin, irrep=irrep)[0] for spin, irrep in sectors]
    content = end.join(lines).encode()
    return CommandCase(
        ("ci", "atom.toml", *TIGHT), files={"atom.toml": content, "known.txt": LEVELS.encode()},
        levels=tuple(expected), must_end=(DONE,), reason="although the file is valid",
    )  # fmt: skip


@kind("atom file damaged", 40)
def damaged(rng: random.Random, world: World) -> Case:
    """Other values, other types, keys that are none, and damage: refused, or it means something else."""
    symbol = rng.choice(sorted(ATOMS))
    known = ATOMS[symbol]
    lines = [f'atom = "{symbol}"', f'basis = "{known.basis}"', f'reference = ["{known.reference}"]']
    lines += [f"terms = {list(known.terms)!r}", 'rank = "full"', 'levels = "known.txt"', "roots = 1"]
    for _ in range(rng.randint(1, 2)):
        key = rng.choice(KEYS if rng.random() < 0.9 else ("unknown", "Atom", "levels.x", "[terms]", "[[x]]"))
        value = rng.choice(FITTING.get(key, ("1", "2", "9", "0", "-1")))
        if rng.random() < 0.3:
            value = rng.choice(WORDS_OF_ATOMS if rng.random() < 0.7 else VALUES)
        lines = [line for line in lines if line.split(" ")[0] != key]
        lines.append(key if key.startswith("[") else f"{key} = {value}")
    content = "\n".join(lines).encode()
    if rng.random() < 0.3:
        text = "\n".join(lines)
        content = damaged_text(rng, text) if rng.random() < 0.7 else damaged_bytes(rng, content)
    options = (("--plan",),) if rng.random() < 0.5 else ()
    return CommandCase(("ci", "atom.toml"), options, {"atom.toml": content, "known.txt": LEVELS.encode()})


@kind("known levels damaged", 12)
def levels(rng: random.Random, world: World) -> Case:
    """Known levels change no energy, whatever is in their file: it is refused, or they stand beside."""
    content = damaged_text(rng, LEVELS) if rng.random() < 0.8 else damaged_bytes(rng, LEVELS.encode())
    atom = b'atom = "He"\nbasis = "6-31g"\nrank = "full"\nterms = ["1S"]\n'
    json = (("--json", rng.choice(("-", "out.json"))),) if rng.random() < 0.4 else ()
    return CommandCase(
        ("ci", "atom.toml", "--levels", "known.txt", *TIGHT), json, {"atom.toml": atom, "known.txt": content},
        levels=tuple(world.levels("he")[:1]),
    )  # fmt: skip


@kind("CI.atom called right", 8)
def called_right(rng: random.Random, world: World) -> Case:
    symbol = rng.choice(sorted(ATOMS))
    known = ATOMS[symbol]
    term = rng.choice(sorted(known.terms))
    spin, irrep = known.terms[term]
    expected = world.levels(known.system, 0, spin=spin, irrep=irrep)[:1]
    given = {"basis": known.basis, "reference": known.reference, "term": term, "rank": None}
    given |= {"conv_tol": 1e-11, "conv_tol_residual": 1e-7, "policy": rng.choice(POLICIES)}
    given |= {"direct": rng.choice((None, True)), "threads": rng.choice((None, 1, 2))}
    return CallCase("CI.atom", _run, (symbol,), given, lambda done: compared(done, expected), valid=True)


@kind("CI.atom called wrong", 40)
def called_wrong(rng: random.Random, world: World) -> Case:
    """Wrong types and values are refused."""
    names = [*names_of(tilewise.CI.atom), *Settings.__dataclass_fields__]
    given = {"basis": "sto-3g", "reference": "1s2 2s2"} | named(rng, names, LIKELY)
    symbol = given.pop("symbol", "Be")
    return CallCase("CI.atom", _run, (symbol,), given, finite)


def _run(symbol: Any, **given: Any) -> Any:
    made = tilewise.CI.atom(symbol, **given)
    str(made.plan())
    return made.run()
