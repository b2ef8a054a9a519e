"""
`taskyard logs JOB`: what a job printed.

To a terminal only what can be read is written: no escape sequence but colours, no control character. `--raw` gives the
bytes as they are, to a pipe or a file. Words about the output go to stderr.
"""

from __future__ import annotations

import os
import sys

from taskyard import config, paths
from taskyard.cli.command import Command
from taskyard.cli.output import is_terminal, print_json, style, warn
from taskyard.cli.values import whole
from taskyard.errors import BadValue, Damaged, UsageError
from taskyard.runtime.finding import find_folder
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.looking import look
from taskyard.runtime.output import CHUNK, Output
from taskyard.runtime.output_text import TerminalText, for_terminal, whole_characters
from taskyard.runtime.waiting import wait
from taskyard.view.job_records import job_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.model import Job
    from taskyard.runtime.output import Part

#: Of one answer in JSON, which is made in memory; `next_offset` leads on.
_MOST_JSON = 1024 * 1024

#: How long somebody may take to close the books of a job whose keeper was killed, in seconds.
_BOOKS = 5.0

#: A line that is longer is looked at in pieces.
_LONGEST_LINE = 1024 * 1024


def _arguments(parser: Parser) -> None:
    parser.add("job", metavar="JOB", help="The job's id.")
    parser.add("--tail", type=whole, metavar="N", help="Only the last N lines.")
    parser.add("--from", dest="offset", type=whole, metavar="OFFSET", help="From this byte on: a `next_offset`.")
    parser.add("-f", "--follow", action="store_true", help="Stay until the job is over, and show what it prints.")
    parser.add("--grep", metavar="RE", help="Only lines in which this regular expression is found.")
    parser.add("--raw", action="store_true", help="The bytes as they are; not to a terminal.")


def _run(args: Args) -> int:
    pattern = _checked(args)
    output = Output(find_folder(paths.home(), args.job))
    is_over = os.path.lexists(output.folder.end)  # asked before anything is read
    wrong = None if is_over else _damage(output)
    if args.as_json:
        shown: _Json | _Printed = _Json(args, pattern, is_over=is_over)
        parts = _parts(args, output) if args.follow else iter([_one_part(args, output)])
    else:
        shown, parts = _Printed(args, pattern), _parts(args, output)
    for part in parts:
        shown.show(part)
        if args.follow:
            sys.stdout.flush()
    shown.finish()
    if not (args.follow or args.as_json or args.quiet) and not output.end():
        _note("it printed nothing" if is_over else "it has printed nothing so far")
    if wrong is not None:
        warn(str(wrong))
    if args.follow:
        shown.tell_end(wait(paths.home(), args.job, _BOOKS))
    return 0


def _damage(output: Output) -> Damaged | None:
    """What is wrong with a job that nobody keeps and that does not say what it is.

    Raises:
        Damaged: the same, where there is no output to show all the same.
    """
    if keeper_of(output.folder) is None:
        try:
            look(output.folder.home, output.folder.id)
        except Damaged as error:
            if not output.end():
                raise
            return error
    return None


def _checked(args: Args) -> re.Pattern[str] | None:
    for name, value in (("--tail", args.tail), ("--from", args.offset)):
        if value is not None and value < 0:
            raise BadValue(name, value, "a number from 0")
    if args.tail is not None and args.offset is not None:
        raise UsageError("Either --tail N or --from OFFSET.")
    if args.raw and not args.as_json and is_terminal(sys.stdout):
        raise UsageError("--raw writes bytes that a terminal may act on: send them to a file or a pipe.")
    if args.grep is None:
        return None
    import re

    try:
        return re.compile(args.grep)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadValue("--grep", args.grep, f"a regular expression ({error})") from None


def _parts(args: Args, output: Output) -> Iterator[Part]:
    """What is there, and what comes."""
    offset = args.offset or 0
    if args.tail is not None:
        yield (part := output.tail(args.tail))
        offset = part.next_offset
    if args.follow:
        from taskyard.runtime.follow_output import follow_output

        yield from follow_output(output, offset, debounce=config.load().debounce)
    elif args.tail is None:
        yield from _until_now(output, offset)


def _until_now(output: Output, offset: int) -> Iterator[Part]:
    """Parts up to where it ends now: one that grows faster than it is read must not keep us for ever."""
    end = output.end()
    while True:
        part = output.read(offset, min(CHUNK, max(end - offset, 1)))
        offset = part.next_offset
        yield part
        if not part.text or offset >= end:
            return


def _one_part(args: Args, output: Output) -> Part:
    if args.tail is not None:
        return output.tail(args.tail)
    return output.read(args.offset or 0, _MOST_JSON)


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


class _Printed:
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
            _note("the job truncated its output: from its new beginning")
        if part.omitted:
            _note(f"{part.omitted:,} bytes were left out here: the output was larger than its cap")
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


class _Json:
    """Parts as answers, each with where it begins and where to go on."""

    def __init__(self, args: Args, pattern: re.Pattern[str] | None, *, is_over: bool) -> None:
        self._id = args.job
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
        if not self._follows and (not data or (self._is_over and len(part.text) < _MOST_JSON)):
            data += self._held.flush()  # nothing will complete it, or nothing would ever be told
        self._next = begin + len(data)
        is_last = self._is_over and not self._follows and len(part.text) < _MOST_JSON
        ended = look(paths.home(), self._id) if is_last else None
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


def _note(text: str) -> None:
    sys.stdout.flush()  # so that it stands where it belongs
    sys.stderr.write(f"[{text}]\n")


LOGS = Command(
    _run,
    _arguments,
    "Print what a background job printed so far, or with --follow until it is over. Whoever started it, and\n"
    "also after its end. What a terminal could act on is taken out, colours stay; --raw leaves everything in.\n"
    "With --json one answer of at most 1 MB, whose `next_offset` is what --from takes; with --follow one a line,\n"
    "and a last one that says how the job `ended`.",
    examples=(
        "taskyard logs b3k9x0q2m --tail 20 -f",
        "taskyard logs b3k9x0q2m --grep 'error|warning'",
        "taskyard logs b3k9x0q2m --from 4096 --json",
    ),
    exits=("4  no such job, or gc took its output",),
)
