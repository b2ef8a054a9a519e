"""What is wanted of a client, and what that means for one of its files."""

from __future__ import annotations

from taskyard.clients.json_config import JsonWish
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.clients.starting import Start


class Wanted(NamedTuple):
    """What a person asked for."""

    start: Start
    scope: str = "user"  #: "user": in all projects of the user; "project": in this one, with everyone who has it
    root: str = ""  #: the project
    list: str | None = None  #: the list that the client's own task tools are to share
    hooks: bool = True
    allow: bool = False  #: its tools may be called without asking


class Target(NamedTuple):
    """One file of a client."""

    path: str
    wish: JsonWish | Mapping[str, object]  #: for JSON, or the server's table for TOML
    within: str | None = None  #: a folder it may not lead out of
    locked: bool = False  #: its program writes it under a lock folder
