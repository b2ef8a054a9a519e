"""The secret that every request to the MCP server over HTTP must bring, and where it is from."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from taskyard.disk import files
from taskyard.serving.token import Token, checked, kept_in

VARIABLE = "TASKYARD_MCP_TOKEN"


def find(home: str, file: str | None = None, env: MutableMapping[str, str] | None = None) -> Token:
    """The token: of `file`, else of the environment, else of `$TASKYARD_HOME`; a file that is not there is made.

    It is taken out of the environment, so that no command that is run for a client has it.

    Raises:
        BadText: it is too short, or cannot stand in a header.
        StorageError: others can read its file, or it cannot be made.
    """
    given = take(env)
    if file is not None:
        return kept_in(os.path.realpath(file))
    if given is not None:
        return Token(checked(given.strip(), VARIABLE), None)
    files.make_private_folder(home)
    return kept_in(f"{home}/mcp-token")


def take(env: MutableMapping[str, str] | None = None) -> str | None:
    """The secret of the environment, which has it no longer: also a server without HTTP may be started with it."""
    return (os.environ if env is None else env).pop(VARIABLE, None)
