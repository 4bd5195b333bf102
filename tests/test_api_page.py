"""docs/api.md says what the docstrings say."""

import subprocess
import sys

import pytest

import tilewise
from command_line import ROOT

PAGE = ROOT / "docs" / "api.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """In a process of its own, in which no test has added a policy."""
    page = tmp_path_factory.mktemp("page") / "api.md"
    subprocess.run([sys.executable, str(ROOT / "docs" / "make_api.py"), str(page)], check=True)
    return page.read_text(encoding="utf-8")


def test_the_page_is_what_the_docstrings_make(made):
    assert PAGE.read_text(encoding="utf-8") == made, "run python docs/make_api.py"


@pytest.mark.parametrize("name", tilewise.__all__)
def test_every_public_name_has_an_entry(made, name):
    assert f"## `tilewise.{name}" in made


def test_every_public_method_has_a_docstring(made):
    entries = [part.strip().split("\n\n") for part in made.split("#### ")[1:]]
    assert entries and [entry[0] for entry in entries if len(entry) < 2 or entry[1].startswith("#")] == []
