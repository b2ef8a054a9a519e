"""Recorder of a dream: transcript, progress, and changes of the staged copy.

The phase is `starting` until the first tool that writes is used, or, with engines that report no tools, until
the first file of the copy differs; then it is `updating`. Text goes to the transcript in the job's folder: a
dream has no output.
"""

from __future__ import annotations

import asyncio
import json
import os
import time

from taskyard.agents.dream import staging
from taskyard.agents.engines.engine import Progress
from taskyard.agents.turn import LimitFlag
from taskyard.core.files import open_plain, write_all
from taskyard.core.system import now_ms
from taskyard.jobs.job_dir import TRANSCRIPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from taskyard.jobs.context import JobContext
    from taskyard.jobs.rate_limit import RateLimited

STARTING, UPDATING = "starting", "updating"

#: Tools that write, by the names agents give them, in lower case.
_WRITE_TOOLS = frozenset({
    "edit", "write", "multiedit", "notebookedit", "create", "replace", "write_file", "edit_file", "apply_patch",
    "str_replace", "str_replace_editor", "str_replace_based_edit_tool",
})  # fmt: skip

#: Seconds between scans of the copy, and the maximum share of time spent scanning.
_SCAN_INTERVAL, _SCAN_SHARE = 0.25, 0.05

#: Maximum touched files named in a record; all are counted.
MOST_NAMED = 100

#: Maximum bytes of a transcript.
_LONGEST_TRANSCRIPT = 50_000_000


class DreamRecorder:
    """The recorder of one dream: see `taskyard.agents.engines.engine.Recorder`."""

    def __init__(self, context: JobContext, stage: str) -> None:
        self._context = context
        self._stage = stage
        self._before = staging.signature(stage)
        self._progress = Progress()
        self._began = time.monotonic()
        self._cost: float | None = None  #: of earlier stages and this one
        self._stage_cost = 0.0
        self._phase = STARTING
        self._flag = LimitFlag(context)
        self._room = _LONGEST_TRANSCRIPT
        self._transcript = _open_transcript(context)
        self._looking = asyncio.get_running_loop().create_task(self._look())

    def record(self, line: Mapping[str, object]) -> None:
        """Write a line of the transcript, up to its maximum size."""
        data = _encode_line(line)
        if self._room > 0:
            write_all(self._transcript, data)
        self._room -= len(data)

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        """Count a tool use; one that writes starts the second phase."""
        self._progress = self._progress.used_tool(name, given)
        if name.lower() in _WRITE_TOOLS:
            self._set_updating()
        self._tell(name)

    def used_tokens(self, usage: Mapping[str, object]) -> None:
        """Count the tokens of one answer."""
        self._progress = self._progress.used_tokens(usage)

    def costs(self, usd: float) -> None:
        """Set the cost of the current stage."""
        if 0 <= usd < float("inf"):
            self._cost = (self._cost or 0.0) - self._stage_cost + usd
            self._stage_cost = usd

    def limited(self, seconds: float, why: str) -> None:
        """Record that the engine waits for a rate limit, in the middle of a stage."""
        self.record({"type": "limited", "seconds": round(seconds, 3), "text": why[:500]})

    def show_limit(self, limit: RateLimited | None) -> None:
        """Show that it waits for a rate limit, or no longer does."""
        self._flag.show(limit, **self.facts())

    async def ask(self, question: str) -> str | None:
        """Return None: a dream cannot ask the user."""
        self.record({"type": "unanswered", "text": question})
        return None

    async def messages(self) -> AsyncIterator[str]:
        """Yield nothing: a dream gets no messages."""
        nobody: tuple[str, ...] = ()
        for text in nobody:
            yield text

    def begin_stage(self, stage: str) -> None:
        """Report which of the four stages starts."""
        self._stage_cost = 0.0
        self._context.tell(stage=stage)
        self._context.progress(usage=self._usage(), stage=stage, phase=self._phase)

    def facts(self) -> dict[str, object]:
        """Return the facts for the record."""
        cost = {} if self._cost is None else {"costUsd": self._cost}
        return {"progress": self._progress.to_json(), "usage": self._usage(), **cost}

    def see(self) -> None:
        """Scan the copy for changes now."""
        now = staging.signature(self._stage)
        touched = sorted(name for name in now.keys() | self._before.keys() if now.get(name) != self._before.get(name))
        if touched:
            self._set_updating()
            names = [name.encode("utf-8", "replace").decode() for name in touched[:MOST_NAMED]]
            self._context.tell(touched=names, touchedCount=len(touched))

    def close(self) -> None:
        """Stop scanning."""
        self._looking.cancel()
        os.close(self._transcript)

    async def _look(self) -> None:
        while True:
            began = time.monotonic()
            self.see()
            await asyncio.sleep(max(_SCAN_INTERVAL, (time.monotonic() - began) / _SCAN_SHARE))

    def _set_updating(self) -> None:
        if self._phase != UPDATING:
            self._phase = UPDATING
            self._context.tell(phase=UPDATING)
            self._context.progress(usage=self._usage(), phase=UPDATING)

    def _tell(self, tool: str) -> None:
        self._context.tell(**self.facts())
        self._context.progress(usage=self._usage(), last_tool_name=tool, phase=self._phase)

    def _usage(self) -> dict[str, int]:
        return self._progress.usage(time.monotonic() - self._began)


def write_note(context: JobContext, text: str) -> None:
    """Write the last line of the transcript: the outcome, for people.

    By then the memory is changed or not; a transcript that was replaced or cannot be written does not affect
    that.
    """
    try:
        transcript = _open_transcript(context)
    except OSError:
        return
    try:
        write_all(transcript, _encode_line({"type": "note", "for": "people", "text": text}))
    finally:
        os.close(transcript)


def _open_transcript(context: JobContext) -> int:
    return open_plain(f"{context.folder}/{TRANSCRIPT}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _encode_line(line: Mapping[str, object]) -> bytes:
    return (json.dumps({"at": now_ms(), **line}) + "\n").encode()
