"""Commands while the database is away: those that wait say so, those that stay go on, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO

import pytest

from support.cli import process, start, taskyard
from support.gate import Gate, gate
from support.wait import until
from taskyard.postgres import deadline

pytestmark = pytest.mark.req("X-01")


@pytest.fixture
def door(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    with gate(address) as made:
        monkeypatch.setenv("TASKYARD_STORE", made.address)
        monkeypatch.setenv("TASKYARD_LIST", "x")
        assert taskyard("task", "add", "First").code == 0
        yield made
    deadline.report_waits(None)


class Lines:
    """A process that stays, and what it has said so far, on both streams."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        self.out: list[str] = []
        self.err: list[str] = []
        streams = ((child.stdout, self.out), (child.stderr, self.err))
        self._threads = [threading.Thread(target=_read, args=each, daemon=True) for each in streams]
        for thread in self._threads:
            thread.start()

    def until(self, stream: str, text: str) -> None:
        kept = getattr(self, stream)
        until(lambda: any(text in line for line in kept), timeout=20, what=f"{text!r} in {kept}")

    def ended(self) -> int:
        """Its exit code, once all it said is here."""
        code = self.child.wait(20)
        for thread in self._threads:
            thread.join(20)
        return code


def _read(stream: IO[str], kept: list[str]) -> None:
    with stream:
        kept.extend(iter(stream.readline, ""))


@pytest.fixture
def staying() -> Iterator[Callable[..., Lines]]:
    made: list[Lines] = []

    def begin(*words: str) -> Lines:
        made.append(Lines(start(*words)))
        return made[-1]

    yield begin
    for one in made:
        one.child.kill()
        one.ended()


def add_behind(address: str, subject: str) -> None:
    import taskyard as library

    with library.open(store=address, list="x") as yard:
        yard.tasks.create(subject)


def test_a_command_that_waits_says_for_what_and_does_its_work_when_the_server_is_back(
    door: Gate, staying: Callable[..., Lines]
) -> None:
    door.shut()
    child = staying("task", "add", "Second")
    child.until("err", "Waiting for the database")
    door.open()

    assert child.ended() == 0
    assert "at most 15 s" in child.err[0]
    assert "answers again" in child.err[1]
    assert [task["subject"] for task in taskyard("task", "list", "--json").data] == ["First", "Second"]


@pytest.mark.parametrize("option", ["--json", "--quiet"])
def test_machines_and_the_quiet_hear_the_error_alone(door: Gate, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_DATABASE_PATIENCE", "1.3")
    door.shut()

    ran = process("task", "list", option)

    assert ran.code == 75
    assert "Waiting" not in ran.err
    if option == "--json":
        assert (ran.error["code"], ran.error["retryable"], ran.err) == ("disconnected", True, "")


def test_tab_is_silent_and_quick_while_the_database_is_away(door: Gate) -> None:
    door.shut()
    began = time.monotonic()

    ran = taskyard("__complete", "--", "task", "done", "")

    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"])
def test_a_hook_of_a_client_is_not_kept_waiting(door: Gate, event: str) -> None:
    door.shut()
    told = {"session_id": "s", "hook_event_name": event, "source": "compact", "tool_name": "Bash"}
    began = time.monotonic()

    ran = taskyard("hook", event, stdin=json.dumps(told).encode())

    assert (ran.code, ran.out) == (0, "")
    assert time.monotonic() - began < 5  # by half what a client gives it


@pytest.mark.req("L-18")
def test_a_list_that_is_watched_says_that_it_is_disconnected_and_misses_nothing(
    door: Gate, address: str, staying: Callable[..., Lines]
) -> None:
    child = staying("task", "list", "--watch")
    child.until("out", "First")
    add_behind(address, "Second")
    child.until("out", "Second")
    door.shut()
    child.until("err", "Disconnected from the database")
    add_behind(address, "Third")
    door.open()

    child.until("err", "Reconnected")
    child.until("out", "Third")
    assert sum("Third" in line for line in child.out) == 1
    assert child.child.poll() is None


@pytest.mark.req("L-18")
def test_what_a_program_watches_is_json_also_after_the_database_was_away(
    door: Gate, address: str, staying: Callable[..., Lines]
) -> None:
    child = staying("task", "list", "--watch", "--json")
    child.until("out", "First")
    add_behind(address, "Second")
    child.until("out", "Second")
    door.shut()
    door.open()
    add_behind(address, "Third")
    child.until("out", "Third")

    assert all(json.loads(line)["schema_version"] == 1 for line in child.out)


def test_who_waits_for_a_task_waits_for_the_database_as_well(
    door: Gate, address: str, staying: Callable[..., Lines], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_DATABASE_PATIENCE", "0.3")
    door.shut()
    child = staying("task", "next", "--by", "ada", "--wait", "60s")
    child.until("err", "Waiting for the database")
    door.open()

    assert child.ended() == 0, child.err
    assert "First" in child.out[0]


@pytest.mark.req("L-18")
@pytest.mark.parametrize("every", [("--all",), ()])
def test_events_that_are_followed_go_on_where_they_were(
    door: Gate, address: str, staying: Callable[..., Lines], every: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if every:
        monkeypatch.delenv("TASKYARD_LIST")
    child = staying("task", "events", "-f", *every)
    child.until("out", "First")
    door.shut()
    child.until("err", "Disconnected from the database")
    add_behind(address, "Second")
    door.open()
    child.until("out", "Second")
    add_behind(address, "Third")
    child.until("out", "Third")

    assert [json.loads(line)["id"] for line in child.out] == [0, 1, 2]
