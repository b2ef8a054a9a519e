"""The highest id a list ever gave out."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskyard.core.values import LARGEST_ID
from taskyard.errors import StorageError
from taskyard.tasks.list_folder import HighWaterMark, leading_number


@pytest.mark.req("L-03")
@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"", 0),
        (b"7", 7),
        (b" 7\n", 7),
        (b"7.9", 7),
        (b"7x", 7),
        (b"x7", 0),
        (b"-7", 0),
        (b"\xff\xfe", 0),
        (b"\0" * 9, 0),
    ],
)
def test_garbage_counts_as_zero_and_digits_up_to_it(text: bytes, number: int) -> None:
    assert leading_number(text) == number


@pytest.mark.req("L-03")
def test_a_number_beyond_every_id_is_not_taken_for_a_small_one() -> None:
    assert leading_number(b"9" * 30) > LARGEST_ID
    assert leading_number(b"9" * 64) > LARGEST_ID


@pytest.mark.req("L-03")
def test_what_is_written_replaces_all_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    path.write_bytes(b"12 and a lot of garbage")
    mark = HighWaterMark(str(path))
    assert mark.read() == 12
    mark.write(13)
    assert path.read_bytes() == b"13"
    mark.close()
    assert mark.read() == 13
    mark.close()


@pytest.mark.req("L-03")
def test_a_mark_that_was_replaced_or_removed_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    mark = HighWaterMark(str(path))
    assert mark.read() == 0
    path.unlink()
    path.write_bytes(b"40")
    assert mark.read() == 40
    path.unlink()
    assert mark.read() == 0
    mark.close()


def test_a_planted_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"5")
    (tmp_path / "mark").symlink_to(tmp_path / "real")

    with pytest.raises(StorageError):
        HighWaterMark(str(tmp_path / "mark")).read()
