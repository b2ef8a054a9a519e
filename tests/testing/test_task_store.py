"""The contract of a store, passed by ours, and able to fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.repo import SOURCE, python_files, shown
from taskyard.config import Settings
from taskyard.tasks.file_store import FileStore, ListFiles
from taskyard.tasks.list_folder import ListFolder
from taskyard.tasks.memory_store import MemoryStore
from taskyard.tasks.model import Act, Draft, Lease, Task
from taskyard.testing import check_task_store


def maker(tmp_path: Path, *, foreign: bool, durability: str = "process") -> Callable[[], FileStore]:
    count = iter(range(1000))
    settings = Settings(durability=durability)

    def make() -> FileStore:
        folder = ListFolder(str(tmp_path), f"list-{next(count)}")
        return FileStore(ListFiles(folder, settings, foreign=foreign, alive=lambda *_: None))

    return make


@pytest.mark.req("L-03", "L-05", "L-06")
@pytest.mark.parametrize("foreign", [True, False])
def test_the_file_store_keeps_every_promise(tmp_path: Path, foreign: bool) -> None:
    check_task_store(maker(tmp_path, foreign=foreign))


@pytest.mark.req("L-02", "L-03", "L-11")
def test_the_file_store_keeps_every_promise_where_kernel_locks_may_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_NETWORK_FS", "1")
    check_task_store(maker(tmp_path, foreign=True))


@pytest.mark.req("L-11")
def test_the_file_store_keeps_every_promise_with_every_write_on_the_platter(tmp_path: Path) -> None:
    check_task_store(maker(tmp_path, foreign=False, durability="power"))


@pytest.mark.req("L-03", "L-05", "L-06")
def test_the_memory_store_keeps_every_promise() -> None:
    check_task_store(MemoryStore)


class Forgetful(MemoryStore):
    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        return super().create(draft._replace(metadata={}), act, task_id=task_id, lease=lease)


class Reusing(MemoryStore):
    def reserve(self) -> str:
        return str(max(map(int, self._tasks), default=0) + 1)


class Lenient(MemoryStore):
    def link(self, edges: object, act: Act) -> None:
        pass


@pytest.mark.req("L-03")
@pytest.mark.parametrize(
    ("store", "says"),
    [
        (Forgetful, "what is created is read: the answer is not what was asked for"),
        (Reusing, "ids count up and never return: a reserved id was given out again"),
        (Lenient, "dependencies are known on both sides"),
    ],
)
def test_a_store_that_breaks_a_promise_is_told_which(store: Callable[[], MemoryStore], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_task_store(store)


def test_nothing_in_taskyard_imports_the_contracts() -> None:
    guilty = [
        shown(path)
        for path in python_files(SOURCE)
        if "testing" not in path.parts and "taskyard.testing import" in path.read_text(encoding="utf-8")
    ]

    assert guilty == []
