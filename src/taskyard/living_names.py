"""Names and ids for the living: no two of them share a name."""

from __future__ import annotations

import os

from taskyard.names import LONGEST_NAME, check_name, folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def wanted_name(agent: str | None) -> str:
    """The name to ask for: `agent`, else `$TASKYARD_AGENT`, else "me".

    Raises:
        BadName: it cannot be a name.
    """
    return check_name("an agent", agent if agent is not None else os.environ.get("TASKYARD_AGENT") or "me")


def free_name(agent: str, taken: Iterable[str]) -> str:
    """`agent`, or "agent-2", "agent-3", …; names that share a folder count as one, as mail goes by folder."""
    folders = {folder_name("an agent", name) for name in taken if name}
    name, count = agent, 1
    while folder_name("an agent", name) in folders:
        count += 1
        suffix = f"-{count}"
        name = agent[: LONGEST_NAME - len(suffix)] + suffix
    return name


def new_id() -> str:
    """An id for an instance."""
    return "".join(_ALPHABET[byte % 36] for byte in os.urandom(12))
