"""Imports follow the way of the data, from the first folder to the last, and never turn back."""

import ast

import pytest

from command_line import ROOT

PACKAGE = ROOT / "src" / "tilewise"
ORDER = (
    "lazy",
    *(
        "errors",
        "wording",
        "arguments",
        "cards",
        "hdf5",
        "hdf5_image",
        "interrupts",
        "output_files",
        "sealed",
        "witness",
    ),
    "config",
    "witness",
    *("_native", "core", "new_memory"),
    *("symmetry", "spaces", "chem", "tensor", "equations", "inspect", "native", "cost", "schedule"),
    *("hardware", "execute", "trace", "loop", "methods", "ci", "tce", "contraction", "simulation"),
    *("studies", "cli"),
)
"""Folders and modules of the package; each may import those before it."""

ABOVE_ALL = ("__init__", "__main__")  # load names when they are asked for


def part_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(path):
    """(line, folder or module of tilewise) for each import, also inside of functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "tilewise":
            names = [f"tilewise.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "tilewise" and len(parts) > 1 and not parts[1].startswith("__"):
                yield node.lineno, parts[1]


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if part_of(path) not in ABOVE_ALL)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_comes_before_it(path):
    own = ORDER.index(part_of(path)) if part_of(path) in ORDER else None
    if part_of(path) == "machines":  # a folder of data
        return
    assert own is not None, f"{part_of(path)} has no place in the order"
    late = [(line, name) for line, name in imported_parts(path) if ORDER.index(name) > own]
    assert not late, f"imports that turn back: {late}"


@pytest.mark.parametrize(
    ("library", "allowed"),
    [("pyscf", ("chem",)), ("mpi4py", ("execute",)), ("typer", ("cli",)), ("rich", ("cli",))],
)
def test_a_library_is_imported_in_its_own_folder_alone(library, allowed):
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        names = [
            name.split(".")[0]
            for node in ast.walk(ast.parse(text))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        ]
        assert library not in names or part_of(path) in allowed, path


def test_the_environment_is_read_in_one_place():
    readers = [path for path in MODULES if "os.environ" in path.read_text(encoding="utf-8")]
    assert [path.name for path in readers] == ["config.py"]
