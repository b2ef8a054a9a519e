"""A program whose main thread has exited while another thread works on: `/proc` shows it as a zombie."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_PROGRAM = """
import ctypes, os, signal, sys, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[2] == "stubborn" else signal.SIG_DFL)
def work():
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    while True:
        os.write(fd, b"x")
        time.sleep(0.005)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def headless(written: Path, *, stubborn: bool = False) -> str:
    """The shell command that runs it; it writes to `written` until it is killed. A stubborn one ignores SIGTERM."""
    words = [sys.executable, "-S", "-c", _PROGRAM, str(written), "stubborn" if stubborn else ""]
    return shlex.join(words)


def size(written: Path) -> int:
    """How much it has written."""
    return written.stat().st_size if written.exists() else 0
