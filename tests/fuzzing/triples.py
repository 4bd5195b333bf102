"""CCSD(T): energies by every way in, restarts from damaged and forged files, and plans of ranks."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import h5py
import numpy as np

import tilewise
from fuzzing.case import Case, Problem, kind
from fuzzing.commands import CODES, DONE, REFUSED, TOLERANCE, CommandCase
from fuzzing.mutations import damaged_bytes
from fuzzing.open_shells import UNCHANGED
from fuzzing.options import HARMLESS, WORDS, options_of
from fuzzing.python_calls import GOOD_ARGUMENTS, CallCase, names_of
from fuzzing.restarts import forge, resealed
from fuzzing.world import OPEN_SYSTEMS, QUICK, SYSTEMS, TRIPLES, World

TIGHT = ("--conv-tol", "1e-9", "--conv-tol-residual", "1e-8")
NONE = ("0", "-1", "4097", "1.5", "")
"""Numbers of ranks and threads that are none."""
NUMBERS = ("1", "2", "3", "7", "64", "4096", "1.0", "1e3", *NONE)


@kind("triples", 12)
def valid(rng: random.Random, world: World) -> Case:
    """A molecule or an FCIDUMP, with options that change nothing: PySCF's energy."""
    name = rng.choice(("h2", "lih", "water", "li", "lih-cation", "nh2"))
    system = (SYSTEMS | OPEN_SYSTEMS)[name]
    frozen, reference = rng.choice(system.frozen), "rohf" if system.spin else ""
    source, words = f"{name}.dump", ()
    if rng.random() < 0.3:
        source, words = f"{name}.xyz", (*system.options, "--frozen", str(frozen))
        if system.spin:
            reference = rng.choice(("uhf", "rohf"))
            words = (*words, "--reference", reference)
    else:
        frozen = 0
    wanted = rng.sample(UNCHANGED, rng.randint(0, 3))
    options = [(option, rng.choice(HARMLESS[option])) if HARMLESS[option] else (option,) for option in wanted]
    kept = () if "--checkpoint" in wanted else ("--no-checkpoint",)
    return CommandCase(
        ("ccsd", source, *words, "--triples", *kept, *TIGHT), tuple(options), {source: world.content(source)},
        energy=world.energy(name, frozen, reference),
        triples_energy=world.triples_energy(name, frozen, reference),
        must_end=(DONE,), reason="although all of it is valid",
    )  # fmt: skip


@kind("triples restart", 24)
def restart(rng: random.Random, world: World) -> Case:
    """Whatever the file of triples has become: the energy stays, or the run is refused."""
    name, how = rng.choice(TRIPLES), rng.random()
    checkpoint, kept = (world.content(f"{name}.ccsd.{end}") for end in ("h5", "triples.h5"))
    note = ""
    if how < 0.45:
        kept, note = resealed(kept, lambda file: _forged(rng, file))
    elif how < 0.75:
        kept = damaged_bytes(rng, kept)
    elif how < 0.85:
        kept = world.content(f"{TRIPLES[name == TRIPLES[0]]}.ccsd.triples.h5")
    elif how < 0.9:
        checkpoint, kept = kept, checkpoint
    source = f"{name}.dump"
    files = {source: world.content(source), "old.h5": checkpoint, "old.triples.h5": kept}
    target = rng.choice((("--no-checkpoint",), ("--checkpoint", "new.h5"), ("--checkpoint", "old.h5")))
    core = ("ccsd", source, "--triples", "--restart", "old.h5", *target, *TIGHT)
    reference = "rohf" if name in OPEN_SYSTEMS else ""
    case = CommandCase(
        core, files=files, note=note, energy=world.energy(name, 0, reference),
        triples_energy=world.triples_energy(name, 0, reference),
    )  # fmt: skip
    if 0.85 <= how < 0.9:
        return replace(case, must_end=(REFUSED,), reason="although the files have changed places")
    if how < 0.9:
        return replace(case, must_end=(DONE,), reason="although CCSD can go on")
    more = (("--tile", rng.choice(("1", "3"))), ("--policy", rng.choice(("lpt", "steal", "dataflow"))))
    return replace(case, options=more, must_end=(DONE,), reason="although the files are good")


def _forged(rng: random.Random, file: h5py.File) -> str:
    """Anything but energies that are other numbers of their kind: nobody can tell these from right ones."""
    before = {name: np.asarray(file[name]) for name in ("total", "fourth")}
    note = "; ".join(forge(rng, file) for _ in range(rng.randint(1, 2)))
    for name, values in before.items():
        found = file.get(name)
        if isinstance(found, h5py.Dataset) and (found.shape, found.dtype) == (values.shape, values.dtype):
            found[()] = values
            note = f"{note}; {name} as it was"
    return note


@kind("triples in Python", 12)
def called(rng: random.Random, world: World) -> Case:
    """CCSD and ccsd_t() of the small molecules, with arguments that change nothing."""
    name = rng.choice(("h2", "lih", "li", "lih-cation"))
    is_open = name in OPEN_SYSTEMS
    source: Any = tilewise.read_fcidump(world.file(f"{name}.dump"))
    reference = "rohf" if is_open else ""
    if rng.random() < 0.4:
        reference = "uhf" if is_open else ""
        source = world.mean_field(name, reference or "rhf")
    known = set(names_of(tilewise.CCSD)) & set(GOOD_ARGUMENTS) - {"level_shift", "diis_space", "max_cycle"}
    named = {key: rng.choice(GOOD_ARGUMENTS[key]) for key in rng.sample(sorted(known), rng.randint(0, 4))}
    tight = {"conv_tol": 1e-9, "conv_tol_residual": 1e-8, "max_cycle": 100}
    energy = world.triples_energy(name, 0, reference)
    return CallCase(
        "CCSD.ccsd_t", _with_triples, (source,), named | tight, lambda done: _compared(done, energy),
        valid=True,
    )  # fmt: skip


def _with_triples(source: Any, **named: Any) -> float:
    calculation = tilewise.CCSD(source, **named)
    calculation.run()
    calculation.ccsd_t()
    return float(calculation.e_tot_t)


def _compared(found: float, expected: float) -> Problem | None:
    if np.isfinite(found) and abs(found - expected) < TOLERANCE:
        return None
    return Problem("changed energy", "of a valid call", f"{found:.10f}, PySCF has {expected:.10f}")


@kind("plan of triples and ranks", 24)
def planned(rng: random.Random, world: World) -> Case:
    """Numbers of ranks, threads and tiles that are right, too large or none; memory that is short."""
    name = rng.choice((*QUICK, "water", "li", "nh2"))
    source = f"{name}.dump"
    options: list[tuple[str, ...]] = [("--triples",)] if rng.random() < 0.7 else []
    for option in rng.sample(
        ("--ranks", "--threads", "--tile", "--memory", "--policy", "--deterministic"), 3
    ):
        if options_of("plan")[option].is_flag:
            options.append((option,))
            continue
        known = (*HARMLESS.get(option, ()), *(("20MB", "1kB") if option == "--memory" else NUMBERS))
        options.append((option, rng.choice(known if rng.random() < 0.85 else WORDS)))
    if rng.random() < 0.3:
        options.append(("--json", "-"))
    core = ("plan", source, *(word for option in options for word in option))
    is_wrong = any(option in ("--ranks", "--threads") and value in NONE for option, value in pairwise(core))
    return CommandCase(
        core, files={source: world.content(source)}, must_end=(REFUSED,) if is_wrong else CODES,
        reason="although a number is none" if is_wrong else "",
    )  # fmt: skip
