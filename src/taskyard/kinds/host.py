"""
The process in which a handler does its work, below the job's keeper: `python -m taskyard.kinds.host`.

It makes the kind's record again from what the job was asked for, awaits its `run`, and leaves its last word in the
job's facts. Being asked to end (SIGTERM) is cancellation; so is the death of the keeper, since whoever looks next
counts the job as lost: it must not go on to work, or hold what others wait for.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys

from taskyard import kinds
from taskyard.engines.process import lines_of
from taskyard.errors import Damaged, TaskyardError
from taskyard.runtime.context import JobContext, of_this_process
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.keeper import kernel
from taskyard.runtime.kind import Outcome, in_words
from taskyard.runtime.liveness import keeper_of
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.kind import Handler

#: Bytes of one message: more than anybody sends at once (`steering.MOST_INPUT`).
_LONGEST_LINE = 2_000_000

#: How a process ends that was asked to by SIGTERM.
_ASKED_TO_END = 128 + signal.SIGTERM


def main() -> int:
    """Do the work of the job around this process; its exit code."""
    try:
        context = of_this_process()
    except KeyError:
        sys.stderr.write("This program is started by a job's keeper. See `taskyard run --help`.\n")
        return 2
    kernel.be_told_of_parents_death(signal.SIGTERM)
    if keeper_of(JobFolder(context.home, context.id)) is None:
        return _ASKED_TO_END  # killed before we could ask to be told
    try:
        outcome = asyncio.run(_work(context))
    except asyncio.CancelledError:
        return _ASKED_TO_END
    context.facts.close(outcome)
    return 1 if outcome.error else 0


async def _work(context: JobContext) -> Outcome:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    reading = asyncio.create_task(_read_messages(context))
    try:
        return await _handler(context).run(context)
    except Exception as error:  # the top of an edge: whatever a handler raises is how its job ended
        return _failed(error, context)
    finally:
        reading.cancel()


def _handler(context: JobContext) -> Handler:
    """The record that this job was made from.

    Raises:
        KindNotFound, Damaged: it cannot be made here.
    """
    folder = JobFolder(context.home, context.id)
    wanted = read(folder.arguments)
    arguments = as_object((wanted or {}).get("arguments"))
    if wanted is None or arguments is None:
        raise Damaged(folder.arguments, "it does not say what to do")
    return kinds.find(str(wanted.get("type"))).from_json(arguments)


def _failed(error: Exception, context: JobContext) -> Outcome:
    """What an exception says of the work; where it came from is in the output, a transcript's line if it is one."""
    if not isinstance(error, TaskyardError):
        import json
        import traceback

        text = "".join(traceback.format_exception(error))
        is_transcript = os.path.lexists(JobFolder(context.home, context.id).transcript)
        context.write(json.dumps({"type": "stderr", "text": text}) + "\n" if is_transcript else text)
    return Outcome(error=in_words(error))


async def _read_messages(context: JobContext) -> None:
    """Hand on what comes in through stdin, a line each."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        await context.take_in(None)  # a job that takes no input
        return
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", 0))
    async for line in lines_of(reader):
        await context.take_in(line)
    await context.take_in(None)


if __name__ == "__main__":
    sys.exit(main())
