"""Configurations and terms of atoms in words: "1s2 2s2 2p6", "3P", "2Po"."""
# ruff: noqa: E741 (l is the angular momentum)

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewise.errors import InputError

LETTERS = "SPDFGHIKLMNOQRTUV"
"""Of total orbital angular momenta, from 0 up; J is left out, as in spectroscopy."""

Subshell = tuple[int, int]
"""(n, l)."""

_SHELL = re.compile(r"(\d+)([a-z])(\d*)")
_TERM = re.compile(r"(\d+)([A-Za-z])(o|e|\*)?")


def subshell_name(subshell: Subshell) -> str:
    n, l = subshell
    return f"{n}{LETTERS[l].lower()}"


def parse_subshell(text: str) -> Subshell:
    """ "2p" -> (2, 1)."""
    match = _SHELL.fullmatch(text.strip().lower())
    if match is None or match[3]:
        raise InputError(f"subshell '{text}': a name such as 2p is expected")
    return _checked(int(match[1]), match[2], text)


def parse_configuration(text: str) -> dict[Subshell, int]:
    """Electrons in each subshell; without a number there is one: "1s2 2s2 2p" has 5."""
    found: dict[Subshell, int] = {}
    for word in text.replace(",", " ").replace(".", " ").split():
        match = _SHELL.fullmatch(word.lower())
        if match is None:
            raise InputError(
                f"configuration '{text}': '{word}' is not a subshell with electrons, such as 2p6"
            )
        shell = _checked(int(match[1]), match[2], word)
        count, most = int(match[3] or 1), 2 * (2 * shell[1] + 1)
        if shell in found:
            raise InputError(f"configuration '{text}': {subshell_name(shell)} stands there twice")
        if not 0 < count <= most:
            raise InputError(f"configuration '{text}': {subshell_name(shell)} holds 1 to {most} electrons")
        found[shell] = count
    if not found:
        raise InputError("configuration '': at least one subshell is expected, such as 1s2 2s2")
    return found


def _checked(n: int, letter: str, text: str) -> Subshell:
    l = LETTERS.lower().find(letter)
    if l < 0 or n <= l:
        raise InputError(f"subshell '{text}': n must be larger than l, as in 1s, 2p, 3d")
    return n, l


def ground_configuration(n_electrons: int) -> dict[Subshell, int]:
    """Subshells filled by n + l, then by n (Madelung's rule); some atoms have others, such as Cr and Cu."""
    found: dict[Subshell, int] = {}
    left, total = n_electrons, 1
    while left > 0:
        for l in range((total - 1) // 2, -1, -1):
            count = min(left, 2 * (2 * l + 1))
            if count:
                found[total - l, l] = count
                left -= count
        total += 1
    return found


def configuration_text(shells: dict[Subshell, int]) -> str:
    return " ".join(f"{subshell_name(shell)}{count}" for shell, count in sorted(shells.items()) if count)


def is_odd(shells: dict[Subshell, int]) -> bool:
    """The parity of a configuration."""
    return sum(shell[1] * count for shell, count in shells.items()) % 2 == 1


@dataclass(frozen=True)
class Term:
    """Spin and orbital angular momentum; `is_odd` is None where the parity is left open."""

    multiplicity: int
    l: int
    is_odd: bool | None = None

    @classmethod
    def parse(cls, text: str) -> Term:
        """ "3P", "3Po" (odd) or "3Pe" (even)."""
        match = _TERM.fullmatch(text.strip())
        letter = match[2].upper() if match else ""
        if match is None or int(match[1]) < 1 or letter not in LETTERS:
            raise InputError(
                f"term '{text}': expected 2S+1, a letter of {LETTERS} and perhaps o, such as 3Po"
            )
        parity = {"o": True, "*": True, "e": False, None: None}[match[3]]
        return cls(int(match[1]), LETTERS.index(letter), parity)

    def __str__(self) -> str:
        return f"{self.multiplicity}{LETTERS[self.l]}{'o' if self.is_odd else ''}"
