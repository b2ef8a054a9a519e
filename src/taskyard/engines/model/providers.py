"""Which model is meant, what its provider needs, and whether that is there: looked at before anything is loaded."""

from __future__ import annotations

from taskyard.errors import MissingExtra, UsageError
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Begins the name of a model of somebody's own: `python:module:attribute`.
OWN = "python"

#: A model that answers by itself, to try things out.
TRIAL = "test"


class Provider(NamedTuple):
    """What a provider needs."""

    module: str  #: its library
    extra: str  #: the part of pydantic-ai-slim that brings it
    keys: tuple[str, ...] = ()  #: variables, one of which must be set


_OPENAI = Provider("openai", "openai", ("OPENAI_API_KEY", "OPENAI_BASE_URL"))
_GOOGLE = Provider("google.genai", "google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"))

#: Those that people use most; what another one needs, it says itself when it is used.
KNOWN: Mapping[str, Provider] = {
    "anthropic": Provider("anthropic", "anthropic", ("ANTHROPIC_API_KEY",)),
    "openai": _OPENAI,
    "openai-chat": _OPENAI,
    "openai-responses": _OPENAI,
    "google": _GOOGLE,
    "google-gla": _GOOGLE,
    "openrouter": Provider("openai", "openai", ("OPENROUTER_API_KEY",)),
    "ollama": Provider("openai", "openai", ("OLLAMA_BASE_URL",)),
    "deepseek": Provider("openai", "openai", ("DEEPSEEK_API_KEY",)),
    "together": Provider("openai", "openai", ("TOGETHER_API_KEY",)),
    "fireworks": Provider("openai", "openai", ("FIREWORKS_API_KEY",)),
    "moonshotai": Provider("openai", "openai", ("MOONSHOTAI_API_KEY",)),
    "cerebras": Provider("openai", "cerebras", ("CEREBRAS_API_KEY",)),
    "groq": Provider("groq", "groq", ("GROQ_API_KEY",)),
    "mistral": Provider("mistralai", "mistral", ("MISTRAL_API_KEY",)),
    "cohere": Provider("cohere", "cohere", ("CO_API_KEY",)),
    "bedrock": Provider("boto3", "bedrock"),
}

_EXAMPLE = "anthropic:claude-sonnet-4-5"


def check(model: str | None, env: Mapping[str, str]) -> None:
    """Refuse what could not be run.

    Raises:
        UsageError: there is no model, or no key for it.
        MissingExtra: a library is not installed.
    """
    if not model:
        raise UsageError(f"The engine `model` needs a model: `--model {_EXAMPLE}`, or the setting `agent_model`.")
    lead, separator, name = model.partition(":")
    if model != TRIAL and not (separator and lead and name):
        raise UsageError(f"{model!r} names no model: write it as provider:name, such as {_EXAMPLE}.")
    if lead == OWN and not all(name.partition(":")):
        raise UsageError(f"{model!r} names no model of yours: write it as {OWN}:module:attribute.")
    if not _is_there("pydantic_ai") or not _is_there("mcp"):
        raise MissingExtra("The engine `model`", "agents", "mcp" if _is_there("pydantic_ai") else "pydantic_ai")
    if (provider := KNOWN.get(lead)) is not None:
        _check_provider(lead, provider, env)


def _check_provider(name: str, provider: Provider, env: Mapping[str, str]) -> None:
    if not _is_there(provider.module):
        from taskyard.installation import command_for

        wanted = command_for(f"pydantic-ai-slim[{provider.extra}]")
        raise UsageError(f"Models of {name} need a library that is not installed: `{wanted}`.")
    if provider.keys and not any(env.get(key) for key in provider.keys):
        raise UsageError(f"Models of {name} need {' or '.join(provider.keys)} in the environment.")


def _is_there(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # not even the package around it
