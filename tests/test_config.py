from __future__ import annotations

from pathlib import Path

import pytest

from taskyard import config
from taskyard.errors import BadValue, Damaged


def settings_file(outside: Path) -> Path:
    path = outside / ".config" / "taskyard" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize("content", [b"lock_timeout = ", b"\xff\xfe = 1"])
def test_a_settings_file_that_is_no_toml_is_damaged_and_named(outside: Path, content: bytes) -> None:
    path = settings_file(outside)
    path.write_bytes(content)

    with pytest.raises(Damaged) as caught:
        config.load_settings()

    assert caught.value.file == str(path)


def test_a_folder_in_the_place_of_the_settings_file_is_damaged_and_named(outside: Path) -> None:
    path = settings_file(outside)
    path.mkdir()

    with pytest.raises(Damaged) as caught:
        config.load_settings()

    assert caught.value.file == str(path)


def test_the_environment_goes_before_the_settings_file(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_file(outside).write_text("lock_timeout = 5\nhook_timeout = 7\n", encoding="utf-8")
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "3")

    found = config.load_settings()

    assert (found.lock_timeout, found.hook_timeout) == (3.0, 7.0)


@pytest.mark.req("B-11")
@pytest.mark.parametrize(
    ("text", "key"),
    [("Ctrl+G", "ctrl+g"), ("ctrl-g", "ctrl+g"), ("C-g", "ctrl+g"), ("^G", "ctrl+g"), ("g", "ctrl+g"), ("^^", "ctrl+^"),
     ("ctrl+]", "ctrl+]"), ("OFF", "off"), ("", "")],
)  # fmt: skip
def test_a_key_may_be_written_as_people_do(text: str, key: str) -> None:
    assert config.load_settings({"TASKYARD_BACKGROUND_KEY": text, "HOME": "/nowhere"}).background_key == key


@pytest.mark.req("O-04")
def test_a_cap_below_what_can_be_freed_is_refused_wherever_it_is_set() -> None:
    with pytest.raises(BadValue, match="a number from 65,536"):
        config.load_settings({"TASKYARD_JOB_OUTPUT_CAP": "5"})
    assert config.load_settings({"TASKYARD_JOB_OUTPUT_CAP": "65536"}).job_output_cap == 65_536
