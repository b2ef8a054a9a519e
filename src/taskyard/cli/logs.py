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
from taskyard.cli.logs_shown import MOST_JSON, Json, Printed, note
from taskyard.cli.output import is_terminal, warn
from taskyard.cli.values import whole
from taskyard.errors import BadValue, Damaged, JobNotFound, UsageError
from taskyard.runtime.continuation import newest
from taskyard.runtime.finding import find_folder
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.looking import look
from taskyard.runtime.output import CHUNK, Output
from taskyard.runtime.waiting import wait
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.relay.far_output import FarOutput
    from taskyard.runtime.model import Job
    from taskyard.runtime.output import Part

#: How long somebody may take to close the books of a job whose keeper was killed, in seconds.
_BOOKS = 5.0


def _arguments(parser: Parser) -> None:
    parser.add("job", metavar="JOB", help="The job's id, the beginning of it, its name, or `last`.")
    parser.add("--tail", type=whole, metavar="N", help="Only the last N lines.")
    parser.add("--from", dest="offset", type=whole, metavar="OFFSET", help="From this byte on: a `next_offset`.")
    parser.add("-f", "--follow", action="store_true", help="Stay until the job is over, and show what it prints.")
    parser.add("--grep", metavar="RE", help="Only lines in which this regular expression is found.")
    parser.add("--raw", action="store_true", help="The bytes as they are; not to a terminal.")


def _run(args: Args) -> int:
    pattern = _checked(args)
    if not is_job_id(args.job):
        from taskyard.cli.job.shared import job_id, jobs_of

        args.job = job_id(jobs_of(args), args.job)
    try:
        source: _Here | FarOutput = _Here(Output(find_folder(paths.home(), args.job)))
    except JobNotFound as missing:
        source = _elsewhere(missing)
    is_over = source.is_over  # asked before anything is read
    wrong = None if is_over else source.damage()
    if args.as_json:
        shown: Json | Printed = Json(args, pattern, is_over=is_over, ended=source.ended)
        parts = _parts(args, source) if args.follow else iter([_one_part(args, source)])
    else:
        shown, parts = Printed(args, pattern), _parts(args, source)
    for part in parts:
        shown.show(part)
        if args.follow:
            sys.stdout.flush()
    shown.finish()
    if not (args.follow or args.as_json or args.quiet) and not source.end():
        note("it printed nothing" if is_over else "it has printed nothing so far")
    if wrong is not None:
        warn(str(wrong))
    if args.follow:
        shown.tell_end(source.ended())
        if not (args.as_json or args.quiet) and (later := newest(paths.home(), args.job)) is not None:
            note(f"{later} continues its work: `taskyard logs -f {later}`")
    return 0


def _elsewhere(missing: JobNotFound) -> FarOutput:
    """The output of a job that is not of this machine.

    Raises:
        JobNotFound: nor of another.
    """
    from taskyard.relay import door

    settings = config.load()
    if not door.is_shared(settings):
        raise missing
    return door.output(paths.home(), settings, missing.job_id)


class _Here(NamedTuple):
    """The output of a job of this machine."""

    output: Output

    @property
    def is_over(self) -> bool:
        return os.path.lexists(self.output.folder.end)

    def damage(self) -> Damaged | None:
        return _damage(self.output)

    def end(self) -> int:
        return self.output.end()

    def read(self, offset: int, most: int) -> Part:
        return self.output.read(offset, most)

    def tail(self, lines: int) -> Part:
        return self.output.tail(lines)

    def follow(self, offset: int, *, debounce: float) -> Iterator[Part]:
        from taskyard.runtime.follow_output import follow_output

        return follow_output(self.output, offset, debounce=debounce)

    def ended(self) -> Job:
        return wait(paths.home(), self.output.folder.id, _BOOKS)


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


def _parts(args: Args, source: _Here | FarOutput) -> Iterator[Part]:
    """What is there, and what comes."""
    offset = args.offset or 0
    if args.tail is not None:
        yield (part := source.tail(args.tail))
        offset = part.next_offset
    if args.follow:
        yield from source.follow(offset, debounce=config.load().debounce)
    elif args.tail is None:
        yield from _until_now(source, offset)


def _until_now(source: _Here | FarOutput, offset: int) -> Iterator[Part]:
    """Parts up to where it ends now: one that grows faster than it is read must not keep us for ever."""
    end = source.end()
    while True:
        part = source.read(offset, min(CHUNK, max(end - offset, 1)))
        offset = part.next_offset
        yield part
        if not part.text or offset >= end:
            return


def _one_part(args: Args, source: _Here | FarOutput) -> Part:
    if args.tail is not None:
        return source.tail(args.tail)
    return source.read(args.offset or 0, MOST_JSON)


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
