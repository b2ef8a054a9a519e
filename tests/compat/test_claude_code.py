"""One folder, two programs: files Claude Code left, and what it can see of ours."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import claude_program
from support.scale import scale
from support.yards import on_disk, open_yard, write_task
from taskyard.core import files
from taskyard.errors import Busy, TaskNotFound
from taskyard.tasks import writer
from taskyard.tasks.reader import decode_task, encode_task, parse_object

DATA = Path(__file__).parent / "data" / "claude-code"
SAMPLES = sorted(DATA.rglob("*.json"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "plan"


@pytest.mark.req("L-02")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_claude_code_wrote_comes_back_byte_for_byte(sample: Path) -> None:
    data = sample.read_bytes()
    raw = parse_object(data)
    task = decode_task(sample.stem, raw)
    if raw.get("owner") == "":
        task = task._replace(owner="")  # an empty owner reads as none

    assert encode_task(task, raw) == data
    assert claude_program.seen(sample) is not None


@pytest.mark.req("L-02")
@pytest.mark.parametrize("name", ["edgecases", "t2", "utf8"])
def test_a_list_claude_code_left_is_read_whole_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    shutil.copytree(DATA / name, tmp_path / "plan")
    before = {path.name: path.read_bytes() for path in (tmp_path / "plan").glob("*.json")}
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        listing = yard.tasks.list()
        assert listing.damaged == ()
        for task in listing:
            raw = json.loads(before[f"{task.id}.json"])
            assert (task.subject, task.status.value, task.owner) == (
                raw["subject"],
                raw["status"],
                raw.get("owner") or None,
            )
            assert dict(task.metadata) == raw.get("metadata", {})
    assert {path.name: path.read_bytes() for path in (tmp_path / "plan").glob("*.json")} == before


@pytest.mark.req("L-02", "L-06")
def test_a_cycle_and_a_self_block_claude_code_wrote_loop_nobody(tmp_path: Path) -> None:
    shutil.copytree(DATA / "edgecases", tmp_path / "plan")
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        assert [task.id for task in yard.tasks.list()] == ["1", "2", "4", "5", "6"]
        assert yard.tasks.claim("2").owner == "ada"  # its blocker is completed
        yard.tasks.unblock("1", by=["1", "2"])
        assert yard.tasks.get("1").blocked_by == ()


@pytest.mark.req("L-02")
def test_everything_we_write_is_visible_to_claude_code_and_laid_out_as_its_own(tmp_path: Path, folder: Path) -> None:
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        yard.tasks.create("A é 😀 \u2028", description='quote " and \\ and\nnewline', active_form="A-ing")
        yard.tasks.create("B", blocked_by=["1"], metadata={"k": [1, {"x": None}], "e": {}, "l": []}, priority=1)
        yard.tasks.create("hidden", metadata={"_internal": True})
        yard.tasks.start("1")
        yard.tasks.complete("1")
        yard.tasks.claim("2")
        yard.tasks.assign("2", None)

    assert set(claude_program.visible(folder)) == {"1", "2"}
    for path in folder.glob("*.json"):
        raw = claude_program.seen(path)
        assert raw is not None
        assert None not in raw.values()
        assert path.read_bytes() == claude_program.layout(raw)
        assert path.stat().st_mode & 0o777 == 0o644
    assert claude_program.next_id(folder) == 4
    assert not list(folder.glob("*.json.lock"))


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).filter(str.strip)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.req("L-02")
@settings(max_examples=scale(300), deadline=None)
@given(subject=TEXT, description=TEXT, metadata=st.dictionaries(TEXT, VALUES, max_size=4))
def test_whatever_is_stored_both_programs_read_the_same(
    tmp_path: Path, subject: str, description: str, metadata: dict[str, Any]
) -> None:
    with open_yard(tmp_path) as yard:
        task = yard.tasks.create(subject, description=description, metadata=metadata)
    raw = claude_program.seen(tmp_path / "plan" / f"{task.id}.json")

    assert raw is not None
    assert (raw["subject"], raw["description"], raw.get("metadata", {})) == (subject, description, metadata)
    assert (tmp_path / "plan" / f"{task.id}.json").read_bytes() == claude_program.layout(raw)


@pytest.mark.req("L-02")
def test_older_writers_files_are_read_as_pending_and_made_whole_by_our_next_write(tmp_path: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "1.json").write_text('{"id": 1, "subject": "old", "metadata": null, "owner": null, "extra": 5}')
    assert claude_program.visible(folder) == {}
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        task = yard.tasks.get("1")
        assert (task.status.value, task.blocks, task.metadata, task.owner) == ("pending", (), {}, None)
        yard.tasks.update("1", subject="new")

    assert claude_program.visible(folder)["1"]["subject"] == "new"
    assert on_disk(folder, "1")["extra"] == 5


@pytest.mark.req("L-11", "L-02")
def test_a_file_marked_as_deleted_reads_as_deleted_keeps_its_id_and_can_be_restored(
    tmp_path: Path, folder: Path
) -> None:
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        yard.tasks.create("a")
        write_task(folder, "1", status="deleted")
        assert list(yard.tasks.list()) == []
        assert yard.tasks.create("b").id == "2"
        assert yard.tasks.restore("1").subject == "a"
        assert [task.id for task in yard.tasks.list()] == ["1", "2"]


@pytest.mark.req("L-11")
def test_the_ui_deleting_every_file_is_logged_as_external_and_all_of_it_can_be_restored(
    tmp_path: Path, folder: Path
) -> None:
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        for subject in ("a", "b", "c"):
            yard.tasks.complete(yard.tasks.create(subject).id)
        yard.tasks.list()
        claude_program.clean_up(folder)

        assert list(yard.tasks.list()) == []
        gone = [change for change in yard.tasks.log() if change.act.cause == "external"]
        assert {task_id for change in gone for task_id in change.tasks} == {"1", "2", "3"}
        assert all(task is None for change in gone for task in change.tasks.values())
    with open_yard(tmp_path, "bob", foreign=True) as yard:
        back = [yard.tasks.restore(task_id) for task_id in ("3", "1", "2")]
        assert [(task.subject, task.status.value) for task in back] == (
            [("c", "completed"), ("a", "completed"), ("b", "completed")]
        )
        assert yard.tasks.create("d").id == "4"


@pytest.mark.req("L-11")
def test_what_happened_while_nobody_of_us_looked_is_found_at_the_next_look(tmp_path: Path, folder: Path) -> None:
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        yard.tasks.create("a")
        yard.tasks.create("b", blocked_by=["1"])
    claude_program.delete(folder, "1")
    claude_program.update(folder, "2", owner="carol", status="in_progress")
    claude_program.write(
        folder, {"id": "3", "subject": "c", "description": "c", "status": "pending", "blocks": [], "blockedBy": []}
    )

    with open_yard(tmp_path, "bob", foreign=True) as yard:
        assert [(task.id, task.owner) for task in yard.tasks.list()] == [("2", "carol"), ("3", None)]
        assert [change.act.cause for change in yard.tasks.log("2")][-1] == "external"
        assert [change.act.cause for change in yard.tasks.log("3")] == ["external"]
        assert yard.tasks.restore("1").blocks == ("2",)
        yard.tasks.delete("3")
        assert yard.tasks.restore("3").subject == "c"
        assert yard.tasks.create("d").id == "4"


@pytest.mark.req("L-02")
def test_a_foreign_write_between_our_read_and_our_write_is_kept(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        real, waiting = files.swap, [True]

        def swap(new: str, current: str) -> bool:
            if waiting and current.endswith("/1.json"):
                waiting.clear()
                claude_program.update(folder, "1", description="theirs")
            return real(new, current)

        monkeypatch.setattr(writer, "swap", swap)
        task = yard.tasks.update("1", subject="ours")

    assert (task.subject, task.description) == ("ours", "theirs")
    assert (on_disk(folder, "1")["subject"], on_disk(folder, "1")["description"]) == ("ours", "theirs")
    assert "external" in [change.act.cause for change in yard.tasks.log("1")]


@pytest.mark.req("L-11")
def test_a_task_deleted_between_our_read_and_our_write_stays_deleted(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        real = files.swap

        def swap(new: str, current: str) -> bool:
            if os.path.exists(current):
                os.unlink(current)
            return real(new, current)

        monkeypatch.setattr(writer, "swap", swap)
        with pytest.raises(TaskNotFound):
            yard.tasks.update("1", subject="ours")
        monkeypatch.undo()

        assert not (folder / "1.json").exists()
        assert list(yard.tasks.list()) == []
        assert yard.tasks.restore("1").subject == "a"


@pytest.mark.req("L-02", "L-04")
def test_claude_codes_lock_on_a_task_is_respected_where_it_writes_too(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.05")
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        yard.tasks.create("a")
        yard.tasks.create("b")
        (folder / "1.json.lock").mkdir()
        with pytest.raises(Busy):
            yard.tasks.update("1", subject="x")
        assert yard.tasks.update("2", subject="y").subject == "y"
        (folder / "1.json.lock").rmdir()
        (folder / ".lock.lock").mkdir()
        with pytest.raises(Busy):
            yard.tasks.create("c")
        assert yard.tasks.update("1", subject="x").subject == "x"
        (folder / ".lock.lock").rmdir()
        assert int(yard.tasks.create("c").id) >= 3


@pytest.mark.req("L-12")
def test_a_task_claude_code_hides_is_a_tracker_to_us(tmp_path: Path, folder: Path) -> None:
    write_task(folder, "1", metadata={"_internal": True})
    write_task(folder, "2")
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        assert [task.id for task in yard.tasks.list()] == ["2"]
        assert set(claude_program.visible(folder)) == {"2"}


@pytest.mark.req("L-03", "L-02")
@pytest.mark.parametrize(
    ("mark", "wanted"), [("7", "8"), (" 7\n", "8"), ("7abc", "8"), ("garbage", "3"), ("", "3"), ("1", "3"), ("-5", "3")]
)
def test_the_mark_is_read_as_claude_code_reads_it(tmp_path: Path, folder: Path, mark: str, wanted: str) -> None:
    write_task(folder, "1")
    write_task(folder, "2")
    (folder / ".highwatermark").write_text(mark)
    assert claude_program.next_id(folder) == int(wanted)

    with open_yard(tmp_path, foreign=True) as yard:
        assert yard.tasks.create("a").id == wanted
    assert claude_program.next_id(folder) == int(wanted) + 1
