"""Engine `model`: our own agent loop on any model, by pydantic-ai.

It has Bash, Read, Edit, Write and the tools of the shared list (`model_loop`, imported only when an agent
runs). A model is `provider:name`, such as `anthropic:claude-sonnet-4-5` or `openai:gpt-5`; or
`python:module:attribute`, a pydantic-ai model of your own. Its key comes from the environment. Libraries and
keys of the provider are checked before anything is imported.
"""

from __future__ import annotations

from taskyard.core.installation import GcPause
from taskyard.core.values import NamedTuple
from taskyard.errors import MissingExtra, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.agents.engines.engine import Brief, Recorder, TurnResult
    from taskyard.agents.engines.model_loop import ConversationState


#: Prefix of a user's own model: `python:module:attribute`.
CUSTOM = "python"

#: A model that answers by itself, for trials.
TRIAL = "test"


class Provider(NamedTuple):
    """What a provider requires."""

    module: str  #: its library
    extra: str  #: the extra of pydantic-ai-slim that installs it
    keys: tuple[str, ...] = ()  #: variables, one of which must be set


_OPENAI = Provider("openai", "openai", ("OPENAI_API_KEY", "OPENAI_BASE_URL"))
_GOOGLE = Provider("google.genai", "google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"))

#: The most used providers; another one reports what it requires when it is used.
PROVIDERS: Mapping[str, Provider] = {
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


def check_model(model: str | None, env: Mapping[str, str]) -> None:
    """Refuse a model that could not be run.

    Raises:
        UsageError: there is no model, or no key for it.
        MissingExtra: a library is not installed.
    """
    if not model:
        raise UsageError(f"The engine `model` needs a model: `--model {_EXAMPLE}`, or the setting `agent_model`.")
    lead, separator, name = model.partition(":")
    if model != TRIAL and not (separator and lead and name):
        raise UsageError(f"{model!r} names no model: write it as provider:name, such as {_EXAMPLE}.")
    if lead == CUSTOM and not all(name.partition(":")):
        raise UsageError(f"{model!r} names no model of yours: write it as {CUSTOM}:module:attribute.")
    if not _is_installed("pydantic_ai") or not _is_installed("mcp"):
        raise MissingExtra("The engine `model`", "agents", "mcp" if _is_installed("pydantic_ai") else "pydantic_ai")
    if (provider := PROVIDERS.get(lead)) is not None:
        _check_provider(lead, provider, env)


def _check_provider(name: str, provider: Provider, env: Mapping[str, str]) -> None:
    if not _is_installed(provider.module):
        from taskyard.core.installation import install_command

        wanted = install_command(f"pydantic-ai-slim[{provider.extra}]")
        raise UsageError(f"Models of {name} need a library that is not installed: `{wanted}`.")
    if provider.keys and not any(env.get(key) for key in provider.keys):
        raise UsageError(f"Models of {name} need {' or '.join(provider.keys)} in the environment.")


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False  # the parent package is missing


class Model:
    """A model with tools."""

    def __init__(self) -> None:
        self._memory: ConversationState | None = None

    def check(self, brief: Brief) -> None:
        """Refuse a brief without a model, key or library."""
        check_model(brief.model, brief.env)

    async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
        """Run the model until it has its answer. Called again, it continues the same conversation."""
        with GcPause():
            from taskyard.agents.engines.model_loop import ConversationState, run

        self._memory = self._memory or ConversationState()
        return await run(brief, watcher, self._memory)
