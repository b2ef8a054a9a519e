"""
What a job printed, in windows that fit a screen: the end of it, what came before, what came since.

Offsets count bytes from the first one ever printed, and stay true while the oldest are left out. Nothing is read beyond
what is asked for, whatever the size; a search goes through the file in steps.
"""

from __future__ import annotations

from taskyard.runtime import looking
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output import CHUNK, Output
from taskyard.runtime.output_text import TerminalText, whole_characters
from taskyard.typed import NamedTuple
from taskyard.view.ansi import PLAIN, Run, drawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.runtime.output import Part

#: Lines of one window: more than any screen has, and few enough to draw.
MOST_LINES = 5_000

#: Bytes of one window; of longer ones the last are shown.
MOST_BYTES = 1_000_000

#: Bytes a search looks at in one step, and how long what is looked for may be.
_STEP = 1_000_000
LONGEST_NEEDLE = 1_000


#: A line that is longer and has no end yet is not read again with what follows: it goes on as another.
LONGEST_OPEN = 64_000


class Line(NamedTuple):
    """A line, and where it begins."""

    offset: int
    runs: tuple[Run, ...]


class Window(NamedTuple):
    """Some lines of an output."""

    lines: tuple[Line, ...] = ()
    start: int = 0  #: the offset of its first byte
    end: int = 0  #: where to go on: a last line without its end comes again, with what was added to it
    omitted: int = 0  #: bytes before `start` that are no longer there
    is_open: bool = False  #: its last line has no end yet
    restarted: bool = False  #: the command began its output anew: what was shown is no more
    size: int = 0  #: bytes printed in all


class Reader:
    """The output of one job."""

    def __init__(self, home: str, job_id: str) -> None:
        """Nothing is read yet.

        Raises:
            BadJobId: no job can have such an id.
        """
        self._output = Output(JobFolder(home, job_id))
        self._home, self._id = home, job_id

    def is_over(self) -> bool:
        """Whether nothing will be added; ask before the last look."""
        return looking.look(self._home, self._id).is_final

    def tail(self, lines: int = MOST_LINES) -> Window:
        """The last lines."""
        part = self._output.tail(min(lines, MOST_LINES), most=MOST_BYTES)
        return _window(part.text, part.offset, part.omitted, size=part.next_offset)

    def before(self, offset: int, lines: int = MOST_LINES) -> Window:
        """The lines that end where a window starts."""
        gone, there = self._output.gap()
        if gone < offset <= there:
            head = self._before(gone, lines)
            note = Run(f"[{there - gone:,} bytes were left out here: the output was larger than its cap]", PLAIN)
            return head._replace(lines=(*head.lines, Line(gone, (note,)))) if gone else head
        window = self._before(offset, lines, floor=there)
        return window._replace(omitted=there - gone) if window.start == there else window

    def _before(self, offset: int, lines: int, *, floor: int = 0) -> Window:
        begin = max(offset - MOST_BYTES, floor)
        part = self._read(begin, offset - begin)
        text = part.text[: max(offset - part.offset, 0)]
        kept = _last_lines(text, min(lines, MOST_LINES), is_whole=part.offset <= floor or part.omitted > 0)
        omitted = part.omitted if len(kept) == len(text) else 0
        return _window(kept, part.offset + len(text) - len(kept), omitted, size=self._output.end())

    def after(self, offset: int, most: int = MOST_BYTES, *, lines: int = MOST_LINES) -> Window:
        """What came from an offset on, of at most so many bytes and lines; ask again with its `end`."""
        part = self._read(offset, most)
        text = _first_lines(part.text, min(lines, MOST_LINES))
        return _window(text, part.offset, part.omitted, restarted=part.restarted, size=self._output.end())

    def find(
        self, text: str, start: int, *, backwards: bool = False, give_up: Callable[[], bool] | None = None
    ) -> int | None:
        """Where the line begins that has `text` in it, from an offset on or before it; None if there is none.

        Capital letters do not matter. `give_up` is asked between two steps.
        """
        needle = text.encode()[:LONGEST_NEEDLE].lower()
        if not needle:
            return None
        step = self._last_in if backwards else self._first_in
        at, end = start, self._output.end()
        while (at > 0 if backwards else at < end) and not (give_up is not None and give_up()):
            found, at = step(needle, at)
            if found is not None:
                return self._line_start(found)
        return None

    def _first_in(self, needle: bytes, at: int) -> tuple[int | None, int]:
        part = self._read(at, _STEP + len(needle))
        found = part.text.lower().find(needle)
        if found >= 0:
            return part.offset + found, at
        return None, max(part.next_offset - len(needle) + 1, at + 1) if len(part.text) > _STEP else part.next_offset + 1

    def _last_in(self, needle: bytes, at: int) -> tuple[int | None, int]:
        gone, there = self._output.gap()
        if gone < at <= there:
            at = gone
        begin = max(at - _STEP, there if at > there else 0)
        part = self._read(begin, at - begin + len(needle) - 1)
        found = part.text[: max(at - part.offset + len(needle) - 1, 0)].lower().rfind(needle)
        return (part.offset + found if found >= 0 else None), begin

    def _line_start(self, offset: int) -> int:
        there = self._output.gap()[1]
        begin = max(offset - CHUNK, there if offset >= there else 0)
        part = self._read(begin, offset - begin)
        text = part.text[: max(offset - part.offset, 0)]
        return part.offset + text.rfind(b"\n") + 1

    def _read(self, offset: int, most: int) -> Part:
        """As much as was asked for, in several goes if need be."""
        first = part = self._output.read(offset, most)
        text = [part.text]
        left = most - len(part.text)
        while left > 0 and part.text and not part.restarted:
            part = self._output.read(part.next_offset, left)
            if part.omitted or part.restarted:
                break
            text.append(part.text)
            left -= len(part.text)
        whole = b"".join(text)
        return first._replace(text=whole, next_offset=first.offset + len(whole))


def _window(text: bytes, start: int, omitted: int, *, size: int, restarted: bool = False) -> Window:
    text = text[: whole_characters(text)]
    lines: list[Line] = []
    safe, pen, at = TerminalText(colours=True), PLAIN, start
    for line in _lines_of(text):
        shown, pen = drawn(safe.feed(_last_form(line)), pen)
        lines.append(Line(at, tuple(shown[-1]) if shown else ()))
        at += len(line)
    is_open = bool(text) and not text.endswith(b"\n")
    end = lines[-1].offset if is_open and at - lines[-1].offset <= LONGEST_OPEN else at
    return Window(tuple(lines), start, end, omitted, is_open, restarted, size)


def _lines_of(text: bytes) -> list[bytes]:
    """Lines with their breaks; a carriage return alone breaks none."""
    parts = text.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _last_form(line: bytes) -> bytes:
    """What is left to see of a line that was overwritten."""
    body = line.removesuffix(b"\n").rstrip(b"\r")
    return body[body.rfind(b"\r") + 1 :] + line[len(line.rstrip(b"\n")) :]


def _first_lines(text: bytes, lines: int) -> bytes:
    """The first lines of a text."""
    parts = text.split(b"\n", lines)
    return text[: len(text) - len(parts[-1])] if len(parts) > lines else text


def _last_lines(text: bytes, lines: int, *, is_whole: bool) -> bytes:
    """The last lines of a text; what stands before its first break is half a line, unless it is the beginning."""
    kept = _lines_of(text)
    if not is_whole and len(kept) > 1:
        kept = kept[1:]
    return b"".join(kept[-lines:])
