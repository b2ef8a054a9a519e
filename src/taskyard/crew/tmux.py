"""
Windows of tmux for members of a team, opened by direct exec.

No key is ever typed, and no shell reads anything: tmux is handed a program and its words. What tmux itself would
interpret (formats in names and folders, a `;` at the end of a word) never comes from outside: names are reduced to
plain letters, and everything else a member must know lies in a private file.
"""

from __future__ import annotations

import os

from taskyard.disk.processes import process_start
from taskyard.errors import StorageError, UsageError
from taskyard.names import folder_name
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: tmux answers within milliseconds; one that does not for so long, in seconds, is stopped.
_PATIENCE = 10.0

#: Characters of a window's name: more do not fit into a status line.
_LONGEST_TITLE = 40

#: What a new window is asked for; nothing of it comes from outside.
_ASKED = "#{pane_id} #{pane_pid} #{session_name}"


class Window(NamedTuple):
    """A window, and the process in it."""

    pane: str  #: as tmux names it: "%5"
    pid: int
    start: int  #: of `pid`; 0 if it was gone at once
    session: str


def program() -> str:
    """Where tmux is.

    Raises:
        UsageError: there is none here.
    """
    import shutil

    found = shutil.which("tmux")
    if found is None:
        raise UsageError("There is no tmux on PATH. Install it, or have members as plain processes: `--in process`.")
    return os.path.abspath(found)


def open_window(team: str, title: str, argv: Sequence[str]) -> Window:
    """A window of its own that runs `argv`: in the session around us, else in one of the team's.

    Raises:
        UsageError: there is no tmux, or it refused; nothing was started.
    """
    tmux = program()
    name = folder_name("an agent", title)[:_LONGEST_TITLE]
    for word in argv:
        if word.endswith(";"):
            raise UsageError(f"tmux cannot be given the word {word!r}: it ends with a semicolon.")
    if os.environ.get("TMUX"):
        around = _asked(tmux, "display-message", "-p", *_here(), "#{session_id}")
        return _window(tmux, "new-window", "-d", "-t", f"{around}:", "-n", name, argv=argv)
    session = f"taskyard-{folder_name('a team', team)}"
    if _works(tmux, "has-session", "-t", f"={session}"):
        return _window(tmux, "new-window", "-d", "-t", f"={session}:", "-n", name, argv=argv)
    return _window(tmux, "new-session", "-d", "-s", session, "-n", name, argv=argv)


def _here() -> tuple[str, ...]:
    pane = os.environ.get("TMUX_PANE", "")
    return ("-t", pane) if pane.startswith("%") and pane[1:].isdigit() else ()


def _window(tmux: str, *words: str, argv: Sequence[str]) -> Window:
    pane, pid, session = _asked(tmux, *words, "-P", "-F", _ASKED, *argv).split(" ", 2)
    _works(tmux, "set-option", "-p", "-t", pane, "remain-on-exit", "off")  # it closes with its program
    return Window(pane, int(pid), process_start(int(pid)), session)


def _asked(tmux: str, *words: str) -> str:
    code, said, error = _run(tmux, *words)
    if code:
        raise UsageError(f"tmux refused ({words[0]}): {error.strip() or f'exit code {code}'}")
    return said.strip()


def _works(tmux: str, *words: str) -> bool:
    return _run(tmux, *words)[0] == 0


def _run(tmux: str, *words: str) -> tuple[int, str, str]:
    import subprocess

    around = os.environ.get("TMUX", "").split(",")[0]
    socket = ("-S", around) if around else ()
    # The server that a first window starts lives longer than us: nothing of our job is its own.
    env = {name: value for name, value in os.environ.items() if not name.startswith("TASKYARD_")}
    try:
        ran = subprocess.run(
            [tmux, *socket, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE,
            env=env,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"tmux did not answer within {_PATIENCE:.0f} s.") from None
    except OSError as error:
        raise StorageError(tmux, error.strerror or str(error)) from error
    return ran.returncode, ran.stdout, ran.stderr
