"""
Sessions that Gemini CLI keeps on disk, and when `session/load` would destroy one.

Gemini CLI names the file of a session by the minute of its start and its id. `session/load` begins a new recording of
the same id before it reads the old one: in the same minute both have one name, and the new recording empties the old
(seen with version 0.61.0). In a later minute the names differ, and the session is found.
"""

from __future__ import annotations

import glob
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Characters of an id in the name of its file.
_SHORT_ID = 8

_MINUTE = 60.0

#: Seconds into the next minute: the clocks of two processes are read one after the other.
_MARGIN = 0.1


def is_known(session: str, env: Mapping[str, str]) -> bool:
    """Whether Gemini CLI keeps a session of that id."""
    return bool(_files(session, env))


def unsafe_for(session: str, env: Mapping[str, str], *, now: float) -> float:
    """Seconds until the session can be loaded; 0 if it can be now, or is none of Gemini CLI's."""
    import time

    first = min(_files(session, env), default="")
    this_minute = time.strftime("session-%Y-%m-%dT%H-%M-", time.gmtime(now))
    return _MINUTE - now % _MINUTE + _MARGIN if first.startswith(this_minute) else 0.0


def _files(session: str, env: Mapping[str, str]) -> list[str]:
    """The names of the files of a session, which begin with the time."""
    home = env.get("GEMINI_CLI_HOME") or env.get("HOME", "")
    chats = os.path.join(glob.escape(home), ".gemini", "tmp", "*", "chats")
    pattern = f"session-*-{glob.escape(session[:_SHORT_ID])}.jsonl"
    return [os.path.basename(path) for path in glob.glob(os.path.join(chats, pattern))] if session else []
