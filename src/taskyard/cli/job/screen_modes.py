r"""
What a program on a terminal of its own switched on at ours, so that it can be switched off when we leave it.

A full-screen program that is moved to the background, or killed, does not tidy up after itself: the other screen, a
hidden cursor, reports of the mouse would stay. Modes are those of `ESC [ ? NUMBER h` (on) and `l` (off).
"""

from __future__ import annotations

import re

_MODES = re.compile(rb"\x1b\[\?([0-9;]{1,40})([hl])")

#: What is usually off: cursor keys of applications, the mouse, focus, other screens, pasted text in brackets.
_USUALLY_OFF = frozenset((1, 9, 47, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004, 2026))
_CURSOR = 25  #: shown if on, as it usually is

#: A sequence that is cut in two between pieces is no longer than this.
_LONGEST = 48


class ScreenModes:
    """The modes that are not as they usually are."""

    def __init__(self) -> None:
        self._unusual: dict[int, None] = {}  # in the order they came
        self._rest = b""

    def printed(self, data: bytes) -> None:
        """Note what the program sent."""
        if b"\x1b" not in data and not self._rest:
            return
        data = self._rest + data
        for found in _MODES.finditer(data):
            for number in filter(None, found[1].split(b";")):
                self._set(int(number), is_on=found[2] == b"h")
        at = data.rfind(b"\x1b", max(len(data) - _LONGEST, 0))
        self._rest = data[at:] if at >= 0 and not _MODES.match(data, at) else b""

    def _set(self, mode: int, *, is_on: bool) -> None:
        if mode == _CURSOR or mode in _USUALLY_OFF:
            if is_on == (mode == _CURSOR):
                self._unusual.pop(mode, None)
            else:
                self._unusual[mode] = None

    def reset(self) -> str:
        """What puts everything back: colours too, which every program may have left on."""
        undone = [f"\x1b[?{mode}{'h' if mode == _CURSOR else 'l'}" for mode in reversed(self._unusual)]
        self._unusual.clear()
        return "".join(undone) + "\x1b[0m"
