"""What was last known of every task."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import StorageError
from taskyard.tasks.list_folder import IndexRow, TaskIndex, make_row, read_index

ROWS = st.builds(
    IndexRow,
    st.integers(0, 2**62),
    st.none() | st.integers(0, 2**62),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)


@pytest.mark.req("L-11")
@given(st.dictionaries(st.integers(1, 5000).map(str), ROWS, max_size=8))
def test_rows_are_found_by_id_and_in_order_and_holes_are_nothing(tmp_path: Path, rows: dict[str, IndexRow]) -> None:
    path = tmp_path / "ledger"
    path.unlink(missing_ok=True)
    index = TaskIndex(str(path))
    for task_id, row in rows.items():
        index.put(task_id, row)

    assert {task_id: index.row(task_id) for task_id in rows} == rows
    assert list(index.rows()) == sorted(rows.items(), key=lambda item: int(item[0]))
    assert index.intents() == sorted((key for key, row in rows.items() if row.intent is not None), key=int)
    assert read_index(str(path)) == rows
    assert index.highest() == max(map(int, rows), default=0)
    unheard = next(str(number) for number in range(1, 5001) if str(number) not in rows)
    assert index.row(unheard) == IndexRow()
    assert not index.row(unheard).is_present
    index.close()


@pytest.mark.req("L-11")
def test_an_id_far_away_takes_no_space_and_is_found_at_once(tmp_path: Path) -> None:
    index = TaskIndex(str(tmp_path / "ledger"))
    index.put("999999999", make_row(5, b"data"))

    assert os.stat(tmp_path / "ledger").st_blocks < 100
    assert [task_id for task_id, _ in index.rows()] == ["999999999"]
    assert index.row("999999999").holds(4, index.row("999999999").crc)
    index.close()


@pytest.mark.req("L-11")
def test_an_intent_keeps_what_was_known(tmp_path: Path) -> None:
    index = TaskIndex(str(tmp_path / "ledger"))
    for row in (IndexRow(), make_row(7, b"x")):
        index.intend("1", row, 9)
        assert index.row("1") == row._replace(intent=9)
    index.close()


def test_a_link_or_a_missing_folder_is_refused_and_a_mere_look_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for path in (tmp_path / "link", tmp_path / "no" / "ledger"):
        with pytest.raises(StorageError):
            TaskIndex(str(path))
        assert read_index(str(path)) is None
