"""Completing: hooks and acceptance before, without a lock; who is ready after."""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import taskyard
from support.wait import until
from support.yards import open_yard, yards
from taskyard.errors import AcceptanceFailed, Blocked, Cancelled, HookRefused, Untrusted
from taskyard.storage.trust import trust_command

pytestmark = pytest.mark.usefixtures("kept_in")


def hook(outside: Path, event: str, command: str) -> None:
    """A hook of the user's own, which needs no trust."""
    settings = {"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}}
    (outside / ".claude").mkdir(exist_ok=True)
    (outside / ".claude" / "settings.json").write_text(json.dumps(settings))


def python(code: str) -> str:
    return f"{sys.executable} -c {json.dumps(code)}"


@pytest.mark.in_files
@pytest.mark.req("L-04", "H-01")
@pytest.mark.parametrize("event", ["TaskCreated", "TaskCompleted"])
def test_no_lock_is_held_while_a_hook_runs_so_it_may_use_the_list_itself(
    tmp_path: Path, outside: Path, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "5")
    monkeypatch.setenv("HOOK_TASKS", str(tmp_path))
    code = (
        "import os, taskyard; os.environ['CLAUDE_CONFIG_DIR'] = '/nowhere';"
        "yard = taskyard.open(tasks_dir=os.environ['HOOK_TASKS'], list='plan', agent='hook');"
        "yard.tasks.create('by the hook'); yard.tasks.update('1', description='seen by the hook')"
    )
    with open_yard(tmp_path, "ada", foreign=True) as yard:
        yard.tasks.create("a")
        hook(outside, event, python(code))
        if event == "TaskCreated":
            yard.tasks.create("b")
        else:
            yard.tasks.start("1")
            assert yard.tasks.complete("1").is_done

        assert yard.tasks.get("1").description == "seen by the hook"
        assert "by the hook" in [task.subject for task in yard.tasks.list()]


@pytest.mark.req("H-01", "L-03")
def test_a_refused_task_was_never_visible_and_its_id_is_spent(tmp_path: Path, outside: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        hook(outside, "TaskCreated", "echo 'too vague' >&2; exit 2")
        with pytest.raises(HookRefused, match="too vague"):
            yard.tasks.create("b")
        (outside / ".claude" / "settings.json").unlink()

        assert [task.id for task in yard.tasks.list()] == ["1"]
        assert "2" not in {task_id for change in yard.tasks.log() for task_id in change.tasks}
        assert yard.tasks.create("c").id == "3"


@pytest.mark.in_files
@pytest.mark.req("H-01")
def test_a_refused_completion_saves_nothing_of_the_update(tmp_path: Path, outside: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        yard.tasks.start("1")
        hook(outside, "TaskCompleted", "echo 'tests fail' >&2; exit 2")
        before = (tmp_path / "plan" / "1.json").read_bytes()
        with pytest.raises(HookRefused) as caught:
            yard.tasks.update("1", status="completed", subject="done")

        assert (caught.value.event, caught.value.hook_exit_code) == ("TaskCompleted", 2)
        assert (tmp_path / "plan" / "1.json").read_bytes() == before


@pytest.mark.req("H-01", "L-01")
def test_completing_what_is_completed_or_blocked_asks_no_hook(tmp_path: Path, outside: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b", blocked_by=["1"])
        hook(outside, "TaskCompleted", f"echo x >> {tmp_path}/asked")
        with pytest.raises(Blocked):
            yard.tasks.complete("2")
        assert not (tmp_path / "asked").exists()
        yard.tasks.complete("1")
        yard.tasks.complete("1")

        assert (tmp_path / "asked").read_text() == "x\n"


@pytest.mark.req("L-04", "L-07")
def test_a_claimed_task_with_finished_blockers_is_completed_past_its_hook(tmp_path: Path, outside: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        yard.tasks.create("b", blocked_by=["1"])
        yard.tasks.complete("1")
        yard.tasks.start("2")
        hook(outside, "TaskCompleted", "exit 0")

        assert yard.tasks.complete("2").is_done


@pytest.mark.req("L-04")
def test_a_task_that_changed_while_its_hook_ran_is_decided_again(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("a")
        ada.tasks.create("b")
        hook(outside, "TaskCompleted", "exit 0")
        real, calls = ada.tasks.outside.ask_hooks, []

        def ask(event: str, task: taskyard.Task, agent: str | None, **_: object) -> None:
            calls.append(task.id)
            real(event, task, agent)
            if len(calls) == 1:
                bob.tasks.block("1", by="2")

        monkeypatch.setattr(ada.tasks.outside, "ask_hooks", ask)
        with pytest.raises(Blocked):
            ada.tasks.complete("1")
        assert not ada.tasks.get("1").is_done


@pytest.mark.req("L-21")
def test_an_acceptance_command_runs_only_once_trusted_and_its_evidence_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_yard(tmp_path / "tasks", "ada") as yard:
        yard.tasks.create("a", acceptance={"command": "echo proof; exit ${CODE:-0}"})
        with pytest.raises(Untrusted):
            yard.tasks.complete("1")
        trust_command("echo proof; exit ${CODE:-0}", str(tmp_path))
        monkeypatch.setenv("CODE", "3")
        with pytest.raises(AcceptanceFailed) as caught:
            yard.tasks.complete("1")
        assert (caught.value.command_exit_code, "proof" in caught.value.output) == (3, True)
        assert not yard.tasks.get("1").is_done
        monkeypatch.delenv("CODE")
        done = yard.tasks.complete("1")

    evidence = done.extra["evidence"]
    assert isinstance(evidence, dict)
    assert (evidence["exit_code"], evidence["output"].strip()) == (0, "proof")
    assert os.getcwd() == str(tmp_path)


@pytest.mark.req("H-02", "H-01")
@pytest.mark.parametrize("event", ["TaskCreated", "TaskCompleted", "acceptance"])
def test_a_caller_that_gives_up_ends_what_it_waits_for_and_saves_nothing(
    tmp_path: Path, outside: Path, event: str
) -> None:
    cancel, began = threading.Event(), tmp_path / "began"
    command = f"touch {began}; sleep 60"
    with open_yard(tmp_path, "ada") as yard, ThreadPoolExecutor() as threads:
        yard.tasks.create("a", acceptance={"command": command, "cwd": str(tmp_path)})
        trust_command(command, str(tmp_path))
        if event != "acceptance":
            hook(outside, event, command)
        before, mine = yard.tasks.log(), yard.unless(cancel).tasks
        call = threads.submit(mine.create, "b") if event == "TaskCreated" else threads.submit(mine.complete, "1")
        until(began.exists)
        cancel.set()

        assert isinstance(call.exception(timeout=10), Cancelled)
        assert yard.tasks.log() == before


@pytest.mark.req("H-02")
def test_what_was_given_up_during_its_last_hook_is_not_saved_either(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel = threading.Event()
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("a")
        for event in ("TaskCreated", "TaskCompleted"):
            hook(outside, event, "exit 0")
            monkeypatch.setattr(yard.tasks.outside, "ask_hooks", lambda *_, **__: cancel.set())  # it ended in agreement
            before = yard.tasks.log()
            with pytest.raises(Cancelled):
                yard.unless(cancel).tasks.create("b")
            with pytest.raises(Cancelled):
                yard.unless(cancel).tasks.complete("1")
            assert yard.tasks.log() == before
