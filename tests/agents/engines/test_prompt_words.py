"""No prompt and no model name becomes an option of an agent program."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli import process, taskyard
from support.engine_turns import Watch
from taskyard.agents.engines.command import Command
from taskyard.agents.engines.engine import Brief
from taskyard.agents.engines.provider import KNOWN_AGENTS

SHOWS = "printf %s\\n"


@pytest.mark.parametrize("place", ["{prompt}", "-t {prompt}", "--message {prompt}", "-- -t {prompt}"])
def test_a_prompt_that_looks_like_an_option_is_refused_where_it_could_be_taken_for_one(place: str) -> None:
    refused = taskyard("agent", "--command", f"{SHOWS} {place}", "--", "--version")

    assert refused.code == 2
    assert "The prompt begins with `-`, and printf could take it for an option." in refused.err


def test_a_prompt_that_a_hook_made_is_refused_as_well(tmp_path: Path) -> None:
    import asyncio

    brief = Brief("--version", str(tmp_path), {}, command=("printf", "{prompt}"))

    assert "could take it for an option" in asyncio.run(Command().work(brief, Watch())).error


@pytest.mark.parametrize(
    ("place", "printed"), [("-- {prompt}", "--version"), ("--message={prompt}", "--message=--version")]
)
def test_a_prompt_in_a_safe_place_is_passed_on_as_it_is(place: str, printed: str) -> None:
    ran = process("agent", "--command", f"printf %s+ {place}".replace("printf", "/usr/bin/printf"), "--", "--version")

    assert ran.code == 0, ran.err
    assert printed in ran.out


def test_a_prompt_on_stdin_is_passed_on_as_it_is() -> None:
    assert process("agent", "--command", "cat", "--", "--version").out == "--version\n"


def test_no_agent_that_we_know_gets_its_prompt_where_an_option_could_stand() -> None:
    assert [one.name for one in KNOWN_AGENTS for word in one.command if word.startswith("{prompt}")] == []


def test_a_model_that_looks_like_an_option_is_refused() -> None:
    refused = taskyard("agent", "go", "--engine", "codex", "--model=--full-auto")

    assert refused.code == 2
    assert "may not begin with -" in refused.err
