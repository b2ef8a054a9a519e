"""Keys by config.toml: what is wrong there is said before anything is shown, with the nearest that is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tui import Scenery, driven, home_of, scene, view_of
from taskyard.errors import BadValue, Damaged
from taskyard.ui.tui.keys import check_keymap, load_keymap


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("C", "C"),
        ("ctrl+x", "ctrl+x"),
        ("Ctrl+G", "ctrl+g"),
        ("f2", "f2"),
        ("!", "exclamation_mark"),
        ("#,@", "number_sign,at"),
    ],
)
def test_keys_are_taken_as_people_write_them(written: str, key: str) -> None:
    assert check_keymap({"claim": written}) == {"claim": key}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"clam": "C"}, "expected 'claim'"),
        ({"zzz": "C"}, "expected one of open, back, tasks"),
        ({"claim": "ctlr+x"}, "expected ctrl and a key"),
        ({"claim": "escap"}, 'expected "escape"'),
        ({"claim": ""}, "a key such as"),
        ({"claim": 7}, "a key such as"),
        ({"claim": "d"}, "that one is done's"),
        ({"claim": "z", "done": "z"}, "that one is claim's"),
        ({"to_background": "z"}, "background_key"),
    ],
)
def test_what_is_no_key_is_refused_with_the_nearest(table: dict[str, object], words: str) -> None:
    with pytest.raises(BadValue, match=words.replace("(", r"\(")):
        check_keymap(table)


def test_two_keys_may_change_places() -> None:
    assert check_keymap({"claim": "d", "done": "c"}) == {"claim": "d", "done": "c"}


def test_the_table_keys_of_the_settings_file_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "taskyard"
    folder.mkdir()
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert load_keymap(env) == {}
    (folder / "config.toml").write_text('task_rows = 20\n[keys]\nclaim = "C"\n', encoding="utf-8")
    assert load_keymap(env) == {"claim": "C"}
    (folder / "config.toml").write_text('keys = "C"\n', encoding="utf-8")
    with pytest.raises(BadValue, match="a table"):
        load_keymap(env)
    (folder / "config.toml").write_text("[keys\n", encoding="utf-8")
    with pytest.raises(Damaged):
        load_keymap(env)


@driven
async def test_another_key_works_and_the_old_one_no_longer(tmp_path: Path) -> None:
    app = view_of(Scenery(scene(), home_of(tmp_path)), keymap=check_keymap({"add": "plus,A"}))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("a")
        assert not app.front.prompt.is_open
        await pilot.press("A")
        assert app.front.prompt.is_open
