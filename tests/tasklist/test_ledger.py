"""What was last known of every task."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import StorageError
from taskyard.tasklist.ledger import Ledger, Row, look, row_for

ROWS = st.builds(
    Row, st.integers(0, 2**62), st.none() | st.integers(0, 2**62), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)
)


@pytest.mark.req("L-11")
@given(st.dictionaries(st.integers(1, 5000).map(str), ROWS, max_size=8))
def test_rows_are_found_by_id_and_in_order_and_holes_are_nothing(tmp_path: Path, rows: dict[str, Row]) -> None:
    path = tmp_path / "ledger"
    path.unlink(missing_ok=True)
    ledger = Ledger(str(path))
    for task_id, row in rows.items():
        ledger.put(task_id, row)

    assert {task_id: ledger.row(task_id) for task_id in rows} == rows
    assert list(ledger.rows()) == sorted(rows.items(), key=lambda item: int(item[0]))
    assert ledger.intents() == sorted((key for key, row in rows.items() if row.intent is not None), key=int)
    assert look(str(path)) == rows
    assert ledger.highest() == max(map(int, rows), default=0)
    unheard = next(str(number) for number in range(1, 5001) if str(number) not in rows)
    assert ledger.row(unheard) == Row()
    assert not ledger.row(unheard).is_present
    ledger.close()


@pytest.mark.req("L-11")
def test_an_id_far_away_takes_no_space_and_is_found_at_once(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    ledger.put("999999999", row_for(5, b"data"))

    assert os.stat(tmp_path / "ledger").st_blocks < 100
    assert [task_id for task_id, _ in ledger.rows()] == ["999999999"]
    assert ledger.row("999999999").holds(4, ledger.row("999999999").crc)
    ledger.close()


@pytest.mark.req("L-11")
def test_an_intent_keeps_what_was_known(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger"))
    for row in (Row(), row_for(7, b"x")):
        ledger.intend("1", row, 9)
        assert ledger.row("1") == row._replace(intent=9)
    ledger.close()


def test_a_link_or_a_missing_folder_is_refused_and_a_mere_look_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for path in (tmp_path / "link", tmp_path / "no" / "ledger"):
        with pytest.raises(StorageError):
            Ledger(str(path))
        assert look(str(path)) is None
