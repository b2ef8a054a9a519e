"""
The terminal in front of an attached run, and how it is read.

    keys     one at a time, not shown: only the key that moves the job away means something
    lines    as typed and edited by the person, for a job that reads from us; that key ends a line at once
    raw      every key as it is, Ctrl+C too: for a job with a terminal of its own

Whoever takes it gives it back as it was. In the background of a shell it is left alone.
"""

from __future__ import annotations

import os
import sys
import termios

from taskyard.cli.output import is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from taskyard.view.background_key import Key

#: Where `termios` keeps flags for what comes in, what goes out and lines, and single characters.
_IN, _OUT, _LINE, _CHARACTERS = 0, 1, 3, 6

#: What edits a line; one that is the key is not to.
_EDITING = (termios.VKILL, termios.VWERASE, termios.VREPRINT, termios.VLNEXT, termios.VDISCARD)

#: Read at a time: of keys what fits into one message to a keeper, else what fits into a pipe.
_KEYS, _POURED = 512, 65536


class Keyboard:
    """Standard input; as a terminal, taken while it is ours to take."""

    def __init__(self, how: str, key: Key | None) -> None:
        """`how`: keys, lines or raw."""
        self.how = how
        self._key = key
        self._before: list[Any] | None = None
        self._is_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
        self.is_on = False  #: whether it is a terminal, and read our way

    def __enter__(self) -> Keyboard:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def take(self) -> None:
        """Read it our way from now on, if it is a terminal and we are in its foreground."""
        if not self._is_terminal or not _is_foreground():
            self.is_on = False
            return
        try:
            if self._before is None:
                self._before = termios.tcgetattr(0)
            termios.tcsetattr(0, termios.TCSANOW, self._wanted(termios.tcgetattr(0)))
        except termios.error:
            return  # it was closed under us
        self.is_on = True

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is a terminal that somebody else has in hand: we are in the background of a shell."""
        return self._is_terminal and not self.is_on

    def give_back(self) -> None:
        """Leave it as it was found."""
        if not self.is_on or self._before is None:
            return
        self.is_on = False
        try:
            termios.tcsetattr(0, termios.TCSANOW, self._before)
        except termios.error:
            pass  # nothing is left to restore

    def read(self) -> bytes:
        """What was typed; nothing at the end of all input."""
        try:
            return os.read(0, _KEYS if self.how == "raw" else _POURED)
        except OSError:
            return b""  # how a terminal says that it is gone

    def split(self, data: bytes) -> tuple[bytes, bool]:
        """What was typed before the key that moves the job away, and whether that was among it."""
        if self._key is None or not self.is_on:
            return data, False
        before, found, _ = data.partition(self._key.byte)
        return before, bool(found)

    def _wanted(self, now: list[Any]) -> list[Any]:
        if self.how == "raw":
            return _raw(now)
        if self.how == "keys":
            now[_LINE] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
            _set(now, {termios.VMIN: 1, termios.VTIME: 0})
        elif self._key is not None:
            byte = self._key.byte
            _set(now, {at: b"\0" for at in _EDITING if now[_CHARACTERS][at] == byte} | {termios.VEOL: byte})
        return now


def _raw(now: list[Any]) -> list[Any]:
    """Nothing is changed on its way in or out."""
    now[_IN] &= ~(
        termios.BRKINT
        | termios.ICRNL
        | termios.IGNCR
        | termios.INLCR
        | termios.INPCK
        | termios.ISTRIP
        | termios.IXON
        | termios.PARMRK
    )
    now[_OUT] &= ~termios.OPOST
    now[_LINE] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG)
    _set(now, {termios.VMIN: 1, termios.VTIME: 0})
    return now


def _set(now: list[Any], characters: Mapping[int, bytes | int]) -> None:
    now[_CHARACTERS] = [characters.get(at, before) for at, before in enumerate(now[_CHARACTERS])]


def _is_foreground() -> bool:
    """Whether the terminal would answer us: one that is touched from a shell's background stops whoever does."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True  # nobody's terminal but ours: it has no foreground


def window() -> tuple[int, int] | None:
    """Rows and columns of the terminal we write to."""
    try:
        columns, rows = os.get_terminal_size(1)
    except OSError:
        return None
    return (rows, columns) if rows > 0 and columns > 0 else None
