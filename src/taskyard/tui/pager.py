"""An output in the person's own pager: what `taskyard logs` would print, so that nothing in it acts on the terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

from textual.app import SuspendNotSupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from textual.app import App


def read_in_pager(app: App[str], job_id: str) -> str:
    """Give the terminal to the pager until it ends; what is wrong, if something is."""
    words = shlex.split(os.environ.get("PAGER") or "less")
    env = {**os.environ, "FORCE_COLOR": "1", "LESS": os.environ.get("LESS", "-R")}
    try:
        with app.suspend():
            return _piped([sys.executable, "-m", "taskyard", "logs", job_id], words, env)
    except SuspendNotSupported:
        return "This terminal cannot be given to another program."


def _piped(from_: list[str], into: list[str], env: dict[str, str]) -> str:
    logs = subprocess.Popen(from_, stdout=subprocess.PIPE, env=env, stdin=subprocess.DEVNULL)
    try:
        subprocess.run(into, stdin=logs.stdout, env=env, check=False)
    except OSError as error:
        return f"{into[0]} cannot be started ({error.strerror}). Set PAGER to a program that can."
    finally:
        if logs.stdout is not None:
            logs.stdout.close()
        logs.terminate()
        logs.wait()
    return ""
