"""The constants of the studies, read from where they are set, and the table of them in docs/studies.md.

SERVICE = in_machine("fusion", "counter.service", "s", "the share of the counter", "fitted to figure 7")
SHARE = in_module(__name__, "LONG", "which routines run long", "chosen: most of the time")
Study("ozog-fig7", "Ozog et al., figure 7", "benzene", run, (SIMULATED, FITTED), lambda: (SERVICE, SHARE))
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping

from tilewise.hardware.machines import shipped_machines
from tilewise.studies.study import Constant, Study

HEADS = ("constant", "value", "file", "what it decides", "origin")
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


def in_module(module: str, name: str, decides: str, origin: str, unit: str = "") -> Constant:
    """A constant of a module, which calls this with its `__name__` below the constant."""
    value = getattr(sys.modules[module], name)
    return Constant(name, quantity(value, unit), f"src/{module.replace('.', '/')}.py", decides, origin)


def in_machine(machine: str, key: str, unit: str, decides: str, origin: str) -> Constant:
    """A value of a shipped machine file; its key is such as "noise" or "counter.service"."""
    file = f"{machine}.toml"
    value = tomllib.loads(shipped_machines()[machine].read_text(encoding="utf-8"))
    for part in key.split("."):
        value = value[part]
    return Constant(key, quantity(value, unit), f"src/tilewise/machines/{file}", decides, origin)


def quantity(value: object, unit: str = "") -> str:
    """With its unit: a count as it is, and what is measured with a prefix, such as "25 us"."""
    if isinstance(value, Mapping):
        return ", ".join(f"{quantity(one, unit)} ({key})" for key, one in value.items())
    if isinstance(value, tuple):
        return ", ".join(quantity(one, unit) for one in value)
    if not unit:
        return str(value)
    if not isinstance(value, float):
        return f"{value} {unit}"
    scale, prefix = next((pair for pair in _PREFIXES if abs(value) >= 0.9999 * pair[0]), (1.0, ""))
    return f"{value / scale:.4g} {prefix}{unit}"


def all_constants(studies: Iterable[Study]) -> list[Constant]:
    """Those of all studies in their order, each once."""
    return list(dict.fromkeys(constant for study in studies for constant in study.constants()))


def markdown_rows(constants: Iterable[Constant]) -> list[str]:
    """A line of docs/studies.md for each constant."""
    return [
        _line((f"`{c.name}`", c.value, f"[{c.file.rpartition('/')[2]}](../{c.file})", c.decides, c.origin))
        for c in constants
    ]


def markdown_table(constants: Iterable[Constant]) -> str:
    return "\n".join([_line(HEADS), "|---" * len(HEADS) + "|", *markdown_rows(constants)])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
