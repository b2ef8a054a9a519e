"""The log: ids are positions, a torn entry spoils itself alone, segments follow each other."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from taskyard.errors import StorageError
from taskyard.storage.journal import Journal, append_once


def journal(folder: Path, *, segment_size: int = 1 << 20) -> Journal:
    return Journal(str(folder), segment_size=segment_size)


def add(log: Journal, **entry: object) -> int:
    return log.append(json.dumps(entry).encode())


@pytest.mark.req("L-11")
def test_entries_come_back_in_order_under_growing_ids(tmp_path: Path) -> None:
    log = journal(tmp_path)
    ids = [add(log, n=n) for n in range(5)]

    assert list(log.since()) == [(entry_id, {"n": n}) for n, entry_id in enumerate(ids)]
    assert ids == sorted(set(ids))
    assert log.read(ids[3]) == {"n": 3}
    assert log.end() > ids[-1]


@pytest.mark.req("L-11")
def test_reading_resumes_after_any_entry_without_repeating_it(tmp_path: Path) -> None:
    log = journal(tmp_path)
    ids = [add(log, n=n) for n in range(5)]

    assert [entry["n"] for _, entry in log.since(ids[2] + 1)] == [3, 4]
    assert list(log.since(log.end())) == []
    assert list(log.since(1 << 64)) == []
    assert log.read(1 << 64) is None


@pytest.mark.req("L-11")
def test_a_torn_tail_spoils_its_own_entry_and_not_the_next(tmp_path: Path) -> None:
    log = journal(tmp_path)
    first = add(log, n=0)
    with open(tmp_path / "0.jsonl", "ab") as file:
        file.write(b'\n{"n": 1, "to')
    after = add(log, n=2)

    assert list(log.since()) == [(first, {"n": 0}), (after, {"n": 2})]


@pytest.mark.req("L-11")
def test_an_entry_that_cannot_be_read_is_not_answered_with_its_neighbour(tmp_path: Path) -> None:
    log = journal(tmp_path)
    spoiled, _ = add(log, n=0), add(log, n=1)
    data = (tmp_path / "0.jsonl").read_bytes()
    (tmp_path / "0.jsonl").write_bytes(data.replace(b'{"n": 0}', b'{"n": #}'))

    assert journal(tmp_path).read(spoiled) is None


@pytest.mark.req("L-11")
def test_a_full_segment_is_followed_by_another_and_ids_go_on(tmp_path: Path) -> None:
    log = journal(tmp_path, segment_size=50)
    ids = [add(log, n=n, text="x" * 20) for n in range(6)]
    other = journal(tmp_path, segment_size=50)

    assert len(list(tmp_path.iterdir())) >= 3
    assert [entry["n"] for _, entry in other.since()] == list(range(6))
    assert [entry["n"] for _, entry in log.since(ids[4])] == [4, 5]
    assert [log.read(entry_id) for entry_id in ids] == [{"n": n, "text": "x" * 20} for n in range(6)]
    assert ids == sorted(set(ids))
    assert add(other, n=6) > ids[-1]


def test_an_entry_longer_than_one_read_is_found_whole(tmp_path: Path) -> None:
    log = journal(tmp_path)
    add(log, text="a" * 3_000_000)
    last = add(log, n=1)

    assert [len(str(entry.get("text", ""))) for _, entry in log.since()] == [3_000_000, 0]
    assert log.read(last) == {"n": 1}


@pytest.mark.parametrize("name", ["².jsonl", "007.jsonl", "x.jsonl", "-1.jsonl", "9" * 200 + ".jsonl", "notes.txt"])
def test_files_that_are_no_segments_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"n": 7}\n')
    log = journal(tmp_path)
    add(log, n=0)

    assert [entry for _, entry in log.since()] == [{"n": 0}]


@pytest.mark.req("L-11")
def test_what_a_full_disk_took_of_an_entry_is_no_entry_and_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    log = Journal(str(tmp_path), sync=True)
    add(log, n=0)
    whole = os.write
    for broken in (full, lambda fd, data: whole(fd, data[:5])):
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", broken)
            with pytest.raises(StorageError, match="the disk is full"):
                add(log, n=1)
    add(log, n=2)

    assert [entry["n"] for _, entry in log.since()] == [0, 2]


@pytest.mark.req("L-11")
@pytest.mark.parametrize("longer_than_one_read", [False, True])
def test_an_entry_that_lacks_only_its_last_newline_never_becomes_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, longer_than_one_read: bool
) -> None:
    text = "x" * (1 << 14 if longer_than_one_read else 1)
    log, whole = journal(tmp_path), os.write
    first = add(log, n=0, text=text)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: whole(fd, data[:-1]))
        with pytest.raises(StorageError, match="the disk is full"):
            add(log, n=1, text=text)
    assert [entry["n"] for _, entry in log.since()] == [0]
    after = add(log, n=2)

    assert [(entry_id, entry["n"]) for entry_id, entry in log.since()] == [(first, 0), (after, 2)]
    assert log.read(after) == {"n": 2}


@pytest.mark.req("L-11")
@pytest.mark.parametrize("size", range((1 << 14) - 18, (1 << 14) - 10))
def test_where_a_read_happens_to_end_makes_no_difference(tmp_path: Path, size: int) -> None:
    log = journal(tmp_path)
    first, second = add(log, text="x" * size), add(log, n=1)

    assert [entry_id for entry_id, _ in log.since()] == [first, second]


@pytest.mark.req("L-11")
def test_threads_append_side_by_side_and_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()

    def work(thread: int) -> None:
        log = journal(folder, segment_size=500)
        for n in range(20):
            add(log, thread=thread, n=n)
        log.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    found = [(entry["thread"], entry["n"]) for _, entry in journal(folder, segment_size=500).since()]

    assert sorted(found) == [(thread, n) for thread in range(4) for n in range(20)]
    assert all([n for t, n in found if t == thread] == list(range(20)) for thread in range(4))


def test_a_planted_link_in_place_of_a_segment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("")
    (tmp_path / "0.jsonl").symlink_to(tmp_path / "secret")

    with pytest.raises(StorageError):
        add(journal(tmp_path), n=0)
    with pytest.raises(StorageError):
        list(journal(tmp_path).since())


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    log = journal(tmp_path / "no")

    assert (list(log.since()), log.end()) == ([], 0)
    with pytest.raises(StorageError):
        add(log, n=0)


def test_a_log_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")

    with pytest.raises(StorageError):
        list(journal(tmp_path / "log").since())


def test_what_is_no_object_is_passed_over(tmp_path: Path) -> None:
    log = journal(tmp_path)
    for text in (b"[1]", b"7", b"[" * 100_000, b"\xff\xfe", b'{"n": 1}'):
        log.append(text)

    assert [entry for _, entry in log.since()] == [{"n": 1}]


@pytest.mark.req("L-11")
def test_the_end_known_from_the_last_append_is_never_beyond_the_next_entry(tmp_path: Path) -> None:
    ours, theirs = journal(tmp_path), journal(tmp_path)
    assert ours.known_end() == 0
    add(ours, n=0)
    add(theirs, n=1)

    assert ours.known_end() <= add(ours, n=2)


@pytest.mark.req("N-06")
def test_who_comes_once_appends_as_one_who_stays_does(tmp_path: Path) -> None:
    log = journal(tmp_path, segment_size=60)
    ids: list[int] = []
    for n in range(0, 30, 2):
        ids.append(add(log, n=n))
        ids.append(append_once(str(tmp_path), b'{"n": %d}' % (n + 1), segment_size=60)[0])

    assert list(log.since()) == [(entry_id, {"n": n}) for n, entry_id in enumerate(ids)]
    assert ids == sorted(set(ids))
    files = len(os.listdir(tmp_path))
    assert files > 3
    assert append_once(str(tmp_path), b"{}", segment_size=1 << 20)[1] == files


@pytest.mark.req("N-06")
def test_what_the_disk_took_of_an_entry_of_one_who_comes_once_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: whole(fd, data[:-1]))
        with pytest.raises(StorageError, match="the disk is full"):
            append_once(str(tmp_path), b'{"n": 0}')
    append_once(str(tmp_path), b'{"n": 1}')

    assert [entry for _, entry in journal(tmp_path).since()] == [{"n": 1}]
    with pytest.raises(StorageError):
        append_once(str(tmp_path / "no"), b"{}")
