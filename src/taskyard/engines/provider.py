"""
Whose quota an agent uses: agents on one account share a rate limit, and wait for it together. Pure.

An account is a provider (`anthropic`, `openai`, `google`, else the program's name) and its credentials: the API key and
base URL in the agent's environment, or, without a key, the folder of the program's login.
"""

from __future__ import annotations

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_LONGEST = 40

#: Who serves a program, by its name; a program that can use any provider goes by its own name.
_SERVED_BY = {
    "claude": "anthropic", "claude-agent-acp": "anthropic", "claude-code-acp": "anthropic",
    "codex": "openai", "codex-acp": "openai", "gemini": "google",
    "google-gla": "google", "google-vertex": "google", "openai-chat": "openai", "openai-responses": "openai",
}  # fmt: skip

#: What says which account it is: keys with the address they are for, and where a login is kept.
_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY", "CODEX_API_KEY"),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
_PLACES = {
    "anthropic": ("ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR"),
    "openai": ("OPENAI_BASE_URL", "CODEX_HOME"),
    "google": ("GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GEMINI_CLI_HOME"),
}

#: Programs that run another one: the name of the script says more.
_INTERPRETERS = ("python", "node", "bash", "sh", "env", "ruby", "deno", "bun", "npx", "uvx")


class Account(NamedTuple):
    """An account with a provider."""

    provider: str  #: as people know it
    key: str  #: as a name that can be part of a file's: the provider, and a digest of the credentials


def account_of(engine: str, command: Sequence[str], model: str | None, env: Mapping[str, str]) -> Account:
    """The account that an agent uses, by its engine, program, model and environment."""
    served_by = _program(command) if command else (model or "").partition(":")[0] or _usual(engine)
    provider = _SERVED_BY.get(served_by, served_by)
    names = (provider,) if provider in _KEYS else tuple(_KEYS)
    keys = [f"{name}={env[name]}" for each in names for name in _KEYS[each] if env.get(name)]
    places = [f"{name}={env[name]}" for each in names for name in _PLACES[each] if env.get(name)]
    home = [] if keys else [f"HOME={env.get('HOME', '')}"]
    import hashlib

    digest = hashlib.sha256("\n".join([provider, *keys, *places, *home]).encode("utf-8", "surrogateescape")).hexdigest()
    name = "".join(char if char in _LETTERS else "-" for char in provider)[:_LONGEST]
    return Account(name, f"{name}-{digest[:12]}")


def _usual(engine: str) -> str:
    return {"claude-stream": "claude"}.get(engine, engine)


def _program(command: Sequence[str]) -> str:
    names = [word.rsplit("/", 1)[-1] for word in command]
    if names[0].rstrip("0123456789.") in _INTERPRETERS:
        script = next((name for name in names[1:] if not name.startswith("-")), "")
        is_name = script and "-c" not in command and len(script) <= _LONGEST and not any(map(str.isspace, script))
        return script.rsplit(".", 1)[0] if is_name else names[0]
    return names[0]
