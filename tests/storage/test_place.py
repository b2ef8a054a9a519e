"""Which folder a path leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskyard.storage.locks import folder_identity, is_same_folder


@pytest.mark.req("L-09")
def test_a_folder_is_known_again_and_another_at_its_path_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    place = folder_identity(str(folder))
    assert folder_identity(str(folder)) == place
    assert is_same_folder(place) and is_same_folder(place, restarted=True)

    folder.rename(tmp_path / "away")
    assert not is_same_folder(place)
    folder.mkdir()
    folder_identity(str(folder))

    assert not is_same_folder(place) and not is_same_folder(place, restarted=True)


@pytest.mark.req("L-09")
def test_after_a_restart_the_given_name_decides_since_device_numbers_may_have_changed(tmp_path: Path) -> None:
    name, _, folder = folder_identity(str(tmp_path)).split(" ", 2)
    assert is_same_folder(f"{name} 99:99 {folder}", restarted=True)
    assert not is_same_folder(f"{name} 99:99 {folder}")


@pytest.mark.parametrize("rubbish", ["", " ", "a", "a b", "a 1:2 /nowhere", "a 1:2 \0", "\ud800 x y"])
def test_rubbish_is_no_place(rubbish: str) -> None:
    assert not is_same_folder(rubbish)
    assert not is_same_folder(rubbish, restarted=True)
