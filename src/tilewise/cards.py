"""How objects show themselves: a line in a shell, a small table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def line(kind: str, parts: Mapping[str, str]) -> str:
    """For `__repr__`: the kind of a thing and what is worth knowing, without the labels."""
    return f"<{kind}: {', '.join(parts.values())}>"


def table(title: str, parts: Mapping[str, str]) -> str:
    """For `_repr_html_`: the same with its labels."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(label)}</th><td>{escape(text)}</td></tr>"
        for label, text in parts.items()
    )
    return f"<table><caption>{escape(title)}</caption>{rows}</table>"
