"""Teams of workers, and how the machine groups them."""

import pytest

from tilewise import config
from tilewise.schedule import Team


def test_a_team_of_a_number():
    team = Team.of(3)
    assert (team.size, team.speeds, team.groups, team.everyone) == (3, (1.0,) * 3, ((0, 1, 2),), (0, 1, 2))
    assert Team.of(team) is team


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0},
        {"size": 2, "speeds": (1.0,)},
        {"size": 2, "speeds": (1.0, 0.0)},
        {"size": 2, "groups": ((0,),)},
        {"size": 2, "groups": ((0, 1), (1,))},
    ],
)
def test_impossible_teams(wrong):
    with pytest.raises(ValueError, match="worker"):
        Team(**wrong)


@pytest.fixture
def two_caches(tmp_path, monkeypatch):
    """Four processors: 0 and 1 share their last cache, so do 2 and 3."""
    for cpu in range(4):
        for level, shared in ((1, f"{cpu}"), (3, "0-1" if cpu < 2 else "2-3")):
            folder = tmp_path / f"cpu{cpu}" / "cache" / f"index{level}"
            folder.mkdir(parents=True)
            (folder / "level").write_text(f"{level}\n")
            (folder / "shared_cpu_list").write_text(f"{shared}\n")
    monkeypatch.setattr(config, "_PROCESSORS", tmp_path)
    monkeypatch.setattr(config, "processors", lambda: [0, 1, 2, 3])


def test_workers_that_share_a_cache_are_a_group(two_caches):
    assert config.cache_groups(4) == ((0, 1), (2, 3))
    assert config.cache_groups(3) == ((0, 1), (2,))
    assert config.cache_groups(1) == ((0,),)
    assert config.cache_groups(6) == ((0, 1), (2, 3), (4, 5))  # more than there are processors


def test_one_group_where_the_system_does_not_tell(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_PROCESSORS", tmp_path)
    assert config.cache_groups(3) == ((0, 1, 2),)
