"""What a program shows on a terminal that a test holds the other end of."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from support.wait import until


def shown(terminal: int, wanted: bytes) -> bytes:
    """Everything that comes up to `wanted`, and with it."""
    seen = bytearray()

    def arrived() -> bool:
        seen.extend(os.read(terminal, 65536))
        return wanted in seen

    until(arrived, what=f"{wanted!r} on the screen")
    return bytes(seen)


def on_a_terminal(*words: str) -> bytes:
    """Everything a command line shows on a terminal of 80 columns, until it ends."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "taskyard", *words], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    seen = bytearray()
    try:
        while data := os.read(ours, 65536):
            seen.extend(data)
    except OSError:
        pass  # how a terminal says that nobody has it open any more
    finally:
        os.close(ours)
        child.kill()
        child.wait()
    return bytes(seen)


def acts(screen: bytes) -> list[str]:
    """What in it would do more to a terminal than be read: all but text, line ends and colours."""
    text = re.sub(r"\x1b\[[0-9;:]*m", "", screen.decode("utf-8"))
    return sorted(
        set(
            re.findall(
                "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]", text
            )
        )
    )
