"""`taskyard workflow`, as a person or a script has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli import process, taskyard
from support.job_cli import ended
from support.wait import until

CI = """
name: ci
steps:
  - id: build
    run: echo built $WHO
  - id: test
    needs: build
    run: echo "${{ steps.build.output }}"; test "$WHO" = ada
  - id: ship
    needs: test
    run: "true"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "ci.yaml"
    path.write_text(CI, encoding="utf-8")
    return str(path)


@pytest.mark.req("K-05")
def test_a_workflow_is_run_and_watched_and_its_failure_is_ours(file: str) -> None:
    good = process("workflow", "run", file, "--env", "WHO=ada")
    assert (good.code, good.out.splitlines()[-1]) == (0, "3 steps: 3 completed")

    bad = process("workflow", "run", file, "--json")
    assert (bad.code, bad.data["status"], bad.data["error"]) == (1, "failed", "step test failed: exit code 1")


@pytest.mark.req("K-05")
def test_it_is_left_in_the_background_shown_and_resumed(file: str) -> None:
    job = taskyard("workflow", "run", "-d", file).out.strip()
    assert ended(job)["status"] == "failed"

    shown = taskyard("workflow", "show", job, "--json").data
    assert (shown["name"], shown["run"], shown["job"]) == ("ci", job, None)
    assert [step["status"] for step in shown["steps"]] == ["completed", "failed", "skipped"]
    assert shown["steps"][1]["why"] == "exit code 1"
    assert "test   failed" in taskyard("workflow", "show", job).out

    refused = taskyard("workflow", "resume", job, "--json")
    assert (refused.code, "--failed" in refused.error["message"]) == (5, True)
    again = taskyard("workflow", "resume", "-d", "--failed", job, "--json").data
    assert ended(again["id"])["facts"]["run"] == job


@pytest.mark.req("K-05", "B-08")
def test_a_step_that_was_cut_short_is_never_shown_as_running(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    path.write_text("name: long\nsteps:\n  - id: wait\n    run: echo on; sleep 600\n", encoding="utf-8")
    job = taskyard("workflow", "run", "-d", str(path)).out.strip()
    until(lambda: len(taskyard("ps", "--json").data) == 2, timeout=20)
    assert taskyard("workflow", "show", job, "--json").data["steps"][0]["status"] == "running"
    taskyard("stop", job)

    (step,) = taskyard("workflow", "show", job, "--json").data["steps"]
    assert step["status"] == "waiting"
    assert "was interrupted" in step["why"]
    until(lambda: 'Workflow "long" was stopped' in taskyard("notices").out)


def test_a_file_is_shown_before_anything_runs(file: str) -> None:
    assert [step["needs"] for step in taskyard("workflow", "show", file, "--json").data["steps"]] == [
        [],
        ["build"],
        ["test"],
    ]
    mermaid = taskyard("workflow", "show", file, "--graph", "mermaid").out
    assert mermaid.startswith("flowchart LR\n") and "  s0 --> s1\n" in mermaid
    dot = taskyard("workflow", "show", file, "--graph", "dot").out
    assert dot.startswith('digraph "ci" {\n') and '  "build" -> "test";\n' in dot
    assert taskyard("ps", "--all", "--json").data == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "nowhere.yaml"), 4, "No file"),
        (("resume", "w00000000"), 4, "No job"),
        (("show", "w00000000"), 4, "No job"),
        (("resume", "nonsense"), 2, "not a job id"),
    ],
)
def test_what_is_not_there_is_said(words: tuple[str, ...], code: int, said: str) -> None:
    refused = taskyard("workflow", *words)
    assert (refused.code, said in refused.err) == (code, True), refused


def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("steps:\n  - id: a\n    rnu: x\n", encoding="utf-8")

    refused = taskyard("workflow", "run", str(path), "--json")

    assert (refused.code, refused.error["code"], refused.error["line"]) == (2, "bad_workflow", 3)


def test_yaml_without_the_package_for_it_says_what_to_install(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "taskyard.jobs.workflow.yaml_text", raising=False)

    refused = taskyard("workflow", "show", file, "--json")

    assert (refused.error["code"], refused.error["extra"]) == ("missing_extra", "workflows")


@pytest.mark.req("K-05")
def test_a_step_puts_tasks_on_the_list_and_waits_for_them_also_after_a_stop(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text('{"steps": [{"id": "t", "tasks": ["One", {"subject": "Two", "needs": "One"}]}]}', encoding="utf-8")
    job = taskyard("workflow", "run", "-d", str(path), "--list", "plan").out.strip()
    until(lambda: len(taskyard("task", "list", "--list", "plan", "--json").data) == 2, what="the tasks")
    assert taskyard("task", "done", "2", "--list", "plan").code == 5  # it waits for the first
    assert taskyard("stop", job).code == 0

    again = taskyard("workflow", "resume", "-d", job).out.strip()
    for task in ("1", "2"):
        assert taskyard("task", "done", task, "--list", "plan").code == 0

    assert ended(again)["status"] == "completed"
    assert len(taskyard("task", "list", "--all", "--list", "plan", "--json").data) == 2


def test_a_task_that_is_removed_instead_of_done_fails_the_step(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text('{"steps": [{"id": "t", "tasks": ["One"]}]}', encoding="utf-8")
    job = taskyard("workflow", "run", "-d", str(path), "--list", "plan").out.strip()
    until(lambda: len(taskyard("task", "list", "--list", "plan", "--json").data) == 1, what="the task")

    assert taskyard("task", "rm", "1", "--list", "plan", "--yes").code == 0

    assert ended(job)["status"] == "failed"


def test_runs_are_completed(file: str) -> None:
    job = taskyard("workflow", "run", "-d", file).out.strip()
    ended(job)

    assert f"{job}\t" in taskyard("__complete", "--", "workflow", "resume", "").out
    assert "--failed" in taskyard("__complete", "--", "workflow", "resume", "--").out


@pytest.mark.req("K-05")
def test_a_run_says_which_file_it_goes_on_with_and_takes_a_changed_one_on_request(file: str) -> None:
    run = taskyard("workflow", "run", "-d", file).out.strip()
    assert ended(run)["status"] == "failed"
    old = taskyard("workflow", "show", run, "--json").data
    assert (old["file"], old["changed"]) == (file, False)

    same = process("workflow", "resume", "--failed", run)
    assert f"Run {run} continues with {file}, sha256 {old['sha256'][:12]}." in same.err
    assert "changed" not in same.err

    Path(file).write_text(CI.replace('test "$WHO" = ada', "true").replace("built", "anew"), encoding="utf-8")
    before = process("workflow", "resume", "--failed", run)
    assert before.code == 1
    assert f"{file} has changed since the run started" in before.err and "--new" in before.err
    after = process("workflow", "resume", "--failed", "--new", run)
    assert (after.code, "has changed" in after.err) == (0, False), after
    shown = taskyard("workflow", "show", run, "--json").data
    assert [step["status"] for step in shown["steps"]] == ["completed"] * 3
    assert (shown["changed"], shown["sha256"] != old["sha256"]) == (False, True)


@pytest.mark.req("K-05")
def test_runs_are_listed_with_how_they_stand(file: str) -> None:
    assert taskyard("workflow", "list").out == "No workflow runs.\n"
    bad = taskyard("workflow", "run", "-d", file).out.strip()
    ended(bad)
    good = taskyard("workflow", "run", "-d", file, "--env", "WHO=ada").out.strip()
    ended(good)

    listed = taskyard("workflow", "list", "--json").data

    assert [(one["run"], one["status"], one["completed"]) for one in listed] == [
        (good, "completed", 3),
        (bad, "failed", 1),
    ]
    assert f"{bad}  failed  ci  1 of 3 steps" in taskyard("workflow", "list").out
