"""`taskyard install`: another program's configuration, changed with care."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
from support.command import Shell
from support.repo import git_folder
from taskyard import config

EVENTS = {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"}
FILES = {"claude-code": claude_servers, "codex": codex_config, "gemini": gemini_settings}
SERVERS = {"claude-code": "mcpServers", "codex": "mcp_servers", "gemini": "mcpServers"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "shop"
    git_folder(root)
    monkeypatch.chdir(root)
    return root


@pytest.mark.req("T-05")
@pytest.mark.parametrize("client", FILES)
def test_a_client_is_told_how_to_start_the_server(client: str) -> None:
    ran = taskyard("install", client, "--yes")

    assert ran.code == 0
    server = found(FILES[client]())[SERVERS[client]]["taskyard"]
    assert (server["command"], server["args"]) == (sys.executable, ["-P", "-m", "taskyard", "mcp"])
    assert server["env"]["TASKYARD_HOME"] == config.home()
    assert server["env"]["CLAUDE_CONFIG_DIR"] == os.environ["CLAUDE_CONFIG_DIR"]
    assert FILES[client]().stat().st_mode & 0o777 == 0o600


@pytest.mark.req("T-05")
def test_what_was_written_starts_taskyard_from_anywhere_and_with_next_to_no_environment(tmp_path: Path) -> None:
    taskyard("install", "gemini", "--yes")
    server = found(gemini_settings())["mcpServers"]["taskyard"]
    words = [server["command"], *server["args"][: server["args"].index("mcp")], "lists", "--json"]
    bare = {name: os.environ[name] for name in ("HOME", "PATH", "PYTHONPATH")}

    done = subprocess.run(words, cwd=tmp_path, env={**bare, **server["env"]}, capture_output=True, timeout=30)

    assert (done.returncode, json.loads(done.stdout)["schema_version"]) == (0, 1)


@pytest.mark.parametrize("client", FILES)
def test_installing_twice_changes_nothing(client: str) -> None:
    taskyard("install", client, "--yes", "--list", "plan")
    before = FILES[client]().read_bytes(), claude_settings().exists() and claude_settings().read_bytes()

    again = taskyard("install", client, "--yes", "--list", "plan", "--json").data

    assert (again["changed"], [file["changes"] for file in again["files"] if file["changes"]]) == (False, [])
    assert (FILES[client]().read_bytes(), claude_settings().exists() and claude_settings().read_bytes()) == before
    assert copies(FILES[client]()) == []


@pytest.mark.parametrize("client", FILES)
def test_a_dry_run_and_a_question_without_an_answer_change_nothing(client: str) -> None:
    dry = taskyard("install", client, "--dry-run", "--json").data
    asked = taskyard("install", client)
    by_machine = taskyard("install", client, "--json")

    assert (dry["changed"], dry["dry_run"], bool(dry["files"][0]["changes"])) == (False, True, True)
    assert asked.code == 2
    assert "--yes" in asked.err
    assert "command" in asked.out
    assert (by_machine.code, by_machine.error["code"]) == (2, "usage")
    assert not FILES[client]().exists()
    assert not Path(config.home(), "clients").exists()


def test_a_person_sees_what_will_change_and_decides(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(capsys)
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert shell("install", "codex").code == 130
    assert not codex_config().exists()

    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    ran = shell("install", "codex")
    assert (ran.code, ran.err) == (0, "Configure Codex to start Taskyard with these changes? [y/N] ")
    assert f"{codex_config()}:\n    + [mcp_servers.taskyard]\n" in ran.out
    assert f"Changed {codex_config()}\n" in ran.out


@pytest.mark.req("T-05")
def test_everything_else_stays_as_it_was_and_a_copy_is_kept() -> None:
    text = '{\n\t"numStartups": 1.50,\n\t"mcpServers": {"x": {"command": "y"}},\n\t"z": null\n}'
    given(claude_servers(), text).chmod(0o640)

    (file, _) = taskyard("install", "claude-code", "--yes", "--json").data["files"]

    now = claude_servers().read_text("utf-8")
    assert now.startswith('{\n\t"numStartups": 1.50,\n\t"mcpServers": {"x": {"command": "y"}, "taskyard": {')
    assert now.endswith('},\n\t"z": null\n}')
    assert claude_servers().stat().st_mode & 0o777 == 0o640
    assert [copy.read_text("utf-8") for copy in copies(claude_servers())] == [text]
    assert file["backup"] == str(copies(claude_servers())[0])


@pytest.mark.req("N-07")
def test_claude_code_runs_a_hook_wherever_a_notice_can_reach_its_model() -> None:
    mine = {"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}]}, "model": "x"}
    given(claude_settings(), mine)

    taskyard("install", "claude-code", "--yes", "--by", "ada")

    settings = found(claude_settings())
    commands = hook_commands(settings)
    assert set(commands) == EVENTS
    assert commands["Stop"] == ["say done", f"{sys.executable} -P -m taskyard hook Stop --by ada"]
    assert settings["env"] == {"TASKYARD_HOME": config.home()}
    assert found(claude_servers())["mcpServers"]["taskyard"]["args"][-3:] == ["mcp", "--agent", "ada"]


def test_both_share_a_list_that_was_named() -> None:
    taskyard("install", "claude-code", "--yes", "--list", "my plan")

    env = found(claude_settings())["env"]
    assert (env["CLAUDE_CODE_TASK_LIST_ID"], env["CLAUDE_CODE_ENABLE_TODO_TOOLS"]) == ("my-plan", "1")
    assert found(claude_servers())["mcpServers"]["taskyard"]["env"]["TASKYARD_LIST"] == "my-plan"


def created_by_the_server(client: str, cwd: Path, subject: str) -> None:
    """Start the server as the client does, in a folder, and have it create a task."""
    server = found(FILES[client]())[SERVERS[client]]["taskyard"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    call = {"name": "TaskCreate", "arguments": {"subject": subject, "description": subject}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    env = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], **server.get("env", {})}
    with subprocess.Popen(
        [server["command"], *server["args"]],
        cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
        running.stdin.flush()
        answer = next(line for line in running.stdout if json.loads(line).get("id") == 2)
        running.stdin.close()
    assert "created successfully" in answer, answer


@pytest.mark.req("L-14")
@pytest.mark.parametrize("client", FILES)
def test_for_all_projects_the_server_uses_the_list_of_the_project_it_is_started_in(
    client: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "blog"
    git_folder(other)
    (project / "src").mkdir()
    assert taskyard("install", client, "--yes").code == 0

    created_by_the_server(client, project, "In the shop")
    created_by_the_server(client, project / "src", "In the shop, below")
    created_by_the_server(client, other, "In the blog")

    def subjects() -> list[str]:
        return [task["subject"] for task in taskyard("task", "list", "--json").data]

    assert subjects() == ["In the shop", "In the shop, below"]
    monkeypatch.chdir(other)
    assert subjects() == ["In the blog"]


@pytest.mark.req("L-14")
@pytest.mark.parametrize("client", FILES)
def test_a_list_that_was_named_is_the_servers_in_every_project(client: str, project: Path, tmp_path: Path) -> None:
    assert taskyard("install", client, "--list", "release", "--yes").code == 0

    created_by_the_server(client, project, "One")
    created_by_the_server(client, tmp_path, "Two")

    tasks = taskyard("task", "list", "--list", "release", "--json").data
    assert [task["subject"] for task in tasks] == ["One", "Two"]


@pytest.mark.req("K-07")
def test_whoever_installs_hooks_is_told_that_they_begin_dreams(monkeypatch: pytest.MonkeyPatch) -> None:
    told = taskyard("install", "claude-code", "--yes").err
    assert "When a Claude Code session ends, a hook starts a dream" in told
    assert "with the engine claude" in told and "dream_enabled = false" in told
    assert taskyard("install", "claude-code", "--no-hooks", "--yes").code == 0
    monkeypatch.setenv("TASKYARD_ENGINE", "codex")
    assert "with the engine codex" in taskyard("install", "claude-code", "--yes").err
    assert "dream" not in taskyard("install", "claude-code", "--no-hooks", "--yes").err
    monkeypatch.setenv("TASKYARD_DREAM_ENABLED", "false")
    assert "a hook starts a dream" not in taskyard("install", "claude-code", "--yes").err
    assert "dream" not in taskyard("install", "codex", "--yes").err


def test_a_list_is_not_shared_by_all_projects_unless_that_was_said() -> None:
    ran = taskyard("install", "claude-code", "--yes")

    assert "CLAUDE_CODE_TASK_LIST_ID" not in found(claude_settings())["env"]
    assert "--scope project" in ran.err


@pytest.mark.req("L-14")
def test_a_project_has_its_own_files_and_its_own_list(project: Path) -> None:
    ran = taskyard("install", "claude-code", "--scope", "project", "--yes")

    assert ran.code == 0
    assert "paths of this machine" in ran.err
    name = config.list_name()
    assert found(project / ".mcp.json")["mcpServers"]["taskyard"]["env"]["TASKYARD_LIST"] == name
    assert found(project / ".claude" / "settings.json")["env"]["CLAUDE_CODE_TASK_LIST_ID"] == name
    assert not claude_servers().exists()
    for client, file in (("codex", ".codex/config.toml"), ("gemini", ".gemini/settings.json")):
        taskyard("install", client, "--scope", "project", "--yes")
        assert (project / file).exists()


def test_what_is_not_wanted_is_left_out_and_taken_back_if_it_was_there(project: Path) -> None:
    where = ("install", "claude-code", "--scope", "project", "--yes")
    taskyard(*where)
    taskyard(*where, "--no-share-list", "--no-hooks")

    settings = found(project / ".claude" / "settings.json")
    assert not settings.get("env")
    assert [command for commands in hook_commands(settings).values() for command in commands] == []


def test_a_changed_wish_is_written_in_place_of_the_old_one() -> None:
    given(gemini_settings(), {"mcpServers": {}, "after": 1})
    taskyard("install", "gemini", "--yes", "--list", "one")
    taskyard("install", "gemini", "--yes", "--list", "two")

    assert list(found(gemini_settings())) == ["mcpServers", "after"]
    assert found(gemini_settings())["mcpServers"]["taskyard"]["env"]["TASKYARD_LIST"] == "two"


def test_what_somebody_set_for_our_server_stays() -> None:
    taskyard("install", "gemini", "--yes")
    settings = found(gemini_settings())
    settings["mcpServers"]["taskyard"]["trust"] = True
    given(gemini_settings(), settings)

    taskyard("install", "gemini", "--yes", "--list", "other")

    server = found(gemini_settings())["mcpServers"]["taskyard"]
    assert (server["trust"], server["env"]["TASKYARD_LIST"]) == (True, "other")


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude-code", "{"),
        ("claude-code", "[]"),
        ("claude-code", '{"mcpServers": []}'),
        ("claude-code", '{"mcpServers": null}'),
        ("gemini", "// comments are no JSON\n{}"),
        ("codex", "a = "),
        ("codex", "mcp_servers = 1\n"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_and_named(client: str, text: str) -> None:
    file = given(FILES[client](), text)

    ran = taskyard("install", client, "--yes", "--json")

    assert (ran.code, ran.error["code"], ran.error["file"]) == (1, "bad_config", str(file))
    assert (file.read_text("utf-8"), copies(file)) == (text, [])


@pytest.mark.parametrize(
    ("client", "text", "why"),
    [
        ("gemini", '{\n  // a comment\n  "a": 1\n}', "no comments and no trailing commas"),
        ("codex", 'mcp_servers = {foo = {command = "x"}}\n', "is written in one piece"),
    ],
)
def test_what_is_valid_for_others_and_not_for_us_is_told_why(client: str, text: str, why: str) -> None:
    file = given(FILES[client](), text)

    ran = taskyard("install", client, "--yes", "--json")

    assert (ran.code, ran.error["code"]) == (1, "bad_config")
    assert why in ran.error["message"]
    assert file.read_text("utf-8") == text


def test_a_second_file_that_cannot_be_changed_keeps_the_first_as_it_was() -> None:
    given(claude_servers(), {"a": 1})
    given(claude_settings(), '{"hooks": {"Stop": 1}}')

    ran = taskyard("install", "claude-code", "--yes", "--json")

    assert (ran.code, ran.error["file"]) == (1, str(claude_settings()))
    assert found(claude_servers()) == {"a": 1}


def test_what_is_no_text_is_refused() -> None:
    given(codex_config(), "").write_bytes(b"a = '\xff'\n")
    assert taskyard("install", "codex", "--yes", "--json").error["code"] == "bad_config"


def test_a_link_to_settings_kept_elsewhere_stays_a_link(tmp_path: Path) -> None:
    real = given(tmp_path / "dotfiles" / "settings.json", {"theme": "dark"})
    gemini_settings().parent.mkdir()
    gemini_settings().symlink_to(real)

    taskyard("install", "gemini", "--yes")

    assert gemini_settings().is_symlink()
    assert found(real)["mcpServers"]["taskyard"]
    assert found(real)["theme"] == "dark"
    assert len(copies(real)) == 1


def test_a_link_to_nowhere_and_a_pipe_are_refused(tmp_path: Path) -> None:
    gemini_settings().parent.mkdir()
    gemini_settings().symlink_to(tmp_path / "gone")
    assert taskyard("install", "gemini", "--yes", "--json").error["code"] == "bad_config"
    assert not (tmp_path / "gone").exists()

    codex_config().parent.mkdir()
    os.mkfifo(codex_config())
    assert taskyard("install", "codex", "--yes", "--json").error["code"] == "bad_config"


def test_a_projects_files_lead_nowhere_outside_of_it(project: Path, tmp_path: Path) -> None:
    secret = given(tmp_path / "elsewhere.json", {})
    (project / ".mcp.json").symlink_to(secret)

    ran = taskyard("install", "claude-code", "--scope", "project", "--yes", "--json")

    assert (ran.code, ran.error["code"]) == (1, "bad_config")
    assert found(secret) == {}


def test_who_asks_gets_the_lines_for_any_other_client() -> None:
    generic = json.loads(taskyard("install", "--print", "--list", "plan").out)
    server = generic["mcpServers"]["taskyard"]
    assert (server["args"][-1], server["env"]["TASKYARD_LIST"]) == ("mcp", "plan")
    assert taskyard("install", "--print", "--list", "plan", "--json").data == generic
    assert taskyard("install", "codex", "--print").out.startswith("[mcp_servers.taskyard]\ncommand = ")
    assert taskyard("install", "--yes").code == 2
    assert not Path(os.environ["HOME"], ".codex").exists()


def test_clients_and_scopes_complete() -> None:
    assert taskyard("__complete", "--", "install", "").lines[:3] == ["claude-code\t", "codex\t", "gemini\t"]
    assert taskyard("__complete", "--", "uninstall", "c").lines == ["claude-code\t", "codex\t"]
    assert taskyard("__complete", "--", "install", "codex", "--scope", "").lines == ["user\t", "project\t"]


def test_homes_of_the_clients_are_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "gemini"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    for client in FILES:
        assert taskyard("install", client, "--yes").code == 0

    home = Path(os.environ["HOME"])
    for file in (
        tmp_path / "codex" / "config.toml",
        tmp_path / "gemini" / ".gemini" / "settings.json",
        home / ".claude.json",
        home / ".claude" / "settings.json",
    ):
        assert file.exists(), file


def test_variables_of_ours_go_along_and_those_of_this_very_process_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LOCK_TIMEOUT": "5", "AGENT": "ada", "JOB": "b00000000", "INSTANCE": "x"}.items():
        monkeypatch.setenv(f"TASKYARD_{name}", value)
    monkeypatch.setenv("TASKYARD_TASKS_DIR", str(Path("lists").absolute()))
    monkeypatch.delenv("TASKYARD_HOME")

    taskyard("install", "gemini", "--yes")

    assert found(gemini_settings())["mcpServers"]["taskyard"]["env"] == {
        "CLAUDE_CONFIG_DIR": os.environ["CLAUDE_CONFIG_DIR"],
        "TASKYARD_HOME": config.home(),
        "TASKYARD_LOCK_TIMEOUT": "5",
        "TASKYARD_TASKS_DIR": str(Path("lists").absolute()),
        "XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"],
    }


@pytest.mark.req("T-05")
@pytest.mark.parametrize("words", [["--yes"], ["--dry-run"], ["--print"]])
@pytest.mark.parametrize("client", FILES)
def test_a_secret_is_written_nowhere(
    client: str, words: list[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(project / ".mcp.json", "{}")  # so that a copy is kept
    for name in ("TASKYARD_MCP_TOKEN", "TASKYARD_OTHER_SECRET", "TASKYARD_SOME_PASSWORD"):
        monkeypatch.setenv(name, "d0-not-tell-anybody")
    monkeypatch.setenv("TASKYARD_BACKGROUND_KEY", "off")  # no secret, for all its name

    ran = taskyard("install", client, "--scope", "project", *words)

    assert ran.code == 0
    assert "d0-not-tell" not in ran.out + ran.err
    files = [file for file in project.rglob("*") if file.is_file()]
    assert not [file for file in files if "d0-not-tell" in file.read_text(encoding="utf-8")]
    assert any("TASKYARD_BACKGROUND_KEY" in text for text in (ran.out, *(file.read_text() for file in files)))


def test_a_value_that_a_client_would_replace_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_VERIFIER", "${HOME}")
    assert taskyard("install", "codex", "--yes", "--json").error["code"] == "bad_value"
    monkeypatch.setenv("TASKYARD_VERIFIER", "$HOME")
    assert taskyard("install", "gemini", "--yes", "--json").error["code"] == "bad_value"


@pytest.mark.req("T-05")
def test_claude_code_may_be_allowed_to_call_the_tools_and_whoever_is_not_is_told_how() -> None:
    without = taskyard("install", "claude-code", "--yes")
    assert "--allow" in without.err
    settings = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "settings.json"
    assert "permissions" not in json.loads(settings.read_text(encoding="utf-8"))

    allowed = taskyard("install", "claude-code", "--yes", "--allow")
    assert "--allow" not in allowed.err
    assert json.loads(settings.read_text(encoding="utf-8"))["permissions"] == {"allow": ["mcp__taskyard"]}
    assert taskyard("install", "claude-code", "--yes", "--allow").out.startswith("Nothing to change")
    taskyard("uninstall", "claude-code", "--yes")
    assert not settings.exists()


@pytest.mark.req("T-05")
def test_what_is_printed_is_in_the_format_of_the_client() -> None:
    server = json.loads(taskyard("install", "--print").out)["mcpServers"]["taskyard"]
    words = [server["command"], *server["args"]]
    opencode = json.loads(taskyard("install", "opencode", "--print").out)["mcp"]["taskyard"]
    assert opencode == {"type": "local", "command": words, "environment": server["env"], "enabled": True}
    assert json.loads(taskyard("install", "vscode", "--print").out) == {
        "servers": {"taskyard": {"type": "stdio", **server}}
    }
    assert taskyard("install", "vscode").code == 2


@pytest.mark.req("T-05")
def test_opencode_has_our_server_under_its_own_key_and_gets_its_file_back(tmp_path: Path) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"], "opencode", "opencode.json")
    file.parent.mkdir(parents=True)
    before = '{\n  "mcp": {"other": {"type": "local", "command": ["x"]}},\n  "n": 1.50\n}'
    file.write_text(before, encoding="utf-8")
    assert taskyard("install", "opencode", "--yes").code == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert (set(found["mcp"]), "mcpServers" in found) == ({"other", "taskyard"}, False)
    assert found["mcp"]["taskyard"]["command"][-1] == "mcp"
    assert taskyard("install", "opencode", "--yes").out.startswith("Nothing to change")
    assert taskyard("uninstall", "opencode", "--yes").code == 0
    assert file.read_text(encoding="utf-8") == before
