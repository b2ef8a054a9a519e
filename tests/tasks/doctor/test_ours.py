"""What Taskyard keeps beside the tasks: unfinished changes, leases, the ledger and the log; and its home."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.tasks.doctor.finding import FINDING_KINDS
from taskyard.tasks.list_folder import IndexRow, TaskIndex
from taskyard.yard.doctor import doctor

if TYPE_CHECKING:
    from support.sick_list import SickList

DIE_BETWEEN_LOG_AND_FILE = """
import os, sys
import taskyard
from taskyard.tasks import writer
writer.ListWriter.apply = lambda *_: os._exit(9)
taskyard.open(tasks_dir=sys.argv[1], list="crew", is_person=True, foreign_writers=False).tasks.start("1", agent="bob")
"""

CLAIM_AND_DIE = """
import os, sys
import taskyard
taskyard.open(tasks_dir=sys.argv[1], list="crew", agent="bob", foreign_writers=False).tasks.claim("1")
os._exit(9)
"""


def child(code: str, sick: SickList) -> None:
    done = subprocess.run([sys.executable, "-c", code, str(sick.root / "tasks")], timeout=30, check=False)
    assert done.returncode == 9


def after_the_look(sick: SickList) -> list[tuple[str, str | None]]:
    return [(finding.name, finding.task_id) for finding in sick.found()]


@pytest.mark.req("L-11")
def test_a_change_whose_writer_died_is_found_and_undone_or_completed(sick: SickList) -> None:
    sick.tasks(1)
    child(DIE_BETWEEN_LOG_AND_FILE, sick)

    assert after_the_look(sick) == [("unsettled", "1"), ("leftover-draft", None)]
    sick.fixed()

    assert sick.found() == []
    assert sick.raw("1")["status"] == "pending"


@pytest.mark.req("L-09")
def test_a_dead_holder_is_named_and_its_task_given_back(sick: SickList) -> None:
    sick.tasks(1)
    child(CLAIM_AND_DIE, sick)

    assert after_the_look(sick) == [("dead-holder", "1")]
    assert sick.raw("1")["owner"] == "bob"  # looking released nothing
    sick.fixed()

    assert "owner" not in sick.raw("1")
    assert sick.found() == []


@pytest.mark.req("L-09")
def test_lease_records_that_fit_no_task_are_removed_and_kept(sick: SickList) -> None:
    sick.tasks(3)
    record = '{"owner": "bob", "instance": "x", "token": "t", "kind": "manual", "since": 1, "losses": 0}'
    for task_id in ("1", "9"):
        (sick.ours / "leases" / f"{task_id}.json").write_text(record, encoding="ascii")
    (sick.ours / "leases" / "3.json").write_bytes(b"\x00")
    (sick.ours / "leases" / "2.json").write_text('{"losses": 2}', encoding="ascii")  # a fact about a free task
    for file in (sick.ours / "leases").iterdir():
        file.chmod(0o600)

    assert after_the_look(sick) == [("orphan-lease", "1"), ("orphan-lease", "3"), ("orphan-lease", "9")]
    repairs = sick.fixed()

    assert all(repair.kept and os.path.exists(repair.kept) for repair in repairs)
    assert os.listdir(sick.ours / "leases") == ["2.json"]


@pytest.mark.req("L-11")
@pytest.mark.parametrize("sickness", ["removed", "overwritten", "one row"])
def test_a_ledger_that_disagrees_with_the_log_is_made_again_as_it_was(sick: SickList, sickness: str) -> None:
    sick.tasks(4)
    sick.yard.tasks.complete("1")
    sick.yard.tasks.delete("2")
    sick.write("3", subject="By another program")
    sick.yard.tasks.list()
    sick.yard.close()
    index = sick.ours / "ledger"
    before = index.read_bytes()
    if sickness == "removed":
        index.unlink()
    elif sickness == "overwritten":
        index.write_bytes(bytes(len(before)))
    else:
        rows = TaskIndex(str(index))
        rows.put("1", IndexRow(5))
        rows.close()

    [finding] = sick.found()
    assert finding.name == "ledger"
    sick.fixed()

    assert index.read_bytes() == before
    assert sick.found() == []
    with taskyard.open(tasks_dir=sick.root / "tasks", list="crew", is_person=True) as yard:
        assert yard.tasks.restore("2").subject == "Task 2"
        assert [change.act.cause for change in yard.tasks.log("1")] == ["create", "complete"]
        assert [change.act.cause for change in yard.tasks.log("3")] == ["create", "external"]


@pytest.mark.req("L-11")
def test_what_happened_before_a_file_was_damaged_is_still_known_afterwards(sick: SickList) -> None:
    sick.tasks(1)
    sick.file("1").write_bytes(b"{")
    os.utime(sick.file("1"), (1, 1))
    sick.yard.tasks.list()
    sick.file("1").unlink()
    sick.yard.tasks.list()

    assert [change.act.cause for change in sick.yard.tasks.log("1")] == ["create", "external", "external"]
    assert sick.yard.tasks.restore("1").subject == "Task 1"


@pytest.mark.req("L-11")
def test_aborted_and_repaired_changes_are_no_disagreement(sick: SickList) -> None:
    sick.tasks(2)
    child(DIE_BETWEEN_LOG_AND_FILE, sick)
    with taskyard.open(tasks_dir=sick.root / "tasks", list="crew", is_person=True) as yard:
        yard.tasks.create("Settles what the dead left")

    assert "ledger" not in sick.names()


@pytest.mark.req("L-11")
def test_torn_lines_of_the_log_are_counted_and_are_a_note(sick: SickList) -> None:
    sick.tasks(1)
    with open(sick.ours / "log" / "0.jsonl", "ab") as log:
        log.write(b'\n{"at": 1, "by"\n\n[]\n\n{"torn')

    [finding] = sick.found()
    assert (finding.name, finding.kind.is_note) == ("torn-log", True)
    assert finding.why.startswith("3 lines")


@pytest.mark.req("L-11")
def test_drafts_of_dead_writers_are_moved_aside(sick: SickList) -> None:
    sick.tasks(1)
    (sick.ours / "tmp" / "1.json").write_text("half", encoding="ascii")
    (sick.ours / "leases" / "1.json.99999999.abcdef01.tmp").touch(mode=0o600)

    assert set(sick.names()) == {"leftover-draft"}
    sick.fixed()
    assert sick.found() == []


def test_what_others_could_read_is_closed_to_them(sick: SickList) -> None:
    sick.tasks(1)
    sick.yard.mail.open_box("bob")
    home = Path(sick.yard.home)
    for path in (home / "mail", home / "mail" / "crew" / "bob", sick.ours, sick.ours / "ledger"):
        path.chmod(path.stat().st_mode | 0o055)

    assert sick.names() == ["open-permissions"] * 4
    sick.fixed()

    assert sick.found() == []
    assert stat.S_IMODE((sick.ours / "ledger").stat().st_mode) == 0o600
    assert stat.S_IMODE(sick.ours.stat().st_mode) == 0o700


def test_a_link_in_the_home_is_named_and_neither_followed_nor_removed(sick: SickList, tmp_path: Path) -> None:
    sick.tasks(1)
    (tmp_path / "target").mkdir(mode=0o755)
    home = Path(sick.yard.home)
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "mail").symlink_to(tmp_path / "target")

    assert sick.names() == ["planted-link"]
    assert sick.fixed() == []
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o755


def test_the_one_link_that_we_make_is_no_planted_one(sick: SickList) -> None:
    sick.tasks(1)
    folder = Path(sick.yard.home, "jobs", "aqtvjedh7")
    folder.mkdir(mode=0o700, parents=True)
    folder.parent.chmod(0o700)
    (folder / "output").symlink_to("transcript.jsonl")
    assert "planted-link" not in sick.names()

    (folder / "output").unlink()
    (folder / "output").symlink_to("/etc/passwd")
    assert "planted-link" in sick.names()


def test_other_things_in_the_home_are_left_alone(sick: SickList) -> None:
    home = Path(sick.yard.home)
    home.mkdir(mode=0o700)
    (home / "letter").touch(mode=0o644)
    assert sick.found() == []


def test_unreadable_teams_and_trust_are_named(sick: SickList) -> None:
    sick.yard.teams.create("crew")
    home = Path(sick.yard.home)
    (home / "teams" / "crew.json").write_text("{", encoding="ascii")
    (home / "trust.json").write_text("[]", encoding="ascii")
    (home / "trust.json").chmod(0o600)

    assert sick.names() == ["damaged-record", "damaged-record"]


@pytest.mark.req("H-02")
def test_hooks_and_settings_that_cannot_be_are_named_and_the_doctor_still_works(
    sick: SickList, outside: Path, tmp_path: Path
) -> None:
    (outside / ".claude").mkdir()
    (outside / ".claude" / "settings.json").write_text('{"hooks": {"TaskCreated": 7}}', encoding="ascii")
    (outside / ".config" / "taskyard").mkdir(parents=True)
    (outside / ".config" / "taskyard" / "config.toml").write_text("lock_timout = 5", encoding="ascii")

    found = doctor(tasks_dir=tmp_path / "tasks", list="crew").examine()

    assert [finding.name for finding in found] == ["hooks", "settings"]


def test_every_kind_that_is_safe_can_be_fixed_and_every_fix_has_a_treatment(sick: SickList) -> None:
    can_fix = {name for name, kind in FINDING_KINDS.items() if kind.can_fix}

    assert {name for name, kind in FINDING_KINDS.items() if kind.is_safe} <= can_fix
    assert set(sick.doctor._repairs()) == can_fix
