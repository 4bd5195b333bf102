"""Open shells: valid ones by every way in, wrong spins and references, and damaged files of theirs."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from typing import Any

import h5py

import tilewise
from fuzzing.case import Case, kind
from fuzzing.commands import CODES, DONE, REFUSED, CommandCase
from fuzzing.integral_files import SHORT, written
from fuzzing.mutations import damaged_bytes, damaged_text
from fuzzing.options import HARMLESS, VALUES, WORDS
from fuzzing.python_calls import (
    GOOD_ARGUMENTS,
    CallCase,
    _energy,
    _named,
    _planned,
    _simulate_method,
    _simulated,
    names_of,
)
from fuzzing.restarts import forge, resealed
from fuzzing.world import OPEN_REFERENCES, OPEN_SYSTEMS, SYSTEMS, World

QUICK = ("h", "li", "h2-triplet", "lih-cation")
TIGHT = ("--conv-tol", "1e-9", "--conv-tol-residual", "1e-8")
ABOUT_SPIN = ("--spin", "--multiplicity", "--reference", "--charge", "--frozen")
UNCHANGED = ("--threads", "--tile", "--memory", "--policy", "--symmetry", "--diis-space", "--json", "--trace",
             "--checkpoint", "--deterministic", "--level-shift")  # fmt: skip


@kind("open shell", 14)
def valid(rng: random.Random, world: World) -> Case:
    """A molecule, an FCIDUMP or a chkfile, with options that change nothing: PySCF's energy."""
    name, reference = rng.choice((*QUICK, "nh2")), rng.choice(OPEN_REFERENCES)
    system, how = OPEN_SYSTEMS[name], rng.random()
    frozen = rng.choice(system.frozen)
    if how < 0.5:
        source = f"{name}.xyz"
        words = (*_words_of(rng, name), *_reference_words(rng, reference), "--frozen", str(frozen))
    elif how < 0.75:
        source, reference, frozen, words = f"{name}.dump", "rohf", 0, ()
    else:
        source, words = f"{name}-{reference}.chk", ("--frozen", str(frozen))
    wanted = rng.sample(UNCHANGED, rng.randint(0, 3))
    options = [(option, rng.choice(HARMLESS[option])) if HARMLESS[option] else (option,) for option in wanted]
    return CommandCase(
        ("ccsd", source, *words, *TIGHT), tuple(options), {source: world.content(source)},
        energy=world.energy(name, frozen, reference), must_end=(DONE,), reason="although all of it is valid",
    )  # fmt: skip


@kind("open shell options", 20)
def about_spin(rng: random.Random, world: World) -> Case:
    """Spins, multiplicities and references that may not fit the electrons, each other, or the file."""
    name = rng.choice((*QUICK, "h2", "lih"))
    system = (SYSTEMS | OPEN_SYSTEMS)[name]
    source = rng.choice((f"{name}.xyz", f"{name}.xyz", f"{name}.dump"))
    basis = ("--basis", system.basis) if source.endswith("xyz") else ()
    options = []
    for _ in range(rng.randint(1, 4)):
        option = rng.choice(ABOUT_SPIN)
        options.append((option, rng.choice(VALUES[option] if rng.random() < 0.85 else WORDS)))
    command = rng.choice(("ccsd", "ccsd", "plan", "simulate"))
    kept = {"ccsd": ("--no-checkpoint", *SHORT[0]), "plan": (), "simulate": ("--workers", "2")}[command]
    return CommandCase(
        (command, source, *basis, *kept), tuple(options), {source: world.content(source)}, must_end=CODES
    )


@kind("open shell fcidump", 16)
def integral_file(rng: random.Random, world: World) -> Case:
    """Written in another way: the same energy. Cut: refused. Damaged: refused, or it means something else."""
    name, how = rng.choice(QUICK), rng.random()
    text = world.content(f"{name}.dump").decode()
    core = ("ccsd", "m.dump", "--no-checkpoint")
    if how < 0.3:
        return CommandCase(
            (*core, *TIGHT), files={"m.dump": written(rng, text)}, energy=world.energy(name, 0, "rohf"),
            must_end=(DONE,), reason="although the file is valid",
        )  # fmt: skip
    if how < 0.4:
        lines = text.splitlines(keepends=True)
        content = "".join(lines[: rng.randrange(len(lines))]).encode()
        return CommandCase(
            core, SHORT, {"m.dump": content}, must_end=(REFUSED,), reason="although its end is lost"
        )
    if how < 0.6:
        text = text.replace("MS2=", f"MS2={rng.choice(('1', '-', '0', '2', '7', ' '))}", 1)
        return CommandCase(core, SHORT, {"m.dump": text.encode()})
    return CommandCase(core, SHORT, {"m.dump": damaged_text(rng, text)})


@kind("open shell chkfile damaged", 6)
def chkfile(rng: random.Random, world: World) -> Case:
    content = world.content(f"{rng.choice(QUICK)}-{rng.choice(OPEN_REFERENCES)}.chk")
    if rng.random() < 0.4:
        content, note = damaged_bytes(rng, content), ""
    else:
        image = io.BytesIO(content)
        with h5py.File(image, "r+") as file:
            note = forge(rng, file)
        content = image.getvalue()
    return CommandCase(("ccsd", "m.chk", "--no-checkpoint"), SHORT, {"m.chk": content}, note=note)


@kind("open shell restart", 16)
def restart(rng: random.Random, world: World) -> Case:
    """From a good checkpoint the same energy; from one of another reference, or a damaged one, no other."""
    name, reference, how = rng.choice(QUICK), rng.choice(OPEN_REFERENCES), rng.random()
    source, content, note = f"{name}.xyz", world.content(f"{name}-{reference}.h5"), ""
    if how < 0.4:
        content, note = _forged(rng, content)
    elif how < 0.6:
        content = damaged_bytes(rng, content)
    elif how < 0.7:
        reference = OPEN_REFERENCES[reference == "uhf"]
    words = (*_words_of(rng, name), "--reference", reference, "--restart", "old.h5", *TIGHT)
    kept = ("--checkpoint", rng.choice(("old.h5", "new.h5")))
    files = {source: world.content(source), "old.h5": content}
    case = CommandCase(("ccsd", source, *words, *kept), files=files, note=note)
    energy = world.energy(name, 0, reference)
    if how < 0.7:
        return replace(case, energy=None if how < 0.4 else energy)
    more = (("--tile", rng.choice("13")), ("--symmetry", rng.choice(("auto", "C1"))))
    return replace(case, options=more, energy=energy, must_end=(0,), reason="although the checkpoint is good")


@kind("open shell in Python", 16)
def called(rng: random.Random, world: World) -> Case:
    """CCSD, UCCSD, plan and simulate of unpaired electrons, with right and wrong arguments."""
    name, reference = rng.choice(QUICK), rng.choice(OPEN_REFERENCES)
    source = world.mean_field(name, reference)
    if rng.random() < 0.3:
        source, reference = tilewise.read_fcidump(world.file(f"{name}.dump")), "rohf"
    method = rng.choice((tilewise.CCSD, tilewise.UCCSD))
    energy = world.energy(name, 0, reference)
    how = rng.random()
    if how < 0.4:
        known = sorted((set(names_of(tilewise.CCSD)) & set(GOOD_ARGUMENTS)) - {"level_shift", "diis_space"})
        named = {key: rng.choice(GOOD_ARGUMENTS[key]) for key in rng.sample(known, rng.randint(0, 4))}
        tight = {"conv_tol": 1e-9, "conv_tol_residual": 1e-8, "max_cycle": 100}
        return CallCase(
            f"{method.__name__}.run", _run, (method, source), named | tight,
            lambda done: _energy(done, energy), valid=True,
        )  # fmt: skip
    if how < 0.8:
        named = _named(rng, names_of(tilewise.CCSD))
        return CallCase(f"{method.__name__}.run", _run, (method, source), named)
    if how < 0.9:
        return CallCase("plan", _planned, (source,), _named(rng, names_of(tilewise.plan)))
    return CallCase("simulate", _simulated, (source,), _named(rng, names_of(_simulate_method())))


def _run(method: Any, source: Any, **named: Any) -> Any:
    return method(source, **named).run()


def _words_of(rng: random.Random, name: str) -> tuple[str, ...]:
    """The options of a system, with its spin counted in one way or the other."""
    words = OPEN_SYSTEMS[name].options
    if rng.random() < 0.5:
        return words
    at = words.index("--spin")
    return (*words[:at], "--multiplicity", str(int(words[at + 1]) + 1), *words[at + 2 :])


def _reference_words(rng: random.Random, reference: str) -> tuple[str, ...]:
    if reference == "uhf" and rng.random() < 0.5:
        return ()
    return ("--reference", reference)


def _forged(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    return resealed(content, lambda file: "; ".join(forge(rng, file) for _ in range(rng.randint(1, 2))))
