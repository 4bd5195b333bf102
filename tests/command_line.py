"""Running the command line in tests, in this process or as a program of its own, and its schemas."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tilewise.cli import main

ROOT = Path(__file__).parents[1]
GEOMETRIES = ROOT / "examples" / "geometries"
WATER = str(GEOMETRIES / "water.xyz")

METHANE = """5
five orbitals of E symmetry share an irrep of D2
C 0 0 0
H 0.629118 0.629118 0.629118
H -0.629118 -0.629118 0.629118
H 0.629118 -0.629118 -0.629118
H -0.629118 0.629118 -0.629118
"""


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def energy(self) -> float:
        """E(CCSD) of the closing lines."""
        (line,) = [line for line in self.out.splitlines() if line.startswith("E(CCSD)")]
        return float(line.split()[1])

    @property
    def residuals(self) -> list[float]:
        """Of each iteration."""
        rows = [line.split() for line in self.out.splitlines()]
        return [float(row[3]) for row in rows if len(row) == 5 and row[0].isdecimal()]

    def assert_refused(self, *words: str) -> None:
        """Exit code 2, one sentence on stderr with these words, no traceback."""
        assert self.code == 2, self.err
        assert self.err.startswith("tilewise: ") and self.err.count("\n") == 1, self.err
        for word in words:
            assert word in self.err


class CommandLine:
    """`run(...)` in this process; `start(...)` as a child."""

    def run(self, *arguments: object) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main([str(a) for a in arguments])
        return Outcome(code, out.getvalue(), err.getvalue())

    def start(self, *arguments: object, environment: dict[str, str] | None = None, **settings):
        return subprocess.Popen(
            [sys.executable, "-m", "tilewise", *(str(a) for a in arguments)],
            text=True,
            env=os.environ | (environment or {}),
            **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings),
        )

    def finish(self, process: subprocess.Popen, printed: str = "") -> Outcome:
        out, err = process.communicate(timeout=300)
        return Outcome(process.returncode, printed + out, err)


def validator(name, *others):
    """Of the documents that docs/NAME.schema.json describes; it may refer to other ones."""
    schemas = [json.loads((ROOT / "docs" / f"{each}.schema.json").read_text()) for each in (name, *others)]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
    registry = Registry().with_resources([(s["$id"], Resource.from_contents(s)) for s in schemas])
    return Draft202012Validator(schemas[0], registry=registry)
