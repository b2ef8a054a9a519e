"""
What a job printed, shown: as text that is safe on a terminal, as it is, or as answers in JSON.

Words about the output go to stderr.
"""

from __future__ import annotations

import sys

from taskyard.cli.output import print_json, style
from taskyard.runtime.output_text import TerminalText, for_terminal, whole_characters
from taskyard.view.job_records import job_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from taskyard.cli.command import Args
    from taskyard.runtime.model import Job
    from taskyard.runtime.output import Part

#: Of one answer in JSON, which is made in memory; `next_offset` leads on.
MOST_JSON = 1024 * 1024

#: A line that is longer is looked at in pieces.
_LONGEST_LINE = 1024 * 1024


class _Held:
    """Bytes that must not be cut where they were: a line for a pattern, a character for JSON."""

    def __init__(self, whole: Callable[[bytes], int]) -> None:
        self._whole = whole
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """What is whole of it, with what was held back before."""
        text = self.rest + data
        at = self._whole(text) or (len(text) if len(text) >= _LONGEST_LINE else 0)
        self.rest = text[at:]
        return text[:at]

    def flush(self) -> bytes:
        """What is still held back."""
        rest, self.rest = self.rest, b""
        return rest


def _whole_lines(data: bytes) -> int:
    return data.rfind(b"\n") + 1


def _matching(pattern: re.Pattern[str], data: bytes) -> list[bytes]:
    """The lines in which people would see the pattern."""
    return [line for line in data.splitlines(keepends=True) if pattern.search(for_terminal(line).rstrip("\n"))]


class Printed:
    """Parts as text, or as they are."""

    def __init__(self, args: Args, pattern: re.Pattern[str] | None) -> None:
        self._raw = args.raw
        self._quiet = args.quiet
        self._style = style(args, sys.stderr)
        self._pattern = pattern
        self._held = _Held(_whole_lines)
        self._text = TerminalText(colours=style(args).colour)

    def show(self, part: Part) -> None:
        """Print what is new."""
        if part.restarted:
            note("the job truncated its output: from its new beginning")
        if part.omitted:
            note(f"{part.omitted:,} bytes were left out here: the output was larger than its cap")
        self._print(part.text if self._pattern is None else self._held.feed(part.text))

    def finish(self) -> None:
        """Print what was held back."""
        self._print(self._held.flush())
        if not self._raw:
            _write(self._text.finish())

    def tell_end(self, job: Job) -> None:
        """Say how the job ended that was followed to its end."""
        from taskyard.view.job_text import ended_line

        if not self._quiet:
            sys.stdout.flush()
            sys.stderr.write(ended_line(job, self._style) + "\n")

    def _print(self, data: bytes) -> None:
        if self._pattern is not None:
            data = b"".join(_matching(self._pattern, data))
        if self._raw:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        else:
            _write(self._text.feed(data))


class Json:
    """Parts as answers, each with where it begins and where to go on."""

    def __init__(self, args: Args, pattern: re.Pattern[str] | None, *, is_over: bool, ended: Callable[[], Job]) -> None:
        """`ended` says how a job ended that is over."""
        self._id = args.job
        self._ended = ended
        self._is_over = is_over
        self._raw = args.raw
        self._follows = args.follow
        self._pattern = pattern
        self._held = _Held(whole_characters if pattern is None else _whole_lines)
        self._next = 0

    def show(self, part: Part) -> None:
        """Answer with what is new, up to the last whole character; with a pattern, to the last whole line."""
        if part.restarted or part.omitted:
            self.finish()  # what was held back goes on nowhere
        begin = part.offset - len(self._held.rest)
        data = self._held.feed(part.text)
        if not self._follows and (not data or (self._is_over and len(part.text) < MOST_JSON)):
            data += self._held.flush()  # nothing will complete it, or nothing would ever be told
        self._next = begin + len(data)
        is_last = self._is_over and not self._follows and len(part.text) < MOST_JSON
        ended = self._ended() if is_last else None
        self._answer(data, begin, omitted=part.omitted, restarted=part.restarted, ended=ended)

    def finish(self) -> None:
        """Answer with what was held back, if nothing more will come."""
        if self._follows and (data := self._held.flush()):
            self._answer(data, self._next)
            self._next += len(data)

    def tell_end(self, job: Job) -> None:
        """A last answer, without any text: how the job ended."""
        self._answer(b"", self._next, ended=job)

    def _answer(
        self, data: bytes, begin: int, *, omitted: int = 0, restarted: bool = False, ended: Job | None = None
    ) -> None:
        kept = data if self._pattern is None else b"".join(_matching(self._pattern, data))
        print_json(
            {
                "data": {
                    "id": self._id,
                    "offset": begin,
                    "next_offset": begin + len(data),
                    "omitted": omitted,
                    "restarted": restarted,
                    "text": kept.decode("utf-8", "replace") if self._raw else for_terminal(kept),
                    "ended": None if ended is None else job_json(ended),
                }
            }
        )


def _write(text: str) -> None:
    """Text on stdout, whatever its encoding."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def note(text: str) -> None:
    """Say something about the output, where it belongs."""
    sys.stdout.flush()  # so that it stands where it belongs
    sys.stderr.write(f"[{text}]\n")
