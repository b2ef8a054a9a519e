"""Agents that people have installed, and what is missing where one cannot be used."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from taskyard.agents import engines
from taskyard.agents.engines.provider import KNOWN_AGENTS, list_engines, resolve_engine
from taskyard.core.installation import extra_install_command


def put(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / name).chmod(0o755)


@pytest.mark.req("B-01")
def test_a_program_on_the_path_is_an_agent_for_each_engine_that_drives_it(tmp_path: Path) -> None:
    put(tmp_path, "gemini")
    found = {one.name: one for one in list_engines(path=str(tmp_path))}
    assert (found["gemini"].engine, found["gemini"].is_ready) == ("gemini", True)
    assert (found["gemini-acp"].engine, found["gemini-acp"].is_ready) == ("acp", True)
    assert found["codex-acp"].missing == "codex-acp is not installed"
    assert resolve_engine("gemini-acp") == ("acp", ("gemini", "--acp"))


@pytest.mark.req("B-01")
def test_a_library_that_is_missing_is_named_with_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "gemini")
    original = importlib.util.find_spec
    gone = ("acp", "pydantic_ai")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in gone else original(name))
    found = {one.name: one for one in list_engines(path=str(tmp_path))}
    for name in ("acp", "model", "gemini-acp"):
        assert found[name].missing == f"needs {extra_install_command('agents')}"
    assert (found["command"].is_ready, found["gemini"].is_ready) == (True, True)


def test_every_name_is_one_alone_and_its_engine_is_there() -> None:
    names = [one.name for one in list_engines()]
    assert len(names) == len(set(names))
    for one in KNOWN_AGENTS:
        assert one.engine in engines.BUILTIN
    for name in engines.BUILTIN:
        assert engines.find(name) is not None
