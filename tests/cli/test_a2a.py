"""`taskyard a2a`: who may ask, and what a server is told before it listens."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from support.a2a_places import Yard
from support.cli import taskyard


def test_a_token_is_made_once_replaced_on_wish_and_taken_away() -> None:
    first = taskyard("a2a", "token", "ada", "--json").data
    assert taskyard("a2a", "token", "ada").out.strip() == first["token"]
    assert os.stat(first["token_file"]).st_mode & 0o777 == 0o600
    assert taskyard("a2a", "token", "ada", "--new", "--json").data["token"] != first["token"]
    taskyard("a2a", "token")
    assert taskyard("a2a", "callers", "-q").lines == ["ada", "guest"]
    assert taskyard("a2a", "token", "ada", "--remove", "--json").data == {"caller": "ada", "removed": True}
    assert taskyard("a2a", "token", "ada", "--remove").out == "ada has no token.\n"
    assert taskyard("a2a", "callers", "--json").data == [{"caller": "guest"}]


@pytest.mark.parametrize(
    "words",
    [
        ("token", "../x"),
        ("token", "a b"),
        ("token", "ada", "--new", "--remove"),
        ("serve", "--port", "99999"),
        ("serve", "--port", "0.0.0.0:0", "--command", "cat"),
        ("serve", "--port", "0"),
        ("serve", "--port", "0", "--command", "'"),
        ("serve", "--port", "0", "--command", "cat", "--skill", "x"),
        ("serve", "--port", "0", "--command", "cat", "--cwd", "/nowhere/at/all"),
        ("serve", "--port", "0", "--command", "cat", "--url", "ftp://x"),
        ("serve", "--port", "0", "--command", "cat", "--allow-host", "a/b"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_served(words: tuple[str, ...]) -> None:
    ran = taskyard("a2a", *words, "--json")

    assert ran.code == 2
    assert ran.error["message"]


def test_a_server_says_where_it_is_and_ends_by_a_signal_with_its_tasks_going_on(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    with yard.serve("--command", "cat", "--url", "https://agents.example/a2a") as server:
        assert server.ready["url"] == "https://agents.example/a2a"
        assert server.ready["skills"] == ["agent"]
        assert server.ready["callers"] == ["guest"]
        assert server.stop(signal.SIGINT) == 0
    assert server.said == ""


def test_tab_knows_callers_and_skills(outside: Path) -> None:
    from taskyard.cli.complete import candidates

    taskyard("a2a", "token", "ada")
    folder = outside / ".config" / "taskyard"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[a2a.skills.review]\ndescription = 'Reviews'\n", encoding="utf-8")

    assert candidates(["a2a", ""])[0][0] == "serve"
    assert candidates(["a2a", "token", ""]) == [("ada", "")]
    assert candidates(["a2a", "serve", "--skill", "r"]) == [("review", "Reviews")]
