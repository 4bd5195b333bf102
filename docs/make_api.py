"""Writes api.md from the docstrings of what `import tilewise` offers: python docs/make_api.py [FILE]."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import tilewise
from tilewise.lazy import cached_property

PAGE = Path(__file__).with_name("api.md")
HEAD = """# The Python interface

All that `import tilewise` offers, in the order of the alphabet; `python docs/make_api.py` makes this page
from the docstrings.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_entry(name, getattr(tilewise, name)) for name in sorted(tilewise.__all__))])


def _entry(name: str, thing: Any) -> str:
    if inspect.isclass(thing):
        return _class_entry(name, thing)
    if isinstance(thing, Mapping):
        rows = [f"- `{value}`: {_first_sentence(type(value))}" for value in thing.values()]
        return f"## `tilewise.{name}`\n\n{_doc_of_name(name)}\n\n" + "\n".join(rows) + "\n"
    return f"## `tilewise.{name}`\n\n{_code(f'{name}{_signature(thing)}')}\n\n{_doc(thing)}\n"


def _code(text: str) -> str:
    """A call, its arguments in lines of their own if they are many."""
    if len(text) > 110:
        text = re.sub(r", (?=\*|\w+: )", ",\n    ", text)
    return f"```python\n{text}\n```"


def _class_entry(name: str, cls: type) -> str:
    parts = [f"## `tilewise.{name}`"]
    if call := _constructor(cls):
        parts.append(_code(f"{name}{call}"))
    parts.append(_doc(cls))
    if fields := list(_attributes(cls)):
        parts.append("\n".join(fields))
    parts += [f"#### `{title}`\n\n{doc}" for title, doc in _members(cls)]
    if issubclass(cls, Exception):
        parts.append("\n".join(f"- `{sub.__name__}`: {_doc(sub)}" for sub in _subclasses(cls)))
    return "\n\n".join(parts) + "\n"


def _constructor(cls: type) -> str:
    """The arguments of a class with an `__init__` of its own; those of a dataclass are its attributes."""
    makers = [vars(base)["__init__"] for base in _own_classes(cls) if "__init__" in vars(base)]
    return _signature(makers[0]) if makers and not is_dataclass(cls) else ""


def _signature(function: Any) -> str:
    """As it is written, without what Python adds and without the object itself."""
    tree = _tree(function)
    assert isinstance(tree, ast.FunctionDef)
    for arguments in (tree.args.posonlyargs, tree.args.args):
        if arguments and arguments[0].arg in ("self", "cls"):
            del arguments[0]
    returns = f" -> {ast.unparse(tree.returns)}" if tree.returns and tree.name != "__init__" else ""
    return f"({ast.unparse(tree.args)}){returns}"


def _attributes(cls: type) -> Iterator[str]:
    """Annotated names in the body of a class, with the texts that follow them."""
    body = _tree(cls).body
    for line, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(line, ast.AnnAssign) or ast.unparse(line.target).startswith("_"):
            continue
        default = f" = {ast.unparse(line.value)}" if line.value else ""
        text = f"- `{ast.unparse(line.target)}: {ast.unparse(line.annotation)}{default}`"
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        yield f"{text}: {_one_line(after.value.value)}" if is_text else text


def _members(cls: type) -> Iterator[tuple[str, str]]:
    """Public methods and properties, those of a class before those of the one above it."""
    seen: set[str] = set()
    for base in _own_classes(cls):
        for name, member in vars(base).items():
            if name in seen or (name.startswith("_") and name != "__call__"):
                continue
            seen.add(name)
            if isinstance(member, property | cached_property):
                getter = member.fget if isinstance(member, property) else member.func
                yield f"{name}: {ast.unparse(_tree(getter).returns)}", _doc(getter)
            elif isinstance(member, classmethod | staticmethod):
                yield f"{cls.__name__}.{name}{_signature(member.__func__)}", _doc(member.__func__)
            elif inspect.isfunction(member):
                yield f"{name}{_signature(member)}", _doc(member)


def _own_classes(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.startswith("tilewise")]


def _subclasses(cls: type) -> Iterator[type]:
    for sub in cls.__subclasses__():
        if sub.__module__ == "tilewise.errors":
            yield sub
            yield from _subclasses(sub)


def _tree(thing: Any) -> Any:
    """The definition as it is written."""
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def _doc(thing: Any) -> str:
    """The docstring; a table in it stays one."""
    text = inspect.cleandoc(thing.__doc__ or "").strip()
    return "\n\n".join(_shown(paragraph) for paragraph in text.split("\n\n"))


def _shown(paragraph: str) -> str:
    """As it is if its lines are columns or indented, which blanks within them show."""
    plain = textwrap.dedent(paragraph).strip()
    return f"```text\n{plain}\n```" if "   " in plain else plain


def _doc_of_name(name: str) -> str:
    """The text that follows a name in the module that defines it."""
    body = ast.parse(inspect.getsource(sys.modules[f"tilewise.{tilewise._HOMES[name]}"])).body
    for line, after in pairwise(body):
        if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == name:
            return _one_line(after.value.value)  # type: ignore[attr-defined]
    raise LookupError(name)


def _first_sentence(cls: type) -> str:
    return _one_line(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0])


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE).write_text(page(), encoding="utf-8")
