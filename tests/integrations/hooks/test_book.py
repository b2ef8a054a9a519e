"""Reading hooks: Claude Code's places and format, every mistake named, nothing read twice."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskyard.integrations.hooks import EVENTS, HookProblem, HookSet, load_hooks, parse_settings

Env = dict[str, str]


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def settings_with(command: str, event: str = "TaskCreated", **more: object) -> dict[str, object]:
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command, **more}]}]}}


def commands(book: HookSet, event: str = "TaskCreated") -> list[str]:
    return [hook.command for hook in book.hooks_for(event)]


@pytest.mark.req("H-01")
def test_hooks_come_from_all_five_places_the_users_first(tmp_path: Path, root: Path, env: Env) -> None:
    write(root / ".taskyard/hooks.json", settings_with("project ours"))
    write(root / ".claude/settings.local.json", settings_with("project local"))
    write(root / ".claude/settings.json", settings_with("project"))
    write(tmp_path / "config/taskyard/hooks.json", settings_with("user ours"))
    write(tmp_path / "claude/settings.json", settings_with("user"))
    book = load_hooks(str(root), env)
    assert commands(book) == ["user", "user ours", "project", "project local", "project ours"]
    assert [hook.of_project for hook in book.hooks_for("TaskCreated")] == [False, False, True, True, True]
    assert book.project_commands == ("project", "project local", "project ours")
    assert book.problems == ()


@pytest.mark.req("H-01")
def test_with_nothing_configured_there_is_nothing_and_no_complaint(root: Path, env: Env) -> None:
    book = load_hooks(str(root), env)
    assert (book.any_for("TaskCreated"), book.hooks_for("TaskCreated"), book.problems) == (False, (), ())
    assert not load_hooks(None, env).any_for("TaskCreated")


@pytest.mark.req("H-01")
def test_every_event_is_accepted_and_claude_codes_other_events_are_its_own_affair(
    tmp_path: Path, root: Path, env: Env
) -> None:
    groups: dict[str, object] = {event: [{"hooks": [{"type": "command", "command": event}]}] for event in EVENTS}
    write(tmp_path / "claude/settings.json", {"hooks": {**groups, "PreToolUse": "not ours to judge"}, "model": "x"})
    book = load_hooks(str(root), env)
    assert all(commands(book, event) == [event] for event in EVENTS)
    assert book.problems == ()


@pytest.mark.req("H-01")
def test_a_misspelt_event_in_our_own_file_is_named_with_the_nearest(root: Path, env: Env) -> None:
    file = write(root / ".taskyard/hooks.json", settings_with("x", event="TaskComplete"))
    (problem,) = load_hooks(str(root), env).problems
    assert (problem.file, problem.where) == (str(file), "hooks.TaskComplete")
    assert "TaskCompleted" in problem.why


@pytest.mark.req("H-02")
@pytest.mark.parametrize(
    ("content", "where"),
    [
        ('{"hooks": {\n  "TaskCreated": [,]}}', "line 2, column 19"),
        ("", "line 1, column 1"),
        ("[]", ""),
        ("[" * 100_000, ""),
        ('{"a": ' + "9" * 5000 + "}", ""),
        ('{"hooks": []}', "hooks"),
        ('{"hooks": {"TaskCreated": {}}}', "hooks.TaskCreated"),
        ('{"hooks": {"TaskCreated": [3]}}', "hooks.TaskCreated[0]"),
        ('{"hooks": {"TaskCreated": [{}]}}', "hooks.TaskCreated[0].hooks"),
        ('{"hooks": {"TaskCreated": [{"hooks": [null]}]}}', "hooks.TaskCreated[0].hooks[0]"),
        ('{"hooks": {"TaskCreated": [{"hooks": [{"type": "command"}]}]}}', "hooks.TaskCreated[0].hooks[0].command"),
        ('{"hooks": {"TaskCreated": [{"hooks": [{"command": "a\\u0000"}]}]}}', "hooks.TaskCreated[0].hooks[0].command"),
        ('{"hooks": {"TaskCreated": [{"hooks": [{"type": "prompt"}]}]}}', "hooks.TaskCreated[0].hooks[0].type"),
        ('{"hooks": {"SubagentStart": [{"matcher": "(", "hooks": []}]}}', "hooks.SubagentStart[0].matcher"),
        ('{"hooks": {"SubagentStart": [{"matcher": 1, "hooks": []}]}}', "hooks.SubagentStart[0].matcher"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_place(content: str, where: str, tmp_path: Path, env: Env) -> None:
    file = write(tmp_path / "claude/settings.json", content)
    told: list[HookProblem] = []
    book = load_hooks(None, env, report=told.append)
    assert [(problem.file, problem.where) for problem in told] == [(str(file), where)]
    assert book.problems == tuple(told)
    assert str(file) in told[0].text


@pytest.mark.req("H-02")
def test_one_bad_hook_leaves_the_others_in_force(tmp_path: Path, env: Env) -> None:
    hooks = [{"type": "command", "command": 1}, {"type": "command", "command": "good"}]
    write(tmp_path / "claude/settings.json", {"hooks": {"TaskCreated": [3, {"hooks": hooks}]}})
    book = load_hooks(None, env)
    assert commands(book) == ["good"]
    assert len(book.problems) == 2


@pytest.mark.req("H-02")
@pytest.mark.parametrize("timeout", [0, -1, True, "5", 1e300, float("nan"), [], {}])
def test_a_bad_time_limit_is_named_and_the_default_used(timeout: object, tmp_path: Path, env: Env) -> None:
    write(tmp_path / "claude/settings.json", settings_with("x", timeout=timeout))
    book = load_hooks(None, env)
    assert [hook.timeout for hook in book.hooks_for("TaskCreated")] == [None]
    assert [problem.where for problem in book.problems] == ["hooks.TaskCreated[0].hooks[0].timeout"]


@pytest.mark.req("H-02")
def test_invalid_utf8_is_named_by_byte(tmp_path: Path, env: Env) -> None:
    file = tmp_path / "claude/settings.json"
    file.parent.mkdir()
    file.write_bytes(b'{"a": "\xff"}')
    assert load_hooks(None, env).problems == (HookProblem(str(file), "byte 7", "it is not UTF-8"),)


@pytest.mark.req("H-02")
@pytest.mark.parametrize("kind", ["fifo", "folder", "huge", "loop"])
def test_a_settings_file_that_is_none_is_reported_and_hangs_nobody(kind: str, tmp_path: Path, env: Env) -> None:
    file = tmp_path / "claude/settings.json"
    file.parent.mkdir()
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "huge":
        file.write_bytes(b" " * 2_000_000)
    else:
        file.symlink_to(file)
    assert [problem.file for problem in load_hooks(None, env).problems] == [str(file)]


@pytest.mark.req("H-01")
def test_settings_kept_in_a_folder_of_dotfiles_are_followed(tmp_path: Path, env: Env) -> None:
    dotfile = write(tmp_path / "dotfiles/claude.json", settings_with("x"))
    (tmp_path / "claude").mkdir()
    (tmp_path / "claude/settings.json").symlink_to(dotfile)
    assert commands(load_hooks(None, env)) == ["x"]


@pytest.mark.req("H-01")
def test_an_edit_is_noticed_at_once_even_with_the_same_size(tmp_path: Path, env: Env) -> None:
    file = tmp_path / "claude/settings.json"
    for number in range(20):
        write(file, settings_with(f"hook {number:02}"))
        assert commands(load_hooks(None, env)) == [f"hook {number:02}"]
    file.unlink()
    assert not load_hooks(None, env).any_for("TaskCreated")


@pytest.mark.req("H-01")
def test_an_unchanged_file_is_not_read_again(tmp_path: Path, env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "claude/settings.json", settings_with("x"))
    os.utime(file, (1_000_000, 1_000_000))
    monkeypatch.setattr("taskyard.integrations.hooks.YOUNG_NS", -1_000_000_000)  # the change time is always young
    load_hooks(None, env)
    monkeypatch.setattr("taskyard.integrations.hooks.read_open", lambda *_, **__: b"{}")
    assert commands(load_hooks(None, env)) == ["x"]


@pytest.mark.req("H-02")
def test_a_problem_is_reported_once_and_again_when_it_changes(tmp_path: Path, env: Env) -> None:
    told: list[HookProblem] = []
    for content in ("{", "{", "[]"):
        write(tmp_path / "claude/settings.json", content)
        book = load_hooks(None, env, report=told.append)
        assert len(book.problems) == 1
    assert len(told) == 2


@pytest.mark.req("H-02")
def test_the_home_folder_as_project_has_no_hooks_of_strangers(tmp_path: Path, env: Env) -> None:
    env["CLAUDE_CONFIG_DIR"] = str(tmp_path / ".claude")
    write(tmp_path / ".claude/settings.json", settings_with("mine"))
    book = load_hooks(str(tmp_path), env)
    assert commands(book) == ["mine"]
    assert book.project_commands == ()
    write(tmp_path / ".claude/settings.json", "{")
    assert len(load_hooks(str(tmp_path), env).problems) == 1


@pytest.mark.req("H-02")
def test_a_command_of_both_user_and_project_is_the_users(tmp_path: Path, root: Path, env: Env) -> None:
    write(tmp_path / "claude/settings.json", settings_with("make check"))
    write(root / ".claude/settings.json", settings_with("make check", timeout=1))
    (hook,) = load_hooks(str(root), env).hooks_for("TaskCreated")
    assert not hook.of_project


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = st.sampled_from(["hooks", "matcher", "type", "command", "timeout", *EVENTS]) | st.text(max_size=4)
anything = st.recursive(
    scalars | st.sampled_from(["command", "*", "A|B", "("]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=12,
)
nearly = st.fixed_dictionaries(
    {"hooks": st.dictionaries(keys, st.lists(st.fixed_dictionaries({"hooks": anything, "matcher": anything})))}
)


@pytest.mark.req("H-02")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=50)
@given(content=anything | nearly, is_ours=st.booleans())
def test_no_settings_whatever_crash_the_reader(content: object, is_ours: bool) -> None:
    hooks, problems = parse_settings("settings.json", content, of_project=True, is_ours=is_ours)
    for hook in hooks:
        assert hook.event in EVENTS
        assert hook.command.strip()
        assert hook.timeout is None or hook.timeout > 0
    for problem in problems:
        assert problem.why
        assert problem.text.isprintable()


@pytest.mark.req("H-02")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(content=st.binary(max_size=200))
def test_no_bytes_whatever_crash_the_reader(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(content)
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    assert not load_hooks(None, env).any_for("TaskCreated")
