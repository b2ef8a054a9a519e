"""A client over HTTP that offers roots works in its first root, not in the folder of the server."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import ErrorData, ListRootsResult, Root
from pydantic import FileUrl

from support.cli import taskyard
from support.mcp_http import HttpServer, call_headers, call_of, together
from support.mcp_server import Mode

MODES: list[Mode] = ["auto", "legacy"]


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a worktree beside it, `tree`."""
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"))
    monkeypatch.chdir(main)
    monkeypatch.setenv("TASKYARD_LIST", "demo")
    return main


class Roots:
    """What a client answers to `roots/list`."""

    def __init__(self, *uris: str, error: ErrorData | None = None) -> None:
        self.uris = uris
        self.error = error
        self.asked = 0

    async def __call__(self, *_: object) -> ListRootsResult | ErrorData:
        self.asked += 1
        return self.error or ListRootsResult(roots=[Root(uri=FileUrl(uri)) for uri in self.uris])


def folders(server: HttpServer, mode: Mode, options: dict[str, Any], *, calls: int = 1) -> Sequence[str]:
    """The folders that commands of one client run in."""
    found: list[str] = []

    async def body() -> None:
        async with server.client("ada", mode=mode, **options) as model:
            for _ in range(calls):
                found.append((await model.call("Bash", command="pwd -P")).data["output"].strip())

    together(body)
    return found


@pytest.mark.req("L-21", "T-05")
@pytest.mark.parametrize("mode", MODES)
def test_acceptance_and_commands_run_in_the_first_root_of_the_client(project: Path, tmp_path: Path, mode: Mode) -> None:
    tree = tmp_path / "tree"
    task = taskyard("task", "add", "Work", "--accept", "test -e work.txt", "--quiet").out.strip()
    assert taskyard("trust", task, "--yes").code == 0
    (tree / "work.txt").write_text("done\n", encoding="utf-8")
    roots = Roots(tree.as_uri(), project.as_uri())

    async def body() -> None:
        async with server.client("eve", mode=mode) as other:
            assert "work.txt" in (await other.refused("TaskUpdate", taskId=task, status="completed")).text
        async with server.client("ada", mode=mode, list_roots_callback=roots) as model:
            assert (await model.call("Bash", command="pwd -P")).data["output"] == f"{tree}\n"
            done = await model.call("TaskUpdate", taskId=task, status="completed")
            assert not done.is_error, done.text

    with HttpServer() as server:
        together(body)
    assert roots.asked == 1


@pytest.mark.req("T-05")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "uri",
    ["file://elsewhere{tree}", "file:///nowhere/at/all", "file:///%00", ""],
)
def test_a_root_that_is_no_folder_of_this_machine_is_left_out(
    project: Path, tmp_path: Path, mode: Mode, uri: str
) -> None:
    roots = Roots(*([uri.format(tree=tmp_path / "tree")] if uri else []))
    with HttpServer() as server:
        assert folders(server, mode, {"list_roots_callback": roots}) == [str(project)]


@pytest.mark.req("T-05")
def test_a_client_that_does_not_answer_for_its_roots_works_in_the_folder_of_the_server(project: Path) -> None:
    async def silent(*_: object) -> ListRootsResult:
        await anyio.sleep_forever()
        raise AssertionError

    refusing = Roots(error=ErrorData(code=-32603, message="not now"))
    with HttpServer() as server:
        for answer in (refusing, silent):
            assert folders(server, "legacy", {"list_roots_callback": answer}, calls=2) == [str(project)] * 2


@pytest.mark.req("T-05")
def test_a_client_without_a_session_that_never_sends_its_roots_is_served_after_three_calls(project: Path) -> None:
    call = call_of("Bash", {"command": "pwd -P"})
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"roots": {}}
    with HttpServer() as server:
        answers = [server.post(call, **call_headers("Bash"), Taskyard_Agent="ada").json["result"] for _ in range(4)]
    assert [answer["resultType"] for answer in answers[:3]] == ["input_required"] * 3
    assert answers[3]["structuredContent"]["output"] == f"{project}\n"
