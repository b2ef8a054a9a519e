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
    Known("claude", "claude-stream", ("claude",), "Claude Code"),
    Known("gemini", "command", ("gemini", "-p", "{prompt}"), "Gemini CLI"),
    Known("codex", "command", ("codex", "exec", "{prompt}"), "Codex CLI"),
    Known("opencode", "command", ("opencode", "run", "{prompt}"), "opencode"),
    Known("aider", "command", ("aider", "--yes-always", "--message", "{prompt}"), "Aider"),
    Known("goose", "command", ("goose", "run", "-t", "{prompt}"), "goose"),
)


class Found(NamedTuple):
    """A name that `--engine` takes here."""

    name: str
    engine: str
    about: str
    path: str | None  #: of the program, where it is one
    is_ready: bool


def engines_here(*, path: str | None = None) -> list[Found]:
    """Every engine, and every agent we know, with whether it can be used; `path` as $PATH."""
    import shutil

    from taskyard import engines

    ours = [Found(name, name, _ABOUT.get(name, "an engine of a plug-in"), None, True) for name in engines.known()]
    theirs = [
        Found(one.name, one.engine, one.about, where := shutil.which(one.command[0], path=path), where is not None)
        for one in KNOWN
    ]
    return [*ours, *theirs]


def resolved(name: str) -> tuple[str, tuple[str, ...]]:
    """The engine and the program that a name stands for; an engine's own name stands for itself."""
    for one in KNOWN:
        if one.name == name:
            return one.engine, one.command
    return name, ()


_ABOUT = {
    "command": "any program: the prompt in, its answer out (--command)",
    "claude-stream": "programs that print their conversation as Claude Code does (--command, else claude)",
}
