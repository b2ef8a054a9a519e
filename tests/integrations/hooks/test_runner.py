"""Asking hooks: what agrees, what refuses, what merely fails; every start has one end."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from support.repo import ROOT
from taskyard.core import subprocesses
from taskyard.errors import Cancelled, HookRefused
from taskyard.integrations.hooks import HookResult, HookRun, load_hooks, run_event
from taskyard.storage import trust

PAYLOAD = {"task_id": "7", "task_subject": "Port it", "task_description": "All of it", "team_name": None}


class Desk:
    """A project, its settings, and everything that was reported."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.user = folder / "claude" / "settings.json"
        self.project = self.root / ".claude" / "settings.json"
        self.env = dict(os.environ)
        self.env["CLAUDE_CONFIG_DIR"] = str(self.user.parent)
        self.env["XDG_CONFIG_HOME"] = str(folder / "config")
        self.env["TASKYARD_HOME"] = str(folder / "home")
        self.env["TASKYARD_SESSION"] = "session-1"
        self.reported: list[HookRun] = []

    def hooks(self, *commands: str, event: str = "TaskCreated", file: Path | None = None, **more: object) -> None:
        entries = [{"type": "command", "command": command, **more} for command in commands]
        file = file or self.user
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"hooks": {event: [{"matcher": more.get("matcher", ""), "hooks": entries}]}}))

    def run(
        self,
        event: str = "TaskCreated",
        *,
        timeout: float = 30.0,
        matcher: str | None = None,
        cancel: threading.Event | None = None,
        payload: dict[str, object] | None = None,
    ) -> HookResult:
        return run_event(
            event,
            PAYLOAD if payload is None else payload,
            book=load_hooks(str(self.root), self.env),
            matcher=matcher,
            cwd=str(self.root),
            timeout=timeout,
            report=self.reported.append,
            cancel=cancel,
            facts={"TASKYARD_LIST": "the-list"},
        )

    def outcomes(self) -> list[str]:
        return [run.outcome for run in self.reported]

    def ran(self, name: str) -> bool:
        return (self.root / name).exists()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.req("H-01")
def test_a_hook_reads_one_json_line_with_claude_codes_fields(desk: Desk) -> None:
    desk.hooks("cat > seen")
    desk.run(payload={**PAYLOAD, "hook_event_name": "forged", "task_subject": "é\n{"})
    text = (desk.root / "seen").read_text()
    assert text.count("\n") == 1
    assert list(json.loads(text).items()) == [
        ("session_id", "session-1"),
        ("transcript_path", ""),
        ("cwd", str(desk.root)),
        ("hook_event_name", "TaskCreated"),
        ("task_id", "7"),
        ("task_subject", "é\n{"),
        ("task_description", "All of it"),
    ]


@pytest.mark.req("H-01")
def test_a_hook_finds_the_facts_in_its_environment(desk: Desk) -> None:
    facts = "$TASKYARD_HOOK_EVENT $TASKYARD_HOOK_TASK_ID $TASKYARD_LIST $CLAUDE_PROJECT_DIR $TASKYARD_PROJECT_DIR"
    desk.hooks(f'echo "{facts} [$TASKYARD_HOOK_TEAM]" > seen')
    desk.run()
    assert (desk.root / "seen").read_text() == f"TaskCreated 7 the-list {desk.root} {desk.root} []\n"


@pytest.mark.req("H-01", "H-02")
@pytest.mark.parametrize("event", ["TaskCreated", "TaskCompleted", "SubagentStop", "TeammateIdle"])
def test_exit_2_refuses_with_the_hook_its_code_and_its_stderr(event: str, desk: Desk) -> None:
    desk.hooks("echo not yet >&2; exit 2", "touch later", event=event)
    with pytest.raises(HookRefused) as refused:
        desk.run(event)
    error = refused.value
    assert (error.event, error.hook, error.hook_exit_code, error.stderr) == (
        event,
        "echo not yet >&2; exit 2",
        2,
        "not yet\n",
    )
    assert desk.outcomes() == ["started", "blocked"]
    assert not desk.ran("later")


@pytest.mark.req("H-02")
def test_a_silent_refusal_says_that_the_hook_said_nothing(desk: Desk) -> None:
    desk.hooks("exit 2")
    with pytest.raises(HookRefused, match="wrote nothing"):
        desk.run()


@pytest.mark.req("H-02")
def test_a_block_decision_refuses_with_its_reason(desk: Desk) -> None:
    desk.hooks("""echo '{"decision": "block", "reason": "tests \\u001b[31mfail"}'""")
    with pytest.raises(HookRefused) as refused:
        desk.run()
    assert (refused.value.hook_exit_code, refused.value.stderr) == (0, "tests fail")


@pytest.mark.req("H-02")
@pytest.mark.parametrize(
    "reply",
    [
        '{"decision": "block"',
        '{"decision": "deny", "reason": "x"}',
        '{"decision": ["block"]}',
        '{"decision": "block", "reason": 3}',
        pytest.param('{"a": ' * 50_000, id="deep"),
        pytest.param('{"decision": "block", "reason": "' + "x" * 70_000 + '"}', id="long"),
        '{"decision": "block"} and more',
        pytest.param('{"decision": "block"}' + " " * 70_000 + "and more", id="far"),
    ],
)
def test_a_reply_nobody_can_obey_is_reported_and_not_obeyed(reply: str, desk: Desk) -> None:
    (desk.root / "reply").write_text(reply)
    desk.hooks("cat reply")
    desk.run()
    assert desk.outcomes() == ["started", "failed"]
    assert "ignored" in desk.reported[1].text


@pytest.mark.req("H-02")
@pytest.mark.parametrize("reply", ["all is well", '{"decision": "approve"}', '{"continue": false}', '"block"', "{}"])
def test_other_output_of_a_hook_that_agrees_blocks_nothing(reply: str, desk: Desk) -> None:
    desk.hooks(f"echo '{reply}'")
    assert desk.run().output == reply
    assert desk.outcomes() == ["started", "ok"]


@pytest.mark.req("H-01")
@pytest.mark.parametrize("end", ["exit 1", "exit 127", "kill -9 $$"])
def test_any_other_end_is_told_to_a_person_and_blocks_nothing(end: str, desk: Desk) -> None:
    desk.hooks(f"echo oops >&2; {end}", "touch later")
    desk.run()
    assert desk.outcomes() == ["started", "failed", "started", "ok"]
    assert "oops" in desk.reported[1].text
    assert desk.ran("later")


@pytest.mark.req("H-01")
@pytest.mark.parametrize("event", ["SubagentStart", "JobEnded"])
def test_what_is_already_so_cannot_be_refused(event: str, desk: Desk) -> None:
    desk.hooks("echo no >&2; exit 2", """echo '{"decision": "block"}'""", event=event)
    desk.run(event)
    assert desk.outcomes() == ["started", "failed", "started", "failed"]


@pytest.mark.req("H-01")
@pytest.mark.parametrize(
    ("matcher", "value", "runs"),
    [
        ("", "explore", True),
        ("*", "explore", True),
        ("explore|plan", "plan", True),
        ("explore|plan", "planner", False),
        ("ex.*", "explore", True),
        ("explore", None, True),
        ("Explore", "explore", False),
    ],
)
def test_a_matcher_looks_at_the_whole_agent_type(matcher: str, value: str | None, runs: bool, desk: Desk) -> None:
    desk.hooks("touch ran", event="SubagentStart", matcher=matcher)
    desk.run("SubagentStart", matcher=value)
    assert desk.ran("ran") is runs


@pytest.mark.req("H-02")
def test_a_hook_has_its_own_limit_or_the_default_and_running_out_of_it_does_not_block(desk: Desk) -> None:
    desk.hooks("sleep 30", timeout=0.1)
    desk.run()
    desk.hooks("sleep 31")
    desk.run(timeout=0.1)
    assert desk.outcomes() == ["started", "timeout"] * 2
    assert "0.1 s" in desk.reported[1].text


@pytest.mark.req("H-02")
@pytest.mark.parametrize(
    "command",
    [
        "yes | head -c 50000000",
        "yes | head -c 50000000 >&2",
        "exec <&-; sleep 0.02",
        r"printf '\377\376\200' >&2",
        "(setsid sleep 2 &)",
    ],
)
def test_a_hostile_hook_neither_hangs_nor_hurts(command: str, desk: Desk) -> None:
    desk.hooks(command)
    result = desk.run(payload={"task_description": "x" * 1_000_000})
    assert desk.outcomes() == ["started", "ok"]
    assert len(result.runs[0].stdout) + len(result.runs[0].stderr) <= 2 * subprocesses.KEPT_BYTES


@pytest.mark.req("H-02")
def test_a_hook_that_ignores_sigterm_is_killed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocesses, "TERM_GRACE", 0.1)
    desk.hooks("trap '' TERM; while :; do sleep 1; done")
    desk.run(timeout=0.1)
    assert (desk.reported[1].outcome, desk.reported[1].signal) == ("timeout", 9)


@pytest.mark.req("H-02")
def test_giving_up_ends_the_hook_and_never_counts_as_consent(desk: Desk) -> None:
    desk.hooks("touch first; sleep 30", "touch later")
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    with pytest.raises(Cancelled):
        desk.run(cancel=cancel)
    assert desk.outcomes() == ["started", "cancelled"]
    assert not desk.ran("later")


@pytest.mark.req("H-02")
def test_a_start_has_its_end_even_when_the_caller_is_interrupted(desk: Desk) -> None:
    class Interrupting(threading.Event):
        def is_set(self) -> bool:
            raise KeyboardInterrupt

    desk.hooks("sleep 30")
    with pytest.raises(KeyboardInterrupt):
        desk.run(cancel=Interrupting())
    assert desk.outcomes() == ["started", "cancelled"]


@pytest.mark.req("H-02")
def test_start_and_end_name_the_same_hook(desk: Desk) -> None:
    desk.hooks("true", "false")
    desk.run()
    assert [(run.event, run.command, run.source) for run in desk.reported] == [
        ("TaskCreated", command, str(desk.user)) for command in ("true", "true", "false", "false")
    ]


@pytest.mark.req("H-02")
def test_a_hook_in_a_folder_that_is_gone_fails_and_does_not_block(desk: Desk) -> None:
    desk.hooks("true")
    book = load_hooks(str(desk.root), desk.env)
    run_event("TaskCreated", {}, book=book, cwd=str(desk.root / "gone"), timeout=5, report=desk.reported.append)
    assert desk.outcomes() == ["started", "failed"]
    assert "could not be started" in desk.reported[1].text


@pytest.mark.req("H-02")
def test_a_projects_hooks_are_skipped_until_trusted_and_that_is_reported_once(desk: Desk) -> None:
    desk.hooks("touch ours")
    desk.hooks("touch theirs", "touch more", file=desk.project)
    assert desk.run().untrusted == desk.run().untrusted == ("touch theirs", "touch more")
    assert (desk.ran("ours"), desk.ran("theirs")) == (True, False)
    (told,) = [run for run in desk.reported if run.outcome == "untrusted"]
    assert "`taskyard trust`" in told.text
    assert told.source == str(desk.project)


@pytest.mark.req("H-02")
def test_a_trusted_projects_hooks_run_until_one_character_changes(desk: Desk) -> None:
    desk.hooks("touch theirs", file=desk.project)
    trust.trust_project(str(desk.root), load_hooks(str(desk.root), desk.env).project_commands, env=desk.env)
    desk.run()
    assert desk.ran("theirs")
    desk.hooks("touch theirs2", file=desk.project)
    assert desk.run().untrusted == ("touch theirs2",)
    assert not desk.ran("theirs2")


@pytest.mark.req("H-02")
def test_a_damaged_trust_store_trusts_nobody_and_stops_nothing(desk: Desk) -> None:
    desk.hooks("touch theirs", file=desk.project)
    home = Path(desk.env["TASKYARD_HOME"])
    home.mkdir()
    (home / "trust.json").write_text("{")
    desk.run()
    assert not desk.ran("theirs")
    assert "trust.json" in desk.reported[0].text


@pytest.mark.req("H-02")
def test_the_matcher_of_an_untrusted_project_is_not_even_tried(desk: Desk) -> None:
    desk.hooks("true", event="SubagentStart", file=desk.project, matcher="(a+)+b")  # exponential on this value
    desk.run("SubagentStart", matcher="a" * 60)
    assert desk.outcomes() == ["untrusted"]


@pytest.mark.req("H-02")
def test_the_same_command_runs_once_an_event(desk: Desk) -> None:
    desk.hooks("echo x >> seen", "echo x >> seen")
    desk.run()
    assert (desk.root / "seen").read_text() == "x\n"


@pytest.mark.req("H-01")
def test_the_guides_example_refuses_while_tests_fail_and_agrees_when_they_pass(desk: Desk) -> None:
    guide = ROOT / "docs" / "guides" / "hooks.md"
    desk.user.parent.mkdir()
    desk.user.write_text(guide.read_text(encoding="utf-8").split("```json\n")[1].split("```")[0], encoding="utf-8")
    make = desk.root.parent / "make"
    make.write_text("#!/bin/sh\necho 1 failed\n! test -e broken\n", encoding="utf-8")
    make.chmod(0o700)
    desk.env["PATH"] = f"{make.parent}:{desk.env['PATH']}"
    desk.run("TaskCompleted")
    (desk.root / "broken").touch()
    with pytest.raises(HookRefused) as refused:
        desk.run("TaskCompleted")
    assert (refused.value.hook_exit_code, refused.value.stderr) == (2, "1 failed\n")
