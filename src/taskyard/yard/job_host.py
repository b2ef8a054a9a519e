"""The process that runs a job handler, a child of the supervisor: `python -m taskyard.yard.job_host`.

It rebuilds the handler from the job's arguments, awaits its `run`, and writes the outcome into the job's facts.
SIGTERM is cancellation; so is the exit of the supervisor, after which the job counts as lost: it must not
continue to work, or keep claims and locks that others wait for.
"""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys

from taskyard.core.subprocesses import read_lines
from taskyard.core.values import as_object
from taskyard.errors import Damaged, TaskyardError
from taskyard.jobs import kinds
from taskyard.jobs.context import JobContext, context_from_env
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.kind import Outcome, error_text
from taskyard.jobs.supervisor import kernel
from taskyard.yard.async_yard import YardServices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.jobs.kind import Handler

#: Maximum bytes of one message: more than one send allows (`jobs.control.MAX_INPUT`).
_MAX_LINE = 2_000_000

#: Exit code of a process terminated by SIGTERM.
_TERMINATED = 128 + signal.SIGTERM


def main() -> int:
    """Run the handler of the surrounding job; return the exit code."""
    try:
        context = context_from_env(YardServices())
    except KeyError:
        sys.stderr.write("This program is started by a job's supervisor. See `taskyard run --help`.\n")
        return 2
    kernel.set_parent_death_signal(signal.SIGTERM)
    if supervisor_pid(JobPaths(context.home, context.id)) is None:
        return _TERMINATED  # the supervisor was killed before the parent-death signal was set
    try:
        outcome = asyncio.run(_run_handler(context))
    except asyncio.CancelledError:
        return _TERMINATED
    context.facts.close(outcome)
    return 1 if outcome.error else 0


async def _run_handler(context: JobContext) -> Outcome:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    reading = asyncio.create_task(_read_messages(context))
    try:
        return await _load_handler(context).run(context)
    except Exception as error:  # top level: any exception of a handler is the outcome of its job
        return _failure_outcome(error, context)
    finally:
        reading.cancel()


def _load_handler(context: JobContext) -> Handler:
    """Return the handler of this job.

    Raises:
        KindNotFound, Damaged: it cannot be created here.
    """
    folder = JobPaths(context.home, context.id)
    wanted = read_json(folder.arguments)
    arguments = as_object((wanted or {}).get("arguments"))
    if wanted is None or arguments is None:
        raise Damaged(folder.arguments, "it does not say what to do")
    return kinds.find(str(wanted.get("type"))).from_json(arguments)


def _failure_outcome(error: Exception, context: JobContext) -> Outcome:
    """Return the outcome for an exception; write its traceback to the output or transcript."""
    if not isinstance(error, TaskyardError):
        import json
        import traceback

        text = "".join(traceback.format_exception(error))
        is_transcript = os.path.lexists(JobPaths(context.home, context.id).transcript)
        context.write(json.dumps({"type": "stderr", "text": text}) + "\n" if is_transcript else text)
    return Outcome(error=error_text(error))


async def _read_messages(context: JobContext) -> None:
    """Pass each line of stdin to the handler."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        await context.put_message(None)  # the job takes no input
        return
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", 0))
    async for line in read_lines(reader):
        await context.put_message(line)
    await context.put_message(None)


if __name__ == "__main__":
    sys.exit(main())
