"""Which model is meant, and whether it could be run: said before anything is started."""

from __future__ import annotations

import pytest

from taskyard.agents.engines import model as engines_model
from taskyard.agents.engines.model import PROVIDERS, Provider, check_model
from taskyard.errors import MissingExtra, UsageError


@pytest.mark.req("K-02")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (None, "--model anthropic:claude-sonnet-4-5"),
        ("gpt-5", "provider:name"),
        (":gpt", "provider:name"),
        ("python:module", "python:module:attribute"),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY in the environment"),
        ("openai:gpt-5", "OPENAI_API_KEY or OPENAI_BASE_URL"),
    ],
)
def test_what_is_missing_is_said_with_what_to_do(model: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_model(model, {})


@pytest.mark.req("K-02")
def test_what_could_be_run_is_not_refused() -> None:
    check_model("anthropic:claude-sonnet-4-5", {"ANTHROPIC_API_KEY": "k"})
    check_model("ollama:llama", {"OLLAMA_BASE_URL": "http://localhost:11434/v1"})
    check_model("python:mine:model", {})
    check_model("somebody-else:model", {})  # what that needs, it says itself
    check_model("test", {})


@pytest.mark.req("K-02")
def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dict_of(PROVIDERS), "groq", Provider("no_such.library", "groq", ("GROQ_API_KEY",)))
    with pytest.raises(UsageError, match=r"pip install 'pydantic-ai-slim\[groq\]'"):
        check_model("groq:x", {"GROQ_API_KEY": "k"})
    monkeypatch.setattr(engines_model, "_is_installed", lambda module: module != "pydantic_ai")
    with pytest.raises(MissingExtra, match=r"\[agents\]"):
        check_model("test", {})


def dict_of(known: object) -> dict[str, Provider]:
    assert isinstance(known, dict)
    return known
