"""
How a client starts us: by which command, and with what in its environment.

The command works without an activated environment. Clients pass hardly a variable on to a server that they start (HOME,
LOGNAME, PATH, SHELL, TERM, USER): whatever else decides where our files are goes into its configuration.
"""

from __future__ import annotations

import os
import sys

from taskyard import paths
from taskyard.errors import BadValue
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "taskyard"

#: True of the process that runs now, not of those to come.
_PASSING = ("TASKYARD_INSTANCE", "TASKYARD_JOB", "TASKYARD_SESSION", "TASKYARD_NOTICE", "TASKYARD_PROJECT_DIR")
_PASSING_LEADS = ("TASKYARD_HOOK_",)

#: Secrets, TASKYARD_MCP_TOKEN and whatever else is called so: a configuration may be shared, shown and copied.
_SECRET_ENDS = ("_TOKEN", "_SECRET", "_PASSWORD")

#: Inside a job or an agent, whose name it is says nothing about the client.
_INSIDE = ("TASKYARD_JOB", "TASKYARD_INSTANCE")

#: Folders: a server may run elsewhere, and must find the same ones.
_FOLDERS = ("TASKYARD_HOME", "TASKYARD_TASKS_DIR", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME")


class Start(NamedTuple):
    """How we are started."""

    words: tuple[str, ...]  #: the command, without what it is to do
    env: Mapping[str, str]  #: what the server needs
    agent: str | None = None  #: who acts, if that was said

    @property
    def arguments(self) -> list[str]:
        """What follows the program's name where it serves MCP."""
        return [*self.words[1:], "mcp", *(["--agent", self.agent] if self.agent else [])]

    def server(self) -> dict[str, object]:
        """A stdio server of the Model Context Protocol, as most clients write it."""
        return {"command": self.words[0], "args": self.arguments, "env": dict(self.env)}

    def hook(self, event: str) -> str:
        """The command line of a hook."""
        import shlex

        return shlex.join([*self.words, "hook", event, *(["--by", self.agent] if self.agent else [])])

    @property
    def own_env(self) -> dict[str, str]:
        """The part of the environment that concerns nobody but us."""
        return {name: value for name, value in self.env.items() if name.startswith("TASKYARD_")}


def start(*, list_name: str | None, agent: str | None, env: Mapping[str, str] | None = None) -> Start:
    """How a client is to start us, as things are here and now."""
    env = os.environ if env is None else env
    return Start(command(sys.argv[:1]), passed_on(env, list_name=list_name, agent=agent), agent)


def command(called: Sequence[str]) -> tuple[str, ...]:
    """The absolute command: the program as it was called, else this interpreter with our module.

    -P keeps a folder called taskyard in somebody's project from being taken for us.
    """
    program = called[0] if called else ""
    if os.path.basename(program) == NAME and os.path.isfile(program) and os.access(program, os.X_OK):
        return (os.path.abspath(program),)
    return (os.path.abspath(sys.executable), "-P", "-m", NAME)


def passed_on(env: Mapping[str, str], *, list_name: str | None, agent: str | None) -> dict[str, str]:
    """What must be in the environment of a server so that it finds what we find here."""
    chosen = {name: value for name, value in sorted(env.items()) if value and _lasts(name)}
    if agent or any(env.get(name) for name in _INSIDE):
        chosen.pop("TASKYARD_AGENT", None)  # it is said on the command line, or it is not the client's
    if list_name:
        chosen["TASKYARD_LIST"] = list_name
    if "TASKYARD_STORE" in chosen:
        from taskyard.database.address import without_password

        chosen["TASKYARD_STORE"] = without_password(chosen["TASKYARD_STORE"])
    if paths.env_folder("XDG_STATE_HOME", env):
        chosen["TASKYARD_HOME"] = paths.home(env)
    for name in _FOLDERS:
        if name in chosen:
            if (folder := paths.env_folder(name, chosen)) is not None:
                chosen[name] = folder
            else:
                del chosen[name]
    for name, value in chosen.items():
        _check(name, value)
    return dict(sorted(chosen.items()))


def is_ours(words: Sequence[object], verb: str) -> bool:
    """Whether a command line is one that `Start` makes, wherever we were then."""
    plain = [word for word in words if isinstance(word, str)]
    if len(plain) != len(words) or verb not in plain[1:]:
        return False
    before = plain[: plain.index(verb, 1)]
    return os.path.basename(before[0]) == NAME if len(before) == 1 else before[-2:] == ["-m", NAME]


def _lasts(name: str) -> bool:
    if name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        return True
    if name.endswith(_SECRET_ENDS) or name in _PASSING or name.startswith(_PASSING_LEADS):
        return False
    return name.startswith("TASKYARD_")


def _check(name: str, value: str) -> None:
    """Refuse what would arrive as something else."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadValue(name, value, "text that a configuration file can hold") from None
    if "${" in value:
        raise BadValue(name, value, "a value without ${, which clients replace by variables")
