"""Files that a run leaves behind: whole or not at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewise.errors import InputError, UnwrittenFileError
from tilewise.output_files import SideFiles, beside, check_target, remove_orphans, replacing

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_appears_when_all_is_written(tmp_path):
    target = tmp_path / "out.txt"
    with replacing(target) as place:
        place.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_write_leaves_what_was_there_and_nothing_besides(tmp_path):
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(OSError), replacing(target) as place:
        place.write_text("ne")
        raise FULL
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_a_link_and_a_mode_stays_a_mode(tmp_path):
    target, link = tmp_path / "out.txt", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    with replacing(link) as place:
        place.write_text("new")
    assert link.is_symlink() and target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600


def test_devices_are_written_to_and_not_replaced():
    with replacing(Path("/dev/null")) as place:
        place.write_text("gone")
    assert place == Path("/dev/null") and not Path("/dev/null").is_file()
    with pytest.raises(OSError), replacing(Path("/dev/full")) as place:
        place.write_text("no room")


def test_what_dead_runs_left_is_removed_and_what_others_write_stays(tmp_path):
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    target = tmp_path / "m.h5"
    with beside(target) as mine:
        mine.touch()
        host = mine.name.removeprefix(".m.h5.").rpartition(f".{os.getpid()}.part")[0]
        orphan = tmp_path / f".m.h5.{host}.{dead.stdout.strip()}.part"
        elsewhere = tmp_path / f".m.h5.not-{host}.{dead.stdout.strip()}.part"
        other = tmp_path / f".n.h5.{host}.{dead.stdout.strip()}.part"
        for path in (orphan, elsewhere, other):
            path.touch()
        remove_orphans(target)
        assert mine.exists() and elsewhere.exists() and other.exists() and not orphan.exists()
    assert not mine.exists()


def test_a_lost_file_is_noted_by_name_and_the_next_one_is_written(tmp_path):
    notes = []
    files = SideFiles(notes.append)

    def fail(place):
        raise FULL

    assert not files.write(tmp_path / "one", fail)
    assert files.write(tmp_path / "two", lambda place: place.write_text("2"))
    assert notes == [f"{tmp_path / 'one'} could not be written ({os.strerror(errno.ENOSPC)})"]
    with pytest.raises(UnwrittenFileError, match=r"complete, but .*one could not be written"):
        files.check()


def test_targets_that_cannot_be_are_refused_beforehand(tmp_path):
    check_target("--json", None)
    check_target("--json", "-")
    for target, words in (("", "empty"), (tmp_path, "folder"), (tmp_path / "no" / "x", "there is no folder")):
        with pytest.raises(InputError, match=words):
            check_target("--json", str(target))
