"""Which list is current, and why: the words for `taskyard.paths.list_name`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Variables that name a list, the strongest first; the same order as `taskyard.paths.list_name`.
VARIABLES = ("TASKYARD_LIST", "CLAUDE_CODE_TASK_LIST_ID", "CLAUDE_CODE_TEAM_NAME")


def why(chosen: str | None, env: Mapping[str, str] | None = None) -> str:
    """What decided about the list: an option, a variable, the session or the project."""
    env = os.environ if env is None else env
    if chosen:
        return "--list"
    for name in VARIABLES:
        if env.get(name):
            return name
    return "the session" if env.get("TASKYARD_LIST_SCOPE") == "session" else "the project in this folder"
