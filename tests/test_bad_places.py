"""
Lists where none can be: a file or a link in the way, a disk that is read-only or full.

Refused in words, nothing changed; what can still be read is read.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import taskyard
from support.disks import make_read_only, mounted
from support.yards import open_yard, snapshot
from taskyard.errors import StorageError

IS_ROOT = os.geteuid() == 0
MAY_DIFFER = {"/instances": "the lock files of living instances"}

VERBS: dict[str, Callable[[taskyard.Yard], object]] = {
    "create": lambda yard: yard.tasks.create("a"),
    "list": lambda yard: yard.tasks.list(),
    "get": lambda yard: yard.tasks.get("1"),
    "claim": lambda yard: yard.tasks.claim("1"),
    "update": lambda yard: yard.tasks.update("1", subject="b"),
    "delete": lambda yard: yard.tasks.delete("1"),
    "restore": lambda yard: yard.tasks.restore("1"),
    "block": lambda yard: yard.tasks.block("1", by="2"),
}


def real_list(folder: Path) -> Path:
    """A sound list that something may point to."""
    with open_yard(folder, "ada") as yard:
        yard.tasks.create("one")
        yard.tasks.create("two")
    return folder


def in_the_way(tmp_path: Path, kind: str) -> None:
    subscription = real_list(tmp_path / "sound")
    tasks = tmp_path / "tasks"
    if kind == "the tasks folder is a file":
        tasks.write_text("")
    elif kind == "the tasks folder is a link":
        tasks.symlink_to(subscription)
    elif kind == "a parent is a file":
        (tmp_path / "tasks").write_text("")
    else:
        tasks.mkdir()
        if kind == "the list is a file":
            (tasks / "plan").write_text("")
        elif kind == "the list is a link":
            (tasks / "plan").symlink_to(subscription / "plan")
        elif kind == "the list is a dangling link":
            (tasks / "plan").symlink_to(tmp_path / "nowhere")


@pytest.mark.req("L-02")
@pytest.mark.parametrize(
    "kind",
    [
        "the tasks folder is a file",
        "the tasks folder is a link",
        "the list is a file",
        "the list is a link",
        "the list is a dangling link",
    ],
)
def test_a_file_or_link_in_the_place_of_a_folder_is_refused_by_every_verb(
    tmp_path: Path, outside: Path, kind: str
) -> None:
    in_the_way(tmp_path, kind)
    with open_yard(tmp_path / "tasks", "ada") as yard:
        before = snapshot(tmp_path, outside, ignore=MAY_DIFFER)
        for verb, call in VERBS.items():
            with pytest.raises(StorageError) as caught:
                call(yard)
            assert "is a file" in str(caught.value) or "is a symbolic link" in str(caught.value), verb
        assert snapshot(tmp_path, outside, ignore=MAY_DIFFER) == before


@pytest.mark.req("L-02")
@pytest.mark.parametrize("part", ["ledger", "lock", "log", "leases", "tmp"])
def test_a_planted_link_among_our_own_files_is_never_followed(tmp_path: Path, part: str) -> None:
    real_list(tmp_path / "tasks")
    ours, secret = tmp_path / "tasks" / "plan" / ".taskyard", tmp_path / "secret"
    target = ours / part
    if target.is_dir():
        shutil.rmtree(target)
        secret.mkdir()
    else:
        target.unlink()
        secret.write_text("")
    target.symlink_to(secret)

    with open_yard(tmp_path / "tasks", "ada") as yard:
        assert [task.subject for task in yard.tasks.list()] == ["one", "two"]
        for verb in ("create", "claim", "update", "delete"):
            with pytest.raises(StorageError):
                VERBS[verb](yard)
    assert not secret.is_dir() or list(secret.iterdir()) == []
    assert secret.is_dir() or secret.read_text() == ""


@pytest.mark.req("L-02")
def test_a_planted_link_in_place_of_a_task_is_shown_as_damaged_and_not_written_through(tmp_path: Path) -> None:
    real_list(tmp_path / "tasks")
    secret = tmp_path / "secret.json"
    secret.write_text('{"subject": "secret"}')
    path = tmp_path / "tasks" / "plan" / "1.json"
    path.unlink()
    path.symlink_to(secret)

    with open_yard(tmp_path / "tasks", "ada") as yard:
        assert [found.file for found in yard.tasks.list().damaged] == ["1.json"]
        for verb in ("get", "claim", "update", "delete"):
            with pytest.raises(taskyard.Damaged):
                VERBS[verb](yard)
    assert secret.read_text() == '{"subject": "secret"}'


@pytest.mark.req("L-02", "L-11")
@pytest.mark.skipif(not IS_ROOT, reason="mounting is root's")
def test_a_read_only_list_is_read_and_every_write_is_refused_in_words(outside: Path) -> None:
    with mounted("size=2m") as disk:
        real_list(disk / "tasks")
        make_read_only(disk)
        before = snapshot(disk)
        with open_yard(disk / "tasks", "ada") as yard:
            assert [task.subject for task in yard.tasks.list()] == ["one", "two"]
            assert yard.tasks.get("1").subject == "one"
            assert [change.act.cause for change in yard.tasks.log()] == ["create", "create"]
            for verb in ("create", "claim", "update", "delete", "block"):
                with pytest.raises(StorageError, match="read-only"):
                    VERBS[verb](yard)
        assert snapshot(disk) == before


@pytest.mark.req("L-02")
@pytest.mark.skipif(not IS_ROOT, reason="only root can be somebody else")
def test_a_list_of_somebody_else_is_read_and_every_write_is_refused(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="taskyard-theirs-"))
    try:
        folder.chmod(0o755)
        real_list(folder / "tasks")
        before = snapshot(folder)
        child = os.fork()
        if child == 0:
            os._exit(_as_nobody(folder))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert snapshot(folder) == before
    finally:
        shutil.rmtree(folder)


def _as_nobody(folder: Path) -> int:
    """0 if reading works and writing is refused; else the number of the step that went wrong."""
    os.setgid(65534)
    os.setuid(65534)
    home = tempfile.mkdtemp(prefix="taskyard-nobody-", dir="/tmp")
    os.environ["TASKYARD_HOME"] = os.environ["HOME"] = home
    try:
        with open_yard(folder / "tasks", "eve") as yard:
            if [task.subject for task in yard.tasks.list()] != ["one", "two"] or yard.tasks.get("2").subject != "two":
                return 1
            for verb in ("create", "claim", "update", "delete", "block"):
                try:
                    VERBS[verb](yard)
                except StorageError as refusal:
                    if "permission denied" not in str(refusal):
                        return 2
                else:
                    return 3
        return 0
    except BaseException:
        return 4
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.req("L-02", "L-11")
@pytest.mark.skipif(not IS_ROOT, reason="mounting is root's")
def test_on_a_full_disk_every_write_is_whole_or_refused_and_nothing_is_lost() -> None:
    with mounted("size=1m") as disk:
        real_list(disk / "tasks")
        with open_yard(disk / "tasks", "ada") as yard:
            yard.tasks.list()
            with open(disk / "filler", "wb") as filler, pytest.raises(OSError, match="No space"):
                while True:
                    filler.write(b"x" * 65536)
                    filler.flush()
            before = snapshot(disk / "tasks", ignore={".highwatermark": "an id that is spent stays spent"})
            for _ in range(3):
                for verb in ("create", "update", "block"):
                    with pytest.raises(StorageError, match="the disk is full"):
                        VERBS[verb](yard)
            assert snapshot(disk / "tasks", ignore={".highwatermark": "see above"}) == before
            assert [task.subject for task in yard.tasks.list()] == ["one", "two"]
            (disk / "filler").unlink()

            new = yard.tasks.create("three")
            assert int(new.id) > 2
            assert yard.tasks.update("1", subject="uno").subject == "uno"
            yard.tasks.block("1", by="2")
        with open_yard(disk / "tasks", "bob") as yard:
            assert [(task.subject, task.blocked_by) for task in yard.tasks.list()] == [
                ("uno", ("2",)),
                ("two", ()),
                ("three", ()),
            ]
            assert not any(change.aborted for change in yard.tasks.log())


@pytest.mark.req("L-11")
@pytest.mark.parametrize("allowed", range(9))
def test_a_disk_that_fills_at_any_point_of_a_write_leaves_the_old_state_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    real_list(tmp_path)
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.list()
        left = [allowed]
        for name in ("write", "pwrite"):
            monkeypatch.setattr(os, name, _until_full(getattr(os, name), left))
        try:
            yard.tasks.block("1", by="2")
        except StorageError:
            pass
    monkeypatch.undo()
    monkeypatch.setenv("TASKYARD_HOME", str(tmp_path / "home"))

    with open_yard(tmp_path, "bob") as yard:
        one, two = yard.tasks.list()
        assert (one.blocked_by, two.blocks) in [((), ()), (("2",), ("1",))]
        yard.tasks.block("1", by="2")
        assert yard.tasks.get("1").blocked_by == ("2",)
        assert yard.tasks.get("2").blocks == ("1",)


def _until_full(real: Callable[..., int], left: list[int]) -> Callable[..., int]:
    def write(*arguments: object) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "no space")
        return real(*arguments)

    return write


@pytest.mark.req("L-09")
@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_home_that_is_no_folder_of_ours_is_refused_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "there").mkdir()
    home = tmp_path / "home"
    home.write_text("") if kind == "file" else home.symlink_to(tmp_path / "there")
    monkeypatch.setenv("TASKYARD_HOME", str(home))

    with pytest.raises(StorageError):
        open_yard(tmp_path / "tasks", "ada")

    assert not (tmp_path / "tasks").exists()
    assert list((tmp_path / "there").iterdir()) == []
