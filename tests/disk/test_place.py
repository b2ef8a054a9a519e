"""Which folder a path leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskyard.disk.place import is_here, place_of


@pytest.mark.req("L-09")
def test_a_folder_is_known_again_and_another_at_its_path_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    place = place_of(str(folder))
    assert place_of(str(folder)) == place
    assert is_here(place) and is_here(place, restarted=True)

    folder.rename(tmp_path / "away")
    assert not is_here(place)
    folder.mkdir()
    place_of(str(folder))

    assert not is_here(place) and not is_here(place, restarted=True)


@pytest.mark.req("L-09")
def test_after_a_restart_the_given_name_decides_since_device_numbers_may_have_changed(tmp_path: Path) -> None:
    name, _, folder = place_of(str(tmp_path)).split(" ", 2)
    assert is_here(f"{name} 99:99 {folder}", restarted=True)
    assert not is_here(f"{name} 99:99 {folder}")


@pytest.mark.parametrize("rubbish", ["", " ", "a", "a b", "a 1:2 /nowhere", "a 1:2 \0", "\ud800 x y"])
def test_rubbish_is_no_place(rubbish: str) -> None:
    assert not is_here(rubbish)
    assert not is_here(rubbish, restarted=True)
