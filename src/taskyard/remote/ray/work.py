"""
Work as Ray is asked to do it: the request that begins a job. Pure.

    [remotes.cluster]
    backend = "ray"
    url = "http://head.example:8265"
    command = "my-agent --json"
    entrypoint_num_cpus = 1                          # what to reserve for it, as Ray calls it
    runtime_env = { working_dir = "s3://…", pip = ["my-agent"] }
"""

from __future__ import annotations

import json
import re

from taskyard.errors import BadValue, RemoteRefused, shown
from taskyard.names import nearest
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.remote.backend import Work
    from taskyard.remote.remotes import Remote

#: The variable that the program finds its prompt in.
PROMPT = "TASKYARD_PROMPT"

#: Bytes of environment and metadata, written as JSON: Ray passes them on in one string, for which Linux has 131,072,
#: and adds some of its own. A job with more never starts, and never ends.
LARGEST = 120_000

#: What a shell can call a variable.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Ray replaces $NAME and ${NAME} in variables, and knows no way to write a dollar sign. So one is passed on as printf
#: writes it, and the shell that runs the command undoes that first; the point keeps line ends at the end.
_DOLLAR = r"\0044"
_UNDO = """{0}="$(printf '%b.' "${0}")"; {0}="${{{0}%.}}"; export {0}; """

_NUMBERS = ("entrypoint_num_cpus", "entrypoint_num_gpus", "entrypoint_memory")
_TABLES = ("entrypoint_resources", "entrypoint_label_selector", "runtime_env")

#: Settings of every place, which are not for Ray.
_OURS = ("poll_seconds",)


def checked_options(remote: Remote) -> dict[str, object]:
    """What every job there is to have, as the person set it up.

    Raises:
        BadValue: Ray has no such thing.
    """
    options = {key: value for key, value in remote.options.items() if key not in _OURS}
    for key, value in options.items():
        setting = f"remotes.{remote.name}.{key}"
        if key not in _NUMBERS + _TABLES:
            near = nearest(key, [*_NUMBERS, *_TABLES]) or [*_NUMBERS, *_TABLES]
            raise BadValue(setting, value, f"no setting of a remote on Ray; there are {', '.join(near)}")
        if key in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            raise BadValue(setting, value, "a number")
        if key in _TABLES and as_object(value) is None:
            raise BadValue(setting, value, "a table")
    for name, value in _variables(remote).items():
        if not isinstance(value, str):
            raise BadValue(f"remotes.{remote.name}.runtime_env.env_vars.{name}", value, "text")
    return options


def request_for(work: Work, remote: Remote) -> dict[str, object]:
    """The body of the request that begins it.

    Raises:
        RemoteRefused: nothing says what to run, or Ray could not pass on what it is given.
        BadValue: as `checked_options`.
    """
    options = checked_options(remote)
    command = work.command or remote.command
    if not command.strip():
        advice = f'Give one, or set it: command = "…" in [remotes.{remote.name}].'
        raise RemoteRefused(remote.name, "nothing says which program does the work", advice)
    ours = {**work.env, PROMPT: work.prompt}
    _check_variables(ours, remote.name)
    protected = {name: value for name, value in ours.items() if "$" in value}
    env = {**_variables(remote), **ours, **{name: _protected(value) for name, value in protected.items()}}
    asked = {
        **options,
        "entrypoint": "".join(_UNDO.format(name) for name in protected) + command,
        "submission_id": work.id,
        "metadata": {str(key): str(value) for key, value in work.metadata.items()},
        "runtime_env": {**(as_object(options.get("runtime_env")) or {}), "env_vars": env},
    }
    length = len(json.dumps({key: asked[key] for key in ("metadata", "runtime_env")}))
    if length > LARGEST:
        why = f"prompt and environment take {length:,} bytes, and Ray passes on {LARGEST:,}"
        raise RemoteRefused(
            remote.name, why, "Put what is long where the program reads it, and say where in the prompt."
        )
    return asked


def _variables(remote: Remote) -> dict[str, object]:
    """What the person set up for every job there; Ray replaces $NAME in it."""
    return as_object((as_object(remote.options.get("runtime_env")) or {}).get("env_vars")) or {}


def _check_variables(env: dict[str, str], remote: str) -> None:
    for name, value in env.items():
        if not _NAME.fullmatch(name):
            raise RemoteRefused(remote, f"{shown(name)} cannot be the name of a variable")
        if not _is_text(value):
            raise RemoteRefused(remote, f"{name} has characters that no variable can hold")


def _is_text(value: str) -> bool:
    try:
        return b"\0" not in value.encode()
    except UnicodeEncodeError:  # half of a pair, which is no character
        return False


def _protected(value: str) -> str:
    return value.replace("\\", "\\\\").replace("$", _DOLLAR)
