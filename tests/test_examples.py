"""Every example runs, and says what it promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def run(path: Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, path], cwd=folder, capture_output=True, text=True, timeout=300, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


COMPARING = ("02_symmetry_and_frozen_core", "03_policies_and_imbalance", "04_fcidump")
"""Those that print the same energy several times."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_leaves_nothing_behind(path, tmp_path):
    said = run(path, tmp_path)
    assert said.strip()
    assert list(tmp_path.iterdir()) == []
    if path.stem in COMPARING:
        energies = [float(text) for text in re.findall(r"-\d+\.\d{8}\b", said)]
        assert len(energies) >= 2 and max(energies) - min(energies) < 2e-8


def test_examples_are_numbered_in_order():
    numbers = [int(path.stem.split("_")[0]) for path in EXAMPLES]
    assert numbers == list(range(1, len(numbers) + 1))
