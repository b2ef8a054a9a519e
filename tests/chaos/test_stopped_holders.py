"""A process that is stopped in the middle of a change: the others hear who it is, and nothing is lost when it wakes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import taskyard
from support.claude_rules import raw_tasks
from support.foreign import needs_node, node
from support.list_truth import faults
from support.lists import SharedList
from support.racing import fork
from support.wait import until
from taskyard.storage import locks
from taskyard.tasks.writer import ListWriter

#: Where the change is interrupted: before it makes sure of its locks, and after.
PLACES = ("draft", "_append")


class Sleeper:
    """A child that stops itself when it comes to a step of the writer, and goes on when woken."""

    def __init__(self, act: Callable[[], object], place: str) -> None:
        self.pid = fork()
        if not self.pid:
            code = 1
            try:
                locks.RECHECK_AFTER = 0.0  # it will have slept for long
                _stop_once(place)
                act()
                code = 0
            finally:
                os._exit(code)

    def asleep(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WUNTRACED | os.WNOHANG)
        assert not pid or os.WIFSTOPPED(status), "it ended before it came there"
        return bool(pid)

    def woken(self) -> int:
        """Its exit code."""
        os.kill(self.pid, signal.SIGCONT)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _stop_once(place: str) -> None:
    original = getattr(ListWriter, place)

    def stopped(*args: object, **named: object) -> object:
        setattr(ListWriter, place, original)
        os.kill(os.getpid(), signal.SIGSTOP)
        return original(*args, **named)

    setattr(ListWriter, place, stopped)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everyone gives up on a lock soon."""
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.3")
    yield


@pytest.mark.req("L-04", "L-11")
@pytest.mark.serial
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("company", ["alone", "beside others"])
@pytest.mark.parametrize("place", PLACES)
def test_who_is_stopped_with_a_lock_is_named_to_the_others_who_can_still_read(
    tmp_path: Path, company: str, place: str
) -> None:
    shared = SharedList(tmp_path, company)
    with shared.open("ada") as yard:
        yard.tasks.create("Task")
        yard.tasks.create("Another")
        sleeper = Sleeper(lambda: shared.open("bob").tasks.update("1", subject="Bob's"), place)
        until(sleeper.asleep, what="the holder to stop")
        with pytest.raises(taskyard.Busy) as refused:
            yard.tasks.update("1", description="Ada's")
        assert f"process {sleeper.pid} " in refused.value.holder
        began = time.monotonic()
        with shared.open("cem") as fresh:
            assert [task.subject for task in fresh.tasks.list()] == ["Task", "Another"]
            assert [change.act.cause for change in fresh.tasks.log()] == ["create", "create"]
            assert fresh.tasks.update("2", subject="Free").subject == "Free"
        assert time.monotonic() - began < 3.0, "a reader waited for a stopped writer"
        assert sleeper.woken() == 0
        assert yard.tasks.update("1", description="Ada's").subject == "Bob's"
    assert faults(shared.folder) == []


@needs_node
@pytest.mark.req("L-02", "L-04")
@pytest.mark.serial
@pytest.mark.parametrize("place", PLACES)
def test_a_sleeper_whose_lock_npm_took_for_abandoned_starts_over_and_loses_nothing(tmp_path: Path, place: str) -> None:
    shared = SharedList(tmp_path, "beside others")
    with shared.open("ada") as yard:
        yard.tasks.create("Task")
    sleeper = Sleeper(lambda: shared.open("bob").tasks.update("1", metadata={"bob": 1}), place)
    until(sleeper.asleep, what="the holder to stop")
    long_ago = time.time() - 11
    os.utime(f"{shared.folder}/1.json.lock", (long_ago, long_ago))

    node('await list.updateTask(args[0], "1", () => ({ metadata: { node: 1 }, owner: "cem" }));', shared.folder)

    assert sleeper.woken() == 0
    assert raw_tasks(shared.folder)["1"]["metadata"] == {"node": 1, "bob": 1}
    assert raw_tasks(shared.folder)["1"]["owner"] == "cem"
    with shared.open() as yard:
        assert yard.tasks.list()[0].owner == "cem"
        assert "external" in [change.act.cause for change in yard.tasks.log("1")]
    assert faults(shared.folder) == []
