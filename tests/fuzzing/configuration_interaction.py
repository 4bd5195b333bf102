"""`tilewise ci` and `tilewise.CI` of molecules: right and wrong options and arguments, and files of roots."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

import tilewise
from fuzzing.case import Case, Problem, kind
from fuzzing.commands import DONE, REFUSED, TOLERANCE, CommandCase
from fuzzing.mutations import damaged_bytes
from fuzzing.options import HARMLESS, POLICIES, VALUES, WORDS, options_of
from fuzzing.python_calls import GOOD_ARGUMENTS, WILD_ARGUMENTS, CallCase, names_of
from fuzzing.restarts import forge, resealed
from fuzzing.world import OPEN_SYSTEMS, RESTARTED, SYSTEMS, World
from tilewise.ci.calculation import Settings

TIGHT = ("--conv-tol", "1e-11", "--conv-tol-residual", "1e-7")
TRUNCATED = 1e-7
"""Hartree: below full CI, energies follow the last digits of the orbitals."""
CLOSED, OPEN = ("h2", "heh", "he", "lih"), ("h", "li", "h2-triplet", "lih-cation")
OTHER_REFERENCES = {"h2": ("20", "02"), "heh": ("2", "02"), "he": ("20", "02", "2"), "lih": ("22", "202")}
"""Occupations of the orbitals, all of them of the first irrep."""
UNCHANGED = {
    "--threads": ("1", "2"),
    "--memory": ("1GB", "2GiB", "1500"),
    "--policy": POLICIES,
    "--max-cycle": ("60", "200"),
    "--json": ("out.json", "-"),
    "--trace": ("trace.json",),
    "--checkpoint": ("roots.h5",),
    "--direct": (),
    "--levels": ("known.txt",),
}
"""Options that change no energy."""
OF_CI = {
    "--rank": ("0", "1", "2", "3", "full", "FCI", " 2", "-1", "1000", "two", "2.0"),
    "--roots": ("1", "2", "3", "100", "0", "-1", "1.5"),
    "--irrep": ("A1", "b1", "Ag", "B1u", "A2", "E", " ag "),
    "--ms2": ("0", "1", "2", "3", "4", "-1", "8"),
    "--term": ("1S", "3S", "2S", "2Po", "3P*", "1Se", "0S", "9S", "1J", "11S", "1V"),
    "--configuration": ("2", "20", "02", "11", "22", "2020", "222", "1s2", "1s2 2s2", "1s1 2s1", "3"),
    "--max-n": ("1", "2", "9", "0"),
    "--max-l": ("0", "1", "9", "-1"),
    "--frozen": ("0", "1", "1s", "auto", "1s,2s", "2p", "7"),
    "--levels": ("known.txt", "nowhere.txt", ".", "m.dump"),
    "--conv-tol": ("1e-9", "0", "-1", "1e300"),
    "--conv-tol-residual": ("1e-5", "0", "nan"),
    "--restart": ("old.h5", "nowhere.h5", "."),
}
KNOWN = b"# of nobody\n1S 0.0\n1A1 0.0\n3Po 21980.2\n"


@kind("ci", 24)
def valid(rng: random.Random, world: World) -> Case:
    """A molecule, an FCIDUMP or a chkfile, with options that change nothing: all energies by PySCF."""
    name = rng.choice((*CLOSED, *OPEN, "water"))
    system = (SYSTEMS | OPEN_SYSTEMS)[name]
    of, words = _sector(rng, world, name)
    source, frozen = f"{name}.dump", 0
    if rng.random() < 0.35:
        source, frozen = f"{name}.xyz", 0 if "references" in of else rng.choice(system.frozen)
        words = (*system.options, "--frozen", str(frozen), *words)
    expected = world.levels(name, frozen, **of, by_irrep=_has_irreps(name, source))
    roots = rng.choice((1, 1, 2, 3))
    wanted = rng.sample(sorted(UNCHANGED), rng.randint(0, 3))
    options = [
        (option, rng.choice(UNCHANGED[option])) if UNCHANGED[option] else (option,) for option in wanted
    ]
    case = CommandCase(
        ("ci", source, *words, "--roots", str(roots), *TIGHT), tuple(options),
        {source: world.content(source), "known.txt": KNOWN}, levels=tuple(expected[:roots]),
        tolerance=TOLERANCE if of["rank"] is None else TRUNCATED,
    )  # fmt: skip
    if not len(expected):
        return replace(case, must_end=(REFUSED,), reason="although there is no such determinant")
    return replace(case, must_end=(DONE,), reason="although all of it is valid")


def _has_irreps(name: str, source: str) -> bool:
    """FCIDUMP files of open shells are written without."""
    return name in SYSTEMS or not source.endswith("dump")


def _sector(rng: random.Random, world: World, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Arguments of `Sectors.energies`, and the options that say the same."""
    system = (SYSTEMS | OPEN_SYSTEMS)[name]
    rank = rng.choice((None, 1, 2, 2, 3))
    of: dict[str, Any] = {"rank": rank}
    words: tuple[str, ...] = ("--rank", rng.choice(("full", "fci")) if rank is None else str(rank))
    if rng.random() < 0.3:
        of["spin"] = system.spin + 2 if rng.random() < 0.5 and name not in OPEN else system.spin
        words = (*words, "--ms2", str(of["spin"]))
    if name in OTHER_REFERENCES and rng.random() < 0.3:
        texts = OTHER_REFERENCES[name]
        of["references"] = rng.sample(texts, rng.randint(1, len(texts)))
        words = (*words, *(word for text in of["references"] for word in ("--configuration", text)))
    return of, words


@kind("options of ci", 60)
def options(rng: random.Random, world: World) -> Case:
    """Any of its options with values that may do, and wild ones, of molecules and of atoms."""
    name = rng.choice((*CLOSED, "li", "be"))
    source = "m.dump" if name in CLOSED and rng.random() < 0.5 else "m.xyz"
    content = world.content(f"{name}.{source[2:]}") if name != "be" else b"1\n\nBe 0 0 0\n"
    basis = ("--basis", "sto-3g") if source == "m.xyz" and rng.random() < 0.9 else ()
    chosen = [_option(rng) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.3:
        chosen.append(("--plan",))
    files = {
        source: content,
        "known.txt": KNOWN,
        "old.h5": world.content(f"{rng.choice(RESTARTED)}.roots.h5"),
    }
    return CommandCase(("ci", source, *basis), tuple(chosen), files)


def _option(rng: random.Random) -> tuple[str, ...]:
    parameters = options_of("ci")
    name = rng.choice((*sorted(parameters), *OF_CI))
    if parameters[name].is_flag:
        return (name,)
    known = OF_CI.get(name) or (*HARMLESS.get(name, ()), *VALUES.get(name, ()))
    return (name, rng.choice(known) if known and rng.random() < 0.8 else rng.choice(WORDS))


@kind("ci restart", 40)
def restart(rng: random.Random, world: World) -> Case:
    """From roots that are good, damaged or forged, or of others: the same energies, or it is refused."""
    name, how = rng.choice(RESTARTED), rng.random()
    content, note, roots = world.content(f"{name}.roots.h5"), "", rng.choice((1, 2, 3))
    if how < 0.55:
        content, note = resealed(
            content, lambda file: "; ".join(forge(rng, file) for _ in range(rng.randint(1, 2)))
        )
    elif how < 0.75:
        content = damaged_bytes(rng, content)
    rank = 2 if how < 0.9 else rng.choice((1, 2, 3))
    source = f"{name}.dump"
    kept = rng.choice(((), ("--checkpoint", "old.h5"), ("--checkpoint", "new.h5")))
    core = ("ci", source, "--rank", str(rank), "--roots", str(roots), "--restart", "old.h5", *kept, *TIGHT)
    case = CommandCase(
        core, files={source: world.content(source), "old.h5": content}, note=note,
        levels=tuple(world.levels(name, rank=rank)[:roots]), tolerance=TRUNCATED,
    )  # fmt: skip
    if 0.75 <= how < 0.9:
        return replace(case, must_end=(DONE,), reason="although the roots are good")
    return case


@kind("CI called right", 16)
def called_right(rng: random.Random, world: World) -> Case:
    """With arguments that change nothing: all energies by PySCF."""
    name = rng.choice((*CLOSED, *OPEN))
    of, _ = _sector(rng, world, name)
    roots, source = rng.choice((1, 2, 3)), rng.choice(("dump", "mean field"))
    has_irreps = _has_irreps(name, source)
    given: dict[str, Any] = {"rank": of["rank"], "roots": roots} | _renamed(of)
    names = (*Settings.__dataclass_fields__, "symmetry", "frozen")
    known = sorted((set(names) & set(GOOD_ARGUMENTS)) - {"restart", "conv_tol", "conv_tol_residual"})
    given |= {key: rng.choice(GOOD_ARGUMENTS[key]) for key in rng.sample(known, rng.randint(0, 3))}
    given |= {"conv_tol": 1e-11, "conv_tol_residual": 1e-7}
    if rng.random() < 0.3:
        given["direct"] = rng.choice((True, None))
    has_irreps &= given.get("symmetry", "auto") == "auto"
    expected = world.levels(name, **of, by_irrep=has_irreps)
    if not len(expected):
        return CallCase("CI.run", _run, (_source(world, name, source),), given)
    return CallCase(
        "CI.run",
        _run,
        (_source(world, name, source),),
        given,
        lambda done: compared(done, expected[:roots], TRUNCATED),
        valid=True,
    )


def _renamed(of: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `Sectors.energies` as those of `CI`."""
    made = {"spin": of["spin"]} if "spin" in of else {}
    return made | ({"reference": of["references"]} if "references" in of else {})


@kind("CI called wrong", 40)
def called_wrong(rng: random.Random, world: World) -> Case:
    """Wrong types and values are refused."""
    name = rng.choice(("h2", "lih", "li"))
    likely: dict[str, tuple[Any, ...]] = {
        "rank": (None, 0, 1, 2, 99),
        "irrep": (None, "A1", "ag", "B1u", "E"),
        "spin": (None, 0, 1, 2, 4),
        "roots": (1, 2, 50),
        "reference": (None, "2", "22", ["22", "202"], [], ["2", 2], "x"),
        "determinants": (None, [((0, 1), (0, 1))], [((0,), (0,))], [((0, 0), (0, 1))], [((0, 9), (0, 1))],
                         [((0, 1), (0, 1))] * 2, [((0.5, 1), (0, 1))], [(("a", "b"), (0, 1))], [1]),
        "direct": (None, True, False),
        "mpi": ("auto", False),
    }  # fmt: skip
    names = [*names_of(tilewise.CI), *Settings.__dataclass_fields__]
    given = named(rng, names, likely)
    source = _source(world, name, rng.choice(("dump", "mean field")))
    source = source if rng.random() < 0.95 else rng.choice(WILD_ARGUMENTS)
    return CallCase("CI.run", _run, (source,), given, finite)


def named(rng: random.Random, names: list[str], likely: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """One to three arguments with values that may do, or wild ones."""
    offered = [name for name in names if name not in ("settings", "callback", "progress")]
    given = {}
    for key in rng.sample(offered, rng.randint(1, 3)):
        good = likely.get(key) or GOOD_ARGUMENTS.get(key, (None,))
        given[key] = rng.choice(WILD_ARGUMENTS if rng.random() < 0.6 else good)
    return given


def _source(world: World, name: str, kind: str) -> Any:
    if kind == "dump":
        return tilewise.read_fcidump(world.file(f"{name}.dump"))
    return world.mean_field(name, "rohf" if name in OPEN_SYSTEMS else "rhf")


def _run(source: Any, **given: Any) -> Any:
    made = tilewise.CI(source, **given)
    str(made.plan())
    return made.run()


def finite(done: Any) -> Problem | None:
    """What is said to be converged has an energy."""
    if done.converged and not np.isfinite(done.energies).all():
        return Problem("changed energy", "it is not finite", str(done.energies))
    done.natural_orbitals()
    repr(done)
    return None


def compared(done: Any, expected: np.ndarray, tolerance: float = TOLERANCE) -> Problem | None:
    """All states that were asked for, by PySCF."""
    found = np.asarray(done.energies)
    if done.converged and found.shape == expected.shape and np.abs(found - expected).max() < tolerance:
        return finite(done)
    return Problem("changed energy", "of a valid call", f"{found}, PySCF has {expected}")
