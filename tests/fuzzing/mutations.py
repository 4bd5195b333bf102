"""Small damage to texts, bytes and documents."""

from __future__ import annotations

import copy
import random
from typing import Any

WILD_WORDS = (
    "", "0", "-1", "1", "2", "7", "1e400", "-1e400", "1e-400", "nan", "inf", "1" * 25, "-" + "9" * 30,
    "9" * 5000, "1_000", "+5", "0x10", "1.5", "1d0", "1,2", "1/0", "x", "H", "He", "é", "١", "²", "∞",
    "\x00", "\x1b[31m", "\udcff", "[bold]", "[/]", "%s", "{}", "--", "-", ".", "..", "/", "*", "9*1",
    "999999999999*1", "(", ")", "'", '"', "\\", "a\nb", "None", "true", "auto", "&END", "#", "!", "x" * 300,
)  # fmt: skip
WILD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1.5, -0.5, 1e308, 10**25, float("nan"), float("inf"), "", "x", "1", [],
    [0], {}, {"a": 1}, "\udcff"[:0] + "é",
)  # fmt: skip


def damaged_text(rng: random.Random, text: str, times: int | None = None) -> bytes:
    """One to three changes of lines, words and characters, and perhaps of bytes."""
    for _ in range(times or rng.randint(1, 3)):
        text = rng.choice((_lines_changed, _word_changed, _character_changed))(rng, text)
    content = text.encode("utf-8", errors="surrogateescape")
    return damaged_bytes(rng, content) if rng.random() < 0.1 else content


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    """Cut, flipped, doubled, or with bytes in between."""
    at = rng.randrange(len(content) + 1)
    return rng.choice(
        (
            content[:at],
            content[at:],
            content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :],
            content[:at] + rng.randbytes(rng.choice((1, 2, 16))) + content[at:],
            content[:at] + b"\0" * rng.choice((1, 64)) + content[at + 64 :],
            content + content,
            content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b" "))),
            rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\n\n")) + content,
        )
    )


def damaged_document(rng: random.Random, document: Any) -> Any:
    """A JSON document with values that are replaced, left out, doubled or put elsewhere."""
    made = copy.deepcopy(document)
    for _ in range(rng.randint(1, 3)):
        parent, key = rng.choice(_places(made)) if _places(made) else (None, None)
        if parent is None:
            return rng.choice(WILD_VALUES)
        action = rng.randrange(4)
        if action == 0:
            del parent[key]
        elif action == 1 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        else:
            others = _places(made)
            there, where = rng.choice(others)
            parent[key] = copy.deepcopy(there[where]) if action == 2 else rng.choice(WILD_VALUES)
    return made


def _places(document: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value; of long lists some entries alone."""
    found = []
    rest = [document]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            inside: list[Any] = list(value)
        elif isinstance(value, list):
            inside = list(range(len(value)))
        else:
            continue
        found += [(value, key) for key in inside]
        rest += [value[key] for key in inside]
    return found


def _lines_changed(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    k = rng.randrange(len(lines))
    action = rng.randrange(5)
    if action == 0:
        del lines[k]
    elif action == 1:
        lines.insert(k, lines[k])
    elif action == 2:
        lines.insert(k, rng.choice(("", " ", "#", "! x", *WILD_WORDS)))
    elif action == 3:
        other = rng.randrange(len(lines))
        lines[k], lines[other] = lines[other], lines[k]
    else:
        lines = lines[:k]
    return "\n".join(lines)


def _word_changed(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    filled = [k for k, line in enumerate(lines) if line.split()]
    if not filled:
        return rng.choice(WILD_WORDS)
    k = rng.choice(filled)
    words = lines[k].split()
    at = rng.randrange(len(words))
    words[at : at + 1] = rng.choice(([rng.choice(WILD_WORDS)], [], [words[at], rng.choice(WILD_WORDS)]))
    lines[k] = rng.choice((" ", " ", "\t", ",")).join(words)
    return "\n".join(lines)


def _character_changed(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    new = rng.choice(("", rng.choice("0123456789-+.eE,|=[]() \t"), chr(rng.randrange(1, 0x250))))
    return text[:at] + new + text[at + rng.randrange(2) :]
