"""Read a job's output in windows that fit a screen: its tail, what came before, what came since.

Offsets count bytes from the first one ever printed, and stay valid while the oldest bytes are dropped. Only what is
asked for is read, whatever the size; a search reads the file in steps.
"""

from __future__ import annotations

from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple
from taskyard.errors import StorageError
from taskyard.jobs import query
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.output import CHUNK, Output, TerminalText, for_terminal, whole_utf8_size
from taskyard.ui.ansi import PLAIN, Run, parse_ansi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.jobs.output import OutputChunk


#: Most lines of one window: more than any screen has, and few enough to draw.
MOST_LINES = 5_000

#: Most bytes of one window; of longer ones the last are shown.
MOST_BYTES = 1_000_000

#: Bytes that a search reads in one step, and the longest search text, in bytes.
_STEP = 1_000_000
LONGEST_NEEDLE = 1_000


#: An unterminated line longer than this (bytes) is not read again with what follows; the rest becomes another line.
LONGEST_OPEN = 64_000


class OutputLine(NamedTuple):
    """A line, and the offset of its first byte."""

    offset: int
    runs: tuple[Run, ...]


class OutputWindow(NamedTuple):
    """Consecutive lines of an output."""

    lines: tuple[OutputLine, ...] = ()
    start: int = 0  #: the offset of its first byte
    end: int = 0  #: offset to continue from: an unterminated last line is read again, with what was added
    omitted: int = 0  #: bytes before `start` that were dropped
    is_open: bool = False  #: its last line is unterminated
    restarted: bool = False  #: the command restarted its output: discard what was shown
    size: int = 0  #: bytes printed in all


class OutputReader:
    """Windows into the output of one job."""

    def __init__(self, home: str, job_id: str) -> None:
        """Set up without reading anything.

        Raises:
            BadJobId: The id is not a valid job id.
        """
        self._output = Output(JobPaths(home, job_id))
        self._home, self._id = home, job_id

    def is_over(self) -> bool:
        """Return whether the job has ended; check before the last read."""
        return query.read_job(self._home, self._id).is_final

    def tail(self, lines: int = MOST_LINES) -> OutputWindow:
        """Return the last lines."""
        part = self._output.tail(min(lines, MOST_LINES), most=MOST_BYTES)
        return _build_window(part.text, part.offset, part.omitted, size=part.next_offset)

    def before(self, offset: int, lines: int = MOST_LINES) -> OutputWindow:
        """Return the lines that end where a window starts."""
        gone, there = self._output.gap()
        if gone < offset <= there:
            head = self._before(gone, lines)
            note = Run(f"[{there - gone:,} bytes were left out here: the output was larger than its cap]", PLAIN)
            return head._replace(lines=(*head.lines, OutputLine(gone, (note,)))) if gone else head
        window = self._before(offset, lines, floor=there)
        return window._replace(omitted=there - gone) if window.start == there else window

    def _before(self, offset: int, lines: int, *, floor: int = 0) -> OutputWindow:
        begin = max(offset - MOST_BYTES, floor)
        part = self._read(begin, offset - begin)
        text = part.text[: max(offset - part.offset, 0)]
        kept = _last_lines(text, min(lines, MOST_LINES), is_whole=part.offset <= floor or part.omitted > 0)
        omitted = part.omitted if len(kept) == len(text) else 0
        return _build_window(kept, part.offset + len(text) - len(kept), omitted, size=self._output.end())

    def after(self, offset: int, most: int = MOST_BYTES, *, lines: int = MOST_LINES) -> OutputWindow:
        """Return output from an offset on, at most `most` bytes and `lines` lines; continue with its `end`."""
        part = self._read(offset, most)
        text = _first_lines(part.text, min(lines, MOST_LINES))
        return _build_window(text, part.offset, part.omitted, restarted=part.restarted, size=self._output.end())

    def find(
        self, text: str, start: int, *, backwards: bool = False, give_up: Callable[[], bool] | None = None
    ) -> int | None:
        """Return the offset of the line that contains `text`, searching from or before `start`; None if there is none.

        Case-insensitive. `give_up` is called between two steps.
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

    def _read(self, offset: int, most: int) -> OutputChunk:
        """Read `most` bytes, in several reads if needed."""
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


def _build_window(text: bytes, start: int, omitted: int, *, size: int, restarted: bool = False) -> OutputWindow:
    text = text[: whole_utf8_size(text)]
    lines: list[OutputLine] = []
    safe, pen, at = TerminalText(colours=True), PLAIN, start
    for line in _split_lines(text):
        shown, pen = parse_ansi(safe.feed(_after_carriage_return(line)), pen)
        lines.append(OutputLine(at, tuple(shown[-1]) if shown else ()))
        at += len(line)
    is_open = bool(text) and not text.endswith(b"\n")
    end = lines[-1].offset if is_open and at - lines[-1].offset <= LONGEST_OPEN else at
    return OutputWindow(tuple(lines), start, end, omitted, is_open, restarted, size)


def _split_lines(text: bytes) -> list[bytes]:
    """Split into lines with their line breaks; a lone carriage return does not break a line."""
    parts = text.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _after_carriage_return(line: bytes) -> bytes:
    """Return what remains visible of a line that was overwritten."""
    body = line.removesuffix(b"\n").rstrip(b"\r")
    return body[body.rfind(b"\r") + 1 :] + line[len(line.rstrip(b"\n")) :]


def _first_lines(text: bytes, lines: int) -> bytes:
    """Return the first lines of a text."""
    parts = text.split(b"\n", lines)
    return text[: len(text) - len(parts[-1])] if len(parts) > lines else text


def _last_lines(text: bytes, lines: int, *, is_whole: bool) -> bytes:
    """Return the last lines of a text; the part before its first break is dropped as incomplete unless `is_whole`."""
    kept = _split_lines(text)
    if not is_whole and len(kept) > 1:
        kept = kept[1:]
    return b"".join(kept[-lines:])


def read_last_line(home: str, job_id: str) -> str:
    """Return a job's last output line, control characters escaped; if unreadable, the reason in parentheses."""
    try:
        return escape_control(for_terminal(Output(JobPaths(home, job_id)).last_line())).strip()
    except StorageError as error:
        return escape_control(f"({error.why})")
