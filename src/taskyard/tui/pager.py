"""An output in the person's own pager: what `taskyard logs` would print, so that nothing in it acts on the terminal."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

from textual.app import SuspendNotSupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from textual.app import App


def read_in_pager(app: App[str], job_id: str) -> str:
    """Give the terminal to the pager until it ends; what is wrong, if something is."""
    setting = os.environ.get("PAGER", "")
    try:
        words = shlex.split(setting) or ["less"]
    except ValueError as error:
        return f"PAGER is {setting!r}, which is no command ({error})."
    env = {**os.environ, "FORCE_COLOR": "1", "LESS": os.environ.get("LESS", "-R")}
    try:
        with app.suspend():
            return _piped([sys.executable, "-m", "taskyard", "logs", job_id], words, env)
    except SuspendNotSupported:
        return "This terminal cannot be given to another program."


def _go_on(number: int, frame: object) -> None:
    """Whoever has the terminal is meant."""


def _piped(from_: list[str], into: list[str], env: dict[str, str]) -> str:
    logs = subprocess.Popen(from_, stdout=subprocess.PIPE, env=env, stdin=subprocess.DEVNULL, start_new_session=True)
    before = signal.signal(signal.SIGINT, _go_on)  # Ctrl+C is for the pager: in less it ends a search
    try:
        subprocess.run(into, stdin=logs.stdout, env=env, check=False)
    except OSError as error:
        return f"{into[0]} cannot be started ({error.strerror}). Set PAGER to a program that can."
    finally:
        signal.signal(signal.SIGINT, before)
        if logs.stdout is not None:
            logs.stdout.close()
        logs.terminate()
        logs.wait()
    return ""
