"""Whose quota an agent uses."""

from __future__ import annotations

import pytest

from taskyard.agents.engines.provider import account_of

pytestmark = pytest.mark.req("Q-01")


@pytest.mark.parametrize(
    ("engine", "command", "model", "provider"),
    [
        ("claude-stream", ("claude",), None, "anthropic"),
        ("claude-stream", (), None, "anthropic"),
        ("acp", ("claude-agent-acp",), None, "anthropic"),
        ("model", (), "anthropic:claude-x", "anthropic"),
        ("command", ("/opt/bin/gemini", "-p"), "x", "google"),
        ("command", ("codex", "exec"), None, "openai"),
        ("model", (), "openai:gpt-5", "openai"),
        ("acp", (), None, "acp"),
        ("command", ("python3.11", "-u", "/x/my_agent.py"), None, "my_agent"),
        ("command", ("python3", "-c", "print(1)"), None, "python3"),
        ("command", ("../..\0\n/é x",), None, "--x"),
        ("command", ("x" * 300,), None, "x" * 40),
    ],
)
def test_it_is_the_provider_of_the_program_or_the_model_and_safe_in_a_path(
    engine: str, command: tuple[str, ...], model: str | None, provider: str
) -> None:
    account = account_of(engine, command, model, {})
    assert account.provider == provider
    assert account.key.startswith(f"{provider}-") and account.key.replace("-", "").replace("_", "").isalnum()


def test_agents_with_the_same_credentials_share_an_account_whatever_else_differs() -> None:
    def key(model: str | None = None, **env: str) -> str:
        return account_of("claude-stream", ("claude",), model, env).key

    assert key(HOME="/a") == key("opus", HOME="/a", PATH="/x", OPENAI_API_KEY="o")
    assert key(HOME="/a") != key(HOME="/b")
    assert key(HOME="/a") != key(HOME="/a", CLAUDE_CONFIG_DIR="/c")
    assert key(HOME="/a", ANTHROPIC_API_KEY="k") == key(HOME="/b", ANTHROPIC_API_KEY="k")
    assert key(HOME="/a", ANTHROPIC_API_KEY="k") != key(HOME="/a", ANTHROPIC_API_KEY="l")
    assert account_of("model", (), "anthropic:x", {"ANTHROPIC_API_KEY": "k"}).key == key(ANTHROPIC_API_KEY="k")
