"""Options of every command, as the command line lists them: values that change nothing, and wild ones."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from fuzzing.case import Case, kind
from fuzzing.commands import CODES, CommandCase
from fuzzing.mutations import WILD_WORDS, damaged_text
from fuzzing.world import QUICK, SYSTEMS, World

POLICIES = (
    "nxtval", "ie-nxtval", "ie-nxtval(quantum=3)", "block", "proportional", "lpt", "lpt(barriers=true)",
    "hypergraph", "buckets", "buckets(size=2, steal=yes)", "steal", "interleaved", "chunk", "chunk(size=7)",
    "gss", "gss(delta=0.3)", "tss", "tss(probe=2)", "factoring", "factoring(f=3, delta=0.5)", "levels",
    "dataflow", "dataflow(trees=no)", "dataflow(queues=worker)", "hybrid",
)  # fmt: skip
HARMLESS = {
    "--threads": ("1", "2", "3"),
    "--tile": ("1", "2", "5", "16", "1000"),
    "--memory": ("1GB", "900 MB", "2GiB", "1200"),
    "--policy": POLICIES,
    "--symmetry": ("auto", "C1", "AUTO", "c1"),
    "--diis-space": ("2", "5", "8", "40"),
    "--max-cycle": ("50", "100"),
    "--scf-max-cycle": ("50", "200"),
    "--conv-tol": ("1e-8", "1e-9"),
    "--conv-tol-residual": ("1e-8", "1e-9"),
    "--level-shift": ("0", "0.05"),
    "--json": ("out.json", "-"),
    "--trace": ("trace.json",),
    "--checkpoint": ("kept.h5",),
    "--deterministic": (),
    "--pin": (),
    "--verbose": (),
    "--frozen": ("0",),
}
"""What changes no energy."""
VALUES = {
    "--basis": ("sto-3g", "STO-3G", "6-31g", "cc-pvdz", "none", "sto3g,", "H=sto-3g"),
    "--auxbasis": ("cc-pvdz-ri", "weigend", "sto-3g"),
    "--cholesky": ("1e-6", "1e-3", "0.5", "1e-300", "0", "1"),
    "--charge": ("0", "2", "-2", "1", "100"),
    "--spin": ("0", "1", "2", "3", "-1", "9", "1.0"),
    "--multiplicity": ("1", "2", "3", "0", "4", "10"),
    "--reference": ("rhf", "uhf", "rohf", "UHF", "ghf", "ks"),
    "--frozen": ("auto", "0", "1", "0,1", "1,1", "none", "-1", "0,", ",", "3"),
    "--symmetry": ("C1", "Cs", "C2v", "D2h", "D3h", "C2", "Ci"),
    "--unit": ("bohr", "angstrom", "B", "A"),
    "--machine": ("laptop", "fusion", "pvm", "cascade.toml", "nowhere"),
    "--workers": ("1", "2", "1,2", "1:4", "4:1", "8:64", "1:", "0", "1,,2", "99999999999"),
    "--equations": ("tilewise", "tce-ccsd", "tce"),
    "--restart": ("old.h5", "none.h5", "."),
    "--out": ("new.dump", "no/where", ".", "m.xyz/x", ""),
    "--picture": ("p.png", "p.svg", "p.txt", "no/p.png", ""),
    "--json": ("", ".", "no/out.json", "m.xyz/x", "out.json", "-"),
    "--trace": ("", ".", "no/t.json", "t.json"),
    "--checkpoint": ("", ".", "no/k.h5", "k.h5", "m.xyz/k"),
    "--iteration": ("1", "0", "-1", "99"),
    "--seed": ("0", "1", "18446744073709551616", "-1"),
    "--memory": ("1kB", "50MB", "1e3GB", "1e400", ".", "0"),
    "--max-cycle": ("1", "2", "0"),
    "--scf-max-cycle": ("1", "2"),
    "--threads": ("1", "2", "0", "17"),
}
"""Beside wild words."""
WORDS = tuple(word for word in WILD_WORDS if "\0" not in word)
"""What a shell can hand over."""
KEPT = ("--no-checkpoint",)
STUDIES = ("list", "pvm-table1", "pvm-table2", "all!", "List")


@cache
def options_of(command: str) -> dict[str, Any]:
    """The options of a command by their longest name, from the command line itself."""
    import typer.main

    from tilewise.cli import app

    parameters = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    found = {max(p.opts, key=len): p for p in parameters if p.param_type_name == "option"}
    return {name: p for name, p in found.items() if name != "--help"}


@kind("options that change nothing", 25)
def harmless(rng: random.Random, world: World) -> Case:
    name = rng.choice(QUICK)
    system = SYSTEMS[name]
    frozen = rng.choice(system.frozen)
    from_dump = rng.random() < 0.4 and not frozen
    source, basis = (f"{name}.dump", ()) if from_dump else (f"{name}.xyz", system.options)
    core = ("ccsd", source, *basis, "--frozen", str(frozen), "--conv-tol-residual", "1e-8")
    wanted = rng.sample(sorted(set(HARMLESS) - {"--frozen"}), rng.randint(1, 5))
    chosen = [(option, rng.choice(HARMLESS[option])) if HARMLESS[option] else (option,) for option in wanted]
    workers = next((int(o[1]) for o in chosen if o[0] == "--threads"), 1)
    options = [o for o in chosen if o != ("--pin",) or workers == 1]
    return CommandCase(
        core, tuple(options), {source: world.content(source)}, energy=world.energy(name, frozen),
        must_end=(0,), reason="although all options are valid",
    )  # fmt: skip


@kind("options of ccsd", 60)
def of_ccsd(rng: random.Random, world: World) -> Case:
    return _with_options(rng, world, "ccsd", KEPT if rng.random() < 0.8 else ())


@kind("options of plan", 40)
def of_plan(rng: random.Random, world: World) -> Case:
    return _with_options(rng, world, "plan")


@kind("options of fcidump", 20)
def of_fcidump(rng: random.Random, world: World) -> Case:
    return _with_options(rng, world, "fcidump", ("--out", "new.dump") if rng.random() < 0.8 else ())


@kind("options of simulate", 30)
def of_simulate(rng: random.Random, world: World) -> Case:
    return _with_options(rng, world, "simulate", ("--workers", "1,2") if rng.random() < 0.8 else ())


@kind("options of tune", 1)
def of_tune(rng: random.Random, world: World) -> Case:
    """At least one is wild, so that most are refused before anything is measured."""
    option = rng.choice([name for name in options_of("tune") if name not in ("--molecule",)])
    return CommandCase(
        ("tune",),
        (("--molecule", "h2.xyz"), (option, rng.choice(WORDS[5:]))),
        {"h2.xyz": world.content("h2.xyz")},
    )


@kind("options of study", 10)
def of_study(rng: random.Random, world: World) -> Case:
    name = rng.choice((*STUDIES, rng.choice(WORDS)))
    return CommandCase(("study", name), tuple(_option(rng, "study") for _ in range(rng.randint(0, 2))))


@kind("any words", 40)
def any_words(rng: random.Random, world: World) -> Case:
    """Commands that are none, options in odd places, and help."""
    words = [
        "ccsd",
        "plan",
        "report",
        "simulate",
        "fcidump",
        "study",
        "h2.xyz",
        "--help",
        "--version",
        "-v",
        "--",
        "--json",
    ]
    words += [
        "--basis",
        "--threads=2",
        "--tile",
        "3",
        "-h",
        "--basis=sto-3g",
        "--policy",
        "list",
        "--no-checkpoint",
        "--df",
    ]
    chosen = [rng.choice((*words, *words, rng.choice(WORDS))) for _ in range(rng.randint(0, 5))]
    if "study" in chosen and "all" in chosen:
        chosen.remove("all")
    return CommandCase((), tuple((word,) for word in chosen), {"h2.xyz": world.content("h2.xyz")})


@kind("policy on the command line", 20)
def policy_text(rng: random.Random, world: World) -> Case:
    """A damaged policy text is refused, or means a policy, which changes no energy."""
    text = damaged_text(rng, rng.choice(POLICIES), 1).decode("utf-8", "surrogateescape").replace("\0", "")
    core = ("ccsd", "h2.dump", "--no-checkpoint", "--policy", text)
    return CommandCase(core, files={"h2.dump": world.content("h2.dump")}, energy=world.energy("h2"))


def _with_options(rng: random.Random, world: World, command: str, kept: tuple[str, ...] = ()) -> Case:
    name = rng.choice(QUICK)
    from_dump = rng.random() < 0.3
    source = f"{name}.dump" if from_dump else f"{name}.xyz"
    basis = () if from_dump or rng.random() < 0.2 else SYSTEMS[name].options
    options = [_option(rng, command) for _ in range(rng.randint(1, 4))]
    files = {source: world.content(source)}
    if any("old.h5" in option for option in options):
        files["old.h5"] = world.content(f"{rng.choice(('h2', 'lih'))}.h5")
    encoding = "ascii" if rng.random() < 0.03 else "utf-8"
    return CommandCase(
        (command, source, *basis, *kept), tuple(options), files, must_end=CODES, encoding=encoding
    )


def _option(rng: random.Random, command: str) -> tuple[str, ...]:
    """An option with a value that may do, or one that cannot."""
    parameters = options_of(command)
    name = rng.choice(sorted(parameters))
    if parameters[name].is_flag and rng.random() < 0.9:
        return (name,)
    known = (*HARMLESS.get(name, ()), *VALUES.get(name, ()))
    value = rng.choice(known) if known and rng.random() < 0.7 else rng.choice(WORDS)
    return (name, value) if rng.random() < 0.8 else (f"{name}={value}",)
