"""Agents that people have installed, by the name of their command: which engine drives each, and with what words."""

from __future__ import annotations

from taskyard.typed import NamedTuple


class Known(NamedTuple):
    """An agent that somebody else makes."""

    name: str
    engine: str
    command: tuple[str, ...]
    about: str


KNOWN = (
    Known("claude", "claude", ("claude",), "Claude Code"),
    Known("gemini", "gemini", ("gemini",), "Gemini CLI"),
    Known("codex", "codex", ("codex",), "Codex CLI"),
    Known("opencode", "opencode", ("opencode",), "opencode"),
    Known("aider", "command", ("aider", "--yes-always", "--message={prompt}"), "Aider"),
    Known("goose", "command", ("goose", "run", "-i", "-"), "goose"),
    Known("claude-acp", "acp", ("claude-agent-acp",), "Claude Code, by its adapter"),
    Known("gemini-acp", "acp", ("gemini", "--acp"), "Gemini CLI"),
    Known("codex-acp", "acp", ("codex-acp",), "Codex CLI, by its adapter"),
    Known("copilot-acp", "acp", ("copilot", "--acp"), "GitHub Copilot CLI"),
    Known("cursor-acp", "acp", ("cursor-agent", "acp"), "Cursor"),
    Known("opencode-acp", "acp", ("opencode", "acp", "--print-logs", "--log-level=ERROR"), "opencode"),
    Known("goose-acp", "acp", ("goose", "acp"), "goose"),
    Known("qwen-acp", "acp", ("qwen", "--acp"), "Qwen Code"),
    Known("cline-acp", "acp", ("cline", "--acp"), "Cline"),
    Known("auggie-acp", "acp", ("auggie", "--acp"), "Auggie"),
    Known("vibe-acp", "acp", ("vibe-acp",), "Mistral Vibe"),
)


class Found(NamedTuple):
    """A name that `--engine` takes here."""

    name: str
    engine: str
    about: str
    path: str | None  #: of the program, where it is one
    missing: str = ""  #: what is, in a few words

    @property
    def is_ready(self) -> bool:
        """Whether it can be used."""
        return not self.missing


def engines_here(*, path: str | None = None) -> list[Found]:
    """Every engine, and every agent we know, with whether it can be used; `path` as $PATH."""
    import shutil

    from taskyard import engines

    ours = [
        Found(name, name, _ABOUT.get(name, "an engine of a plug-in"), None, _missing_library(name))
        for name in engines.known()
        if name not in {one.name for one in KNOWN}
    ]
    theirs: list[Found] = []
    for one in KNOWN:
        where = shutil.which(one.command[0], path=path)
        missing = _missing_library(one.engine) if where else f"{one.command[0]} is not installed"
        theirs.append(Found(one.name, one.engine, one.about, where, missing))
    return [*ours, *theirs]


def _missing_library(engine: str) -> str:
    """What an engine of ours needs and does not have."""
    from importlib.util import find_spec

    if all(find_spec(module) is not None for module in _NEEDS.get(engine, ())):
        return ""
    from taskyard.installation import command_for_extra

    return f"needs {command_for_extra('agents')}"


def resolved(name: str) -> tuple[str, tuple[str, ...]]:
    """The engine and the program that a name stands for; an engine's own name stands for itself."""
    for one in KNOWN:
        if one.name == name:
            return one.engine, one.command
    return name, ()


def model_for(engine: str, wanted: str | None, *, usual: str) -> str | None:
    """The model that is used: the wanted one, or, where an engine is nothing without one, the usual."""
    return wanted or (usual or None if engine == "model" else None)


_ABOUT = {
    "command": "any program: the prompt in, its answer out (--command)",
    "claude-stream": "programs that print their conversation as Claude Code does (--command)",
    "acp": "programs that speak the Agent Client Protocol (--command)",
    "model": "any model, with tools of our own (--model provider:name)",
}

#: The libraries of engines that need some: the extra `agents` brings them.
_NEEDS = {"acp": ("acp",), "model": ("pydantic_ai", "mcp")}
