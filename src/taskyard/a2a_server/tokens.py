"""
Who may ask: a caller is a name, and a secret in a file of that name, for its owner's eyes alone.

    $TASKYARD_HOME/a2a-tokens/<caller>

Each caller sees its own tasks and no other's. A token that is made anew or taken away is void with the next request.
"""

from __future__ import annotations

import os

from taskyard import names
from taskyard.disk import files
from taskyard.errors import BadName
from taskyard.serving.token import Token, kept_in

#: Who has the token of a server that nobody named callers for.
USUAL = "guest"


def folder(home: str) -> str:
    """Where they lie."""
    return f"{home}/a2a-tokens"


def token_of(home: str, caller: str = USUAL, *, anew: bool = False) -> Token:
    """The token of a caller; made if there is none, and `anew` also if there is.

    Raises:
        BadName: nobody can be called so.
        StorageError: others can read it, or it cannot be made.
    """
    files.make_private_folder(home)
    files.make_private_folder(folder(home))
    return kept_in(_path(home, caller), anew=anew)


def remove(home: str, caller: str) -> bool:
    """Let a caller ask no more; False if it could not."""
    path = _path(home, caller)
    is_there = os.path.lexists(path)
    files.remove(path)
    return is_there


def callers(home: str) -> list[str]:
    """Everyone who may ask, by name."""
    try:
        return sorted(name for name in os.listdir(folder(home)) if names.is_plain(name))
    except FileNotFoundError:
        return []


class Callers:
    """Everyone who may ask, as their files say now."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._seen: tuple[int, ...] = ()
        self._tokens: dict[str, Token] = {}

    def known(self) -> dict[str, Token]:
        """The token of each; read again only if a file came, went or was replaced.

        Raises:
            StorageError: others can read one.
        """
        now = self._looks()
        if now != self._seen:
            self._tokens = {name: kept_in(_path(self._home, name)) for name in callers(self._home)}
            self._seen = now
        return self._tokens

    def _looks(self) -> tuple[int, ...]:
        """What changes whenever one of them does: each is put in place by a rename."""
        try:
            found = os.stat(folder(self._home))
        except FileNotFoundError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _path(home: str, caller: str) -> str:
    names.check_name("a caller", caller)
    if not names.is_plain(caller):
        raise BadName("a caller", caller, "it may have letters, digits, _ and - alone")
    return f"{folder(home)}/{caller}"
