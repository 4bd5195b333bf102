"""A short campaign of random inputs, and that a campaign finds what is wrong."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import tilewise
from fuzzing.case import Case, Problem, Verdict, case_of, kind_of, kinds, minimized
from fuzzing.commands import CommandCase
from fuzzing.python_calls import CallCase
from fuzzing.world import SYSTEMS, World

ROOT = Path(__file__).parents[1]
SEED, CASES = 13, 90


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world"))
    made.prepare()
    return made


def run_program(*arguments, code=None):
    command = ["-c", code] if code else [str(ROOT / "benchmarks" / "fuzz.py")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command, *map(str, arguments)], capture_output=True, text=True, env=environment
    )
    print(done.stdout)
    return done


def test_a_short_campaign_finds_nothing(world):
    done = run_program("--cases", CASES, "--seed", SEED, "--world", world.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"seed {SEED}" in done.stdout and f"{CASES} cases" in done.stdout


def test_every_kind_makes_the_same_case_of_the_same_random_numbers(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, kind in kinds.items():
        once, again, other = (str(kind.make(random.Random(seed), world)) for seed in (5, 5, 6))
        assert once == again, name
        assert once and other, name
    # A case is known by its seed and number.
    drawn = {kind_of(3, number).name for number in range(5_000)}
    assert drawn == set(kinds)
    number = next(n for n in range(1000) if kind_of(3, n).name == "fcidump damaged")
    assert str(case_of(3, number, world)) == str(case_of(3, number, world))


def test_a_folder_without_the_files_of_a_campaign_is_refused(tmp_path):
    done = run_program("--cases", 1, "--world", tmp_path)
    assert done.returncode == 2 and "there are no files of World.prepare" in done.stderr


PLANTED = """
import os, sys, time
sys.path.insert(0, TESTS)
from fuzzing import Campaign, Case, Problem, Verdict, World, kind, kinds
kinds.clear()
World.prepare = lambda world: None  # these cases need no files

class Planted(Case):
    def __init__(self, what):
        self.what = what
    def __str__(self):
        return f"planted {self.what}"
    def run(self, world):
        if self.what == "crash":
            os.abort()
        while self.what == "hang":
            time.sleep(1)
        if self.what == "wrong":
            return Verdict("done", Problem("changed energy", "planted"))
        return Verdict("done")

for name in ("good", "wrong", "crash", "hang"):
    kind(name, 1)(lambda rng, world, name=name: Planted(name))
summary = Campaign(1, hangs=2).run(cases=16)
print(summary.table())
print("found", sorted({problem for _, problem in summary.findings}))
number = summary.findings["wrong", "changed energy: planted"].name.removeprefix("1:")
print("again", sorted(Campaign(1, hangs=2).replay(int(number)).findings))
"""


def test_a_campaign_survives_crashes_and_hangs_and_tells_of_them():
    done = run_program(code=PLANTED.replace("TESTS", repr(str(ROOT / "tests"))))
    assert done.returncode == 0, done.stderr
    assert "found ['changed energy: planted', 'crash: exit code -6', 'hang: exit code -9']" in done.stdout
    assert "again [('wrong', 'changed energy: planted')]" in done.stdout
    for name in ("wrong", "crash", "hang"):
        assert f"planted {name}" in done.stdout
    assert "planted good" not in done.stdout


def test_another_energy_than_pyscfs_is_a_problem(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {"m.xyz": SYSTEMS["h2"].xyz.encode()}
    case = CommandCase(("ccsd", "m.xyz", "--basis", "sto-3g"), files=files, energy=world.energy("h2"))
    assert case.run(world).problem is None
    other = CommandCase(case.core, files=files, energy=world.energy("h2") + 1e-6)
    assert other.run(world).problem.what == "changed energy"


WRONG_ENDS = {
    "a traceback": ("raise ZeroDivisionError", "traceback"),
    "an unknown exit code": ("return 7", "exit code"),
    "no sentence": ("return 2", "no sentence"),
    "two lines": (
        "print('tilewise: a', 'tilewise: b', sep='\\n', file=sys.stderr); return 2",
        "more than one line",
    ),
    "a warning": ("print('x.py:3: RuntimeWarning: nan', file=sys.stderr); return 0", "internal words"),
    "a file of a refused run": (
        "open('new', 'w').write('x'); print('tilewise: no', file=sys.stderr); return 2",
        "files changed by a refused run",
    ),
    "an empty file": ("open('new', 'w').close(); return 0", "files left behind"),
}


@pytest.mark.parametrize(
    ("printed", "is_good"),
    [("{}", True), ("{", False), ("tilewise 0", False), (f"tilewise {tilewise.__version__}", True)],
)
def test_a_document_is_json_unless_the_version_is_asked_for(printed, is_good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fuzzing.commands.main", lambda arguments: print(printed) or 0)
    problem = CommandCase(("plan", "--json", "-")).run(None).problem
    assert (problem is None) == is_good and (is_good or problem.what == "bad document")


@pytest.mark.parametrize(("body", "what"), WRONG_ENDS.values(), ids=WRONG_ENDS)
def test_every_wrong_end_of_a_command_is_a_problem(body, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(f"import sys\ndef main(arguments):\n    {body}", names)
    monkeypatch.setattr("fuzzing.commands.main", names["main"])
    assert CommandCase(("ccsd",)).run(None).problem.what == what


def test_an_error_that_is_not_of_tilewise_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict = CallCase("sorted", sorted, (3,), {}).run(None)
    assert verdict.problem.what == "traceback" and "TypeError" in verdict.problem.place


def test_findings_are_made_smaller():
    case = CommandCase(("plan",), (("--a", "1"), ("--b", "2"), ("--c", "3")), {"f": b"1\n2\n3\nx\n5\n"})

    def fails(candidate: Case) -> Verdict:
        wrong = ("--b", "2") in candidate.options and b"x" in candidate.files.get("f", b"")
        return Verdict("", Problem("traceback", "somewhere") if wrong else None)

    small = minimized(case, Problem("traceback", "somewhere"), fails, 100)
    assert small.options == (("--b", "2"),)
    assert small.files == {"f": b"x\n"}
