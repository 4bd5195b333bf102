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


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_leaves_nothing_behind(path, tmp_path):
    assert run(path, tmp_path).strip()
    assert list(tmp_path.iterdir()) == []


def test_examples_are_numbered_in_order():
    numbers = [int(path.stem.split("_")[0]) for path in EXAMPLES]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("stem", ["02_symmetry_and_frozen_core", "03_policies_and_imbalance", "04_fcidump"])
def test_energies_that_an_example_compares_agree(stem, tmp_path):
    (path,) = [path for path in EXAMPLES if path.stem == stem]
    energies = [float(text) for text in re.findall(r"-\d+\.\d{8}\b", run(path, tmp_path))]
    assert len(energies) >= 2 and max(energies) - min(energies) < 2e-8
