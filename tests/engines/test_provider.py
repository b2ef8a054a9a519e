"""Who serves an agent, as a name."""

from __future__ import annotations

import pytest

from taskyard.engines.provider import provider_of


@pytest.mark.req("B-12")
@pytest.mark.parametrize(
    ("engine", "command", "model", "name"),
    [
        ("claude-stream", ("claude",), None, "claude-stream-claude"),
        ("command", ("/opt/bin/gemini", "-p"), "x", "command-gemini"),
        ("model", (), "openai:gpt-5", "model-openai"),
        ("acp", (), None, "acp"),
        ("command", ("../..\0\n/é x",), None, "command---x"),
        ("command", ("x" * 300,), None, f"command-{'x' * 32}"),
    ],
)
def test_it_is_the_engine_with_its_program_or_its_models_maker_and_safe_in_a_path(
    engine: str, command: tuple[str, ...], model: str | None, name: str
) -> None:
    assert provider_of(engine, command, model) == name
