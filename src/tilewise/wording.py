"""Words for people."""

from __future__ import annotations


def counted(count: int, thing: str, things: str | None = None) -> str:
    """A number with its noun: "1 worker", "2 workers", "3 dependencies"."""
    return f"{count} {thing if count == 1 else things or thing + 's'}"
