"""
One line at the bottom of an attached run: how it stands, and which key does what.

It is drawn below what the command printed and erased before anything else is, so that nothing of it stays. Where the
command left the cursor in the middle of a line, it is drawn one line lower, and the cursor goes back; if nobody can say
where the cursor is, nothing is drawn.
"""

from __future__ import annotations

import os
import sys

from taskyard.cli.output import is_terminal
from taskyard.view.glyphs import painted
from taskyard.view.text import cut, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.view.glyphs import Style

#: Of a line without an end, so much is remembered: a longer one wraps around anyway.
_LONGEST = 1024

_CLEAR, _UP = "\r\x1b[K", "\x1b[A"


class StatusLine:
    """A line on stderr that comes and goes."""

    def __init__(self, style: Style, *, wanted: bool, env: Mapping[str, str] | None = None) -> None:
        """`wanted`: False, and nothing is ever drawn."""
        env = os.environ if env is None else env
        self.is_on = wanted and is_terminal(sys.stderr)
        self.can_erase = env.get("TERM", "dumb") not in ("", "dumb")
        self._style = style
        self._open_line = b""  # what the command printed since the last line break
        self._erase = ""  # what takes the line away again; empty if none is drawn

    def printed(self, data: bytes) -> None:
        """Note what the command printed: it says where the cursor is."""
        begin = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        self._open_line = (data[begin:] if begin else self._open_line + data)[-_LONGEST:]

    def draw(self, words: Sequence[str]) -> None:
        """Show `words`, in the place of what was shown before."""
        column = self._column()
        if not self.is_on or column is None:
            return
        line = cut((" | " if self._style.ascii else " · ").join(words), _columns() - 1, self._style)
        line = painted(line, "muted", self._style)
        if not self.can_erase:
            sys.stderr.write(("\n" if column else "") + f"{line}\n")
            self._open_line = b""
        else:
            self.erase()
            sys.stderr.write(("\n" if column else "") + line)
            self._erase = _CLEAR + (f"{_UP}\x1b[{column + 1}G" if column else "")
        sys.stderr.flush()

    def erase(self) -> None:
        """Take the line away."""
        if self._erase:
            sys.stderr.write(self._erase)
            sys.stderr.flush()
            self._erase = ""

    def say(self, text: str) -> None:
        """Words that stay, on lines of their own."""
        self.erase()
        if self.is_on and self._open_line:
            sys.stderr.write("\n")
            self._open_line = b""
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def _column(self) -> int | None:
        """Where the command left the cursor; None if that cannot be known."""
        text = self._open_line.decode("utf-8", "replace")
        if not text:
            return 0
        column = width(text)
        return column if text.isprintable() and column < _columns() else None


def _columns() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80
