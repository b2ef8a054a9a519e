"""`taskyard run` without -d: the job is started, watched, and what came of it is said."""

from __future__ import annotations

import os
import signal
import sys

from taskyard import config
from taskyard.cli.job.attached import Attached, Seen
from taskyard.cli.job.keyboard import Keyboard, window
from taskyard.cli.job.live_output import LiveOutput, Nothing
from taskyard.cli.job.screen_modes import ScreenModes
from taskyard.cli.job.shared import exit_code
from taskyard.cli.job.signals import Signals
from taskyard.cli.job.status_line import StatusLine
from taskyard.cli.job.stop import stop_line
from taskyard.cli.output import answer, is_terminal, say, style, warn
from taskyard.errors import BackgroundDisabled
from taskyard.runtime.background import check_background
from taskyard.runtime.model import JobStatus
from taskyard.runtime.output_text import TerminalText
from taskyard.runtime.steering import outcome_of
from taskyard.view.background_key import background_key
from taskyard.view.job_records import job_json
from taskyard.view.job_text import ended_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO, TextIO

    from taskyard.cli.command import Args
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.kind import Spec
    from taskyard.runtime.model import Job
    from taskyard.view.background_key import Key


def run(
    args: Args,
    jobs: Jobs,
    spec: Spec,
    warnings: Sequence[str] = (),
    *,
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    pty: bool = False,
    reads: bool = False,
) -> int:
    """Start a job, watch it, and end as it did. It may have a terminal, or read our input."""
    if not args.as_json:
        for text in warnings:
            warn(text)
    seen = watch(args, jobs, spec, after=after, after_any=after_any, pty=pty, reads=reads)
    code = code_of(seen)
    if args.as_json:
        answer(args, lambda: seen_json(seen, code), list, warnings=warnings)
    else:
        tell(args, seen)
    return code


def watch(
    args: Args,
    jobs: Jobs,
    spec: Spec,
    *,
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    pty: bool = False,
    reads: bool = False,
    shows: bool = True,
) -> Seen:
    """Start a job and stay with it; what is seen in the end. Without `shows`, nothing of its output is."""
    key = background_key(config.load().background_key)
    with Signals() as signals:
        is_screen = pty and is_terminal(sys.stdin) and is_terminal(sys.stdout) and not args.as_json
        job = jobs.start(
            spec,
            backgrounded=False,
            after=after,
            after_any=after_any,
            window=window() if is_screen else None,
        )
        return _watched(args, jobs, job, signals, key, is_screen=is_screen, reads=reads, shows=shows)


def _watched(
    args: Args, jobs: Jobs, job: Job, signals: Signals, key: Key | None, *, is_screen: bool, reads: bool, shows: bool
) -> Seen:
    how = "raw" if is_screen else "lines" if reads else "keys"
    hint = _hint(key)
    if is_screen and hint:
        say(args, f"({hint}; all other keys go to the command)")
    # With --json standard output is for the answer alone.
    out = _bytes(sys.stderr if args.as_json else sys.stdout)
    wanted = not args.quiet and (args.as_json or not shows or is_terminal(sys.stdout))
    text = (TerminalText(colours=True) if not is_screen and out.isatty() else None) if shows else Nothing()
    live = LiveOutput(
        jobs,
        job,
        out=out,
        status=StatusLine(style(args, sys.stderr), wanted=wanted),
        modes=ScreenModes() if is_screen else None,
        text=text,
    )
    reads = is_screen or reads
    return Attached(jobs, job, signals=signals, keyboard=Keyboard(how, key), live=live, hint=hint, reads=reads).watch()


def _bytes(stream: TextIO | None) -> BinaryIO:
    """Where output goes as it is; one that was closed takes nothing."""
    return stream.buffer if stream is not None else open(os.devnull, "wb")  # for as long as we live


def _hint(key: Key | None) -> str:
    """What the key does, where there is one and it may."""
    try:
        check_background()
    except BackgroundDisabled:
        return ""
    return "" if key is None else f"{key.name} moves it to the background"


def code_of(seen: Seen) -> int:
    """What the command line ends with: the signal that made us leave, or how the job ended."""
    if seen.signal:
        return 128 + seen.signal
    return 0 if seen.moved else exit_code([seen.job])


def seen_json(seen: Seen, code: int) -> dict[str, object]:
    """What came of it, for programs."""
    return {
        **job_json(seen.job),
        "code": code,
        "interrupted": seen.signal == signal.SIGINT,
        "backgroundTaskId": seen.job.id if seen.job.is_backgrounded and not seen.job.is_final else None,
        "backgroundedByUser": seen.moved,
    }


def tell(args: Args, seen: Seen) -> None:
    """Say what the output and the exit code do not."""
    job, end = seen.job, seen.job.end
    if end is None:
        goes_on = "It goes on in the background" if job.is_backgrounded else "It has not ended yet"
        say(args, f"{goes_on}: {job.id}. See `taskyard logs -f {job.id}`, `taskyard stop {job.id}`.")
        return
    if seen.signal or end.cause != "exited":
        look = style(args, sys.stderr)._replace(colour=False)
        stopped = outcome_of(job._replace(status=JobStatus.RUNNING), job)
        say(args, stop_line(stopped, look) if seen.signal else ended_line(job, look))
    if end.leftovers:
        say(args, f"It left {end.leftovers} {'process' if end.leftovers == 1 else 'processes'} behind: stopped.")
    if end.output_lost:
        say(args, f"Not all of its output could be kept: {end.output_lost}.")
