"""`taskyard uninstall`: exactly our parts are taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as with_any
from hypothesis import strategies as st

from support.cli import taskyard
from support.clients import (
    claude_servers,
    claude_settings,
    codex_config,
    copies,
    found,
    gemini_settings,
    given,
    hook_commands,
)
from support.repo import git_folder
from taskyard import config

FILES = {"claude-code": claude_servers, "codex": codex_config, "gemini": gemini_settings}

HOOK = {"type": "command", "command": "say done"}

#: As settings are, and as nobody would write them: any keys, and ours with other people's values in them.
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
_NAMES = st.sampled_from(["CLAUDE_CODE_TASK_LIST_ID", "CLAUDE_CODE_ENABLE_TODO_TOOLS", "TASKYARD_HOME", "PATH"])
_GROUPS = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(st.just(HOOK), max_size=2)}, optional={"matcher": st.text(max_size=3)}),
    max_size=2,
)
_KNOWN = st.fixed_dictionaries(
    {},
    optional={
        "env": st.dictionaries(_NAMES, st.sampled_from(["1", "plan", "x"]) | st.none(), max_size=4),
        "hooks": st.dictionaries(st.sampled_from(["Stop", "PreToolUse"]), _GROUPS, max_size=2),
        "mcpServers": st.dictionaries(
            st.sampled_from(["taskyard", "x"]), st.just({"url": "u"}) | st.none(), max_size=2
        ),
    },
)
SETTINGS = st.builds(
    lambda other, ours: {**other, **ours}, st.dictionaries(st.text(max_size=4), _ANY, max_size=3), _KNOWN
)


@pytest.mark.parametrize("client", FILES)
def test_a_client_that_had_no_configuration_has_none_again(client: str) -> None:
    taskyard("install", client, "--yes", "--list", "plan")

    done = taskyard("uninstall", client, "--yes", "--json").data

    assert done["changed"]
    assert all(file["removed"] and file["backup"] for file in done["files"])
    assert not any(file.exists() for file in (FILES[client](), claude_settings()))
    assert list(Path(config.home(), "clients").iterdir()) == []


@pytest.mark.req("T-05")
@with_any(servers=SETTINGS, settings=SETTINGS, indent=st.sampled_from([None, 2, "\t"]))
def test_whatever_else_is_configured_survives_unchanged(
    servers: dict[str, Any], settings: dict[str, Any], indent: int | str | None
) -> None:
    before = [json.dumps(one, indent=indent, ensure_ascii=False) for one in (servers, settings)]
    files = [given(claude_servers(), before[0]), given(claude_settings(), before[1])]

    assert taskyard("install", "claude-code", "--yes", "--list", "plan").code == 0
    assert found(files[0])["mcpServers"]["taskyard"]["args"][-1] == "mcp"
    assert found(files[1])["env"]["CLAUDE_CODE_TASK_LIST_ID"] == "plan"
    assert taskyard("uninstall", "claude-code", "--yes").code == 0

    assert [found(file) for file in files] == [json.loads(text) for text in before]
    for file in files:
        for copy in copies(file):
            copy.unlink()


def test_toml_is_what_it_was_to_the_byte() -> None:
    text = "# mine\r\nmodel = \"x\"\n[mcp_servers.y]\ncommand = 'z'   # why"
    given(codex_config(), text)
    before = codex_config().read_bytes()

    taskyard("install", "codex", "--yes")
    taskyard("install", "codex", "--yes", "--list", "other")
    taskyard("uninstall", "codex", "--yes")

    assert codex_config().read_bytes() == before


def test_what_changed_since_stays() -> None:
    given(claude_settings(), {"env": {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "0"}, "hooks": {"Stop": [{"hooks": [HOOK]}]}})
    taskyard("install", "claude-code", "--yes", "--list", "plan")
    settings = found(claude_settings())
    settings["env"]["CLAUDE_CODE_TASK_LIST_ID"] = "another"
    settings["hooks"]["Stop"][1]["hooks"].append({**HOOK, "command": "mine, in the same group"})
    settings["new"] = True
    given(claude_settings(), settings)

    ran = taskyard("uninstall", "claude-code", "--yes")

    now = found(claude_settings())
    assert now["env"] == {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "0", "CLAUDE_CODE_TASK_LIST_ID": "another"}
    assert hook_commands(now) == {"Stop": ["say done", "mine, in the same group"]}
    assert now["new"] is True
    assert "env.CLAUDE_CODE_TASK_LIST_ID was changed since: it stays." in ran.err


def test_a_hook_of_ours_is_found_wherever_it_was_moved() -> None:
    taskyard("install", "claude-code", "--yes")
    settings = found(claude_settings())
    ours = settings["hooks"].pop("Stop")[0]["hooks"][0]
    settings["hooks"]["SubagentStop"] = [{"matcher": "x", "hooks": [HOOK, ours]}]
    given(claude_settings(), settings)

    taskyard("uninstall", "claude-code", "--yes")

    assert hook_commands(found(claude_settings())) == {"SubagentStop": ["say done"]}


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (gemini_settings, {"mcpServers": {"taskyard": {"command": "another"}}}),
        (gemini_settings, {"mcpServers": {"taskyard": {"command": "/bin/taskyard", "args": ["serve"]}}}),
        (gemini_settings, {"mcpServers": {"taskyard": 1}}),
    ],
)
def test_a_server_of_our_name_that_starts_something_else_is_not_ours(file: Any, content: Any) -> None:
    given(file(), content)

    ran = taskyard("uninstall", "gemini", "--yes")

    assert ran.code == 0
    assert "starts something else: it stays" in ran.err
    assert found(file()) == content


@pytest.mark.parametrize("client", FILES)
def test_nothing_to_take_back_is_an_answer(client: str) -> None:
    ran = taskyard("uninstall", client)

    assert (ran.code, ran.out.startswith("Nothing to change for ")) == (0, True)
    assert taskyard("uninstall", client, "--json").data["changed"] is False


def test_without_a_record_our_server_and_hooks_go_and_variables_stay() -> None:
    taskyard("install", "claude-code", "--yes", "--list", "plan")
    for file in Path(config.home(), "clients").iterdir():
        file.write_bytes(b"\xff nonsense")

    taskyard("uninstall", "claude-code", "--yes")

    assert found(claude_servers())["mcpServers"] == {}
    settings = found(claude_settings())
    assert settings["env"]["CLAUDE_CODE_TASK_LIST_ID"] == "plan"
    assert not any(hook_commands(settings).values())


@pytest.mark.parametrize("client", FILES)
def test_nobody_to_ask_and_a_dry_run_change_nothing(client: str) -> None:
    taskyard("install", client, "--yes")
    before = FILES[client]().read_bytes()

    assert taskyard("uninstall", client).code == 2
    assert taskyard("uninstall", client, "--dry-run", "--json").data["files"][0]["changes"]
    assert FILES[client]().read_bytes() == before


@pytest.mark.parametrize(("client", "text"), [("gemini", "{"), ("codex", "[")])
def test_a_file_that_cannot_be_read_is_left_and_named(client: str, text: str) -> None:
    given(FILES[client](), text)

    ran = taskyard("uninstall", client, "--yes", "--json")

    assert (ran.code, ran.error["code"]) == (1, "bad_config")
    assert FILES[client]().read_text("utf-8") == text


def test_each_scope_is_taken_back_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    taskyard("install", "codex", "--yes")
    taskyard("install", "codex", "--yes", "--scope", "project")

    taskyard("uninstall", "codex", "--yes", "--scope", "project")
    assert codex_config().exists()
    assert not (tmp_path / ".codex" / "config.toml").exists()
    taskyard("uninstall", "codex", "--yes")
    assert not codex_config().exists()
