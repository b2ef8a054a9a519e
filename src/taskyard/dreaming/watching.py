"""
A dream watched: what its engine tells, and what happens to the staged copy meanwhile.

The phase is `starting` until the first tool that writes is used, or, with engines that tell of no tools, until the
first file of the copy is seen to differ; then it is `updating`. What is said goes to the transcript in the job's
folder: a dream has no output.
"""

from __future__ import annotations

import asyncio
import json
import os
import time

from taskyard.clock import now_ms
from taskyard.disk.files import write_all
from taskyard.dreaming import trees
from taskyard.engines.progress import Progress
from taskyard.plain_file import open_plain
from taskyard.runtime.folder import TRANSCRIPT
from taskyard.turn import LimitFlag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from taskyard.runtime.context import JobContext
    from taskyard.runtime.rate_limit import RateLimited

STARTING, UPDATING = "starting", "updating"

#: Tools that write, by the names that agents have for them, in small letters.
_WRITING = frozenset({
    "edit", "write", "multiedit", "notebookedit", "create", "replace", "write_file", "edit_file", "apply_patch",
    "str_replace", "str_replace_editor", "str_replace_based_edit_tool",
})  # fmt: skip

#: Seconds between two looks at the copy, and at most this share of the time is spent looking.
_EVERY, _SHARE = 0.25, 0.05

#: Touched files that a record names; all are counted.
MOST_NAMED = 100

#: Bytes of a transcript.
_LONGEST_TRANSCRIPT = 50_000_000


class DreamWatch:
    """One dream's watcher: see `taskyard.engines.engine.Watcher`."""

    def __init__(self, context: JobContext, stage: str) -> None:
        self._context = context
        self._stage = stage
        self._before = trees.signature(stage)
        self._progress = Progress()
        self._began = time.monotonic()
        self._cost: float | None = None  #: of the stages before, and of this one
        self._stage_cost = 0.0
        self._phase = STARTING
        self._flag = LimitFlag(context)
        self._room = _LONGEST_TRANSCRIPT
        self._transcript = _open_transcript(context)
        self._looking = asyncio.get_running_loop().create_task(self._look())

    def record(self, line: Mapping[str, object]) -> None:
        """Write a line of the transcript, while there is room."""
        data = _line(line)
        if self._room > 0:
            write_all(self._transcript, data)
        self._room -= len(data)

    def used_tool(self, name: str, given: Mapping[str, object]) -> None:
        """Count a tool; one that writes begins the second phase."""
        self._progress = self._progress.used_tool(name, given)
        if name.lower() in _WRITING:
            self._writes()
        self._tell(name)

    def used_tokens(self, usage: Mapping[str, object]) -> None:
        """Count the tokens of one answer."""
        self._progress = self._progress.used_tokens(usage)

    def costs(self, usd: float) -> None:
        """Remember what one stage has cost so far."""
        if 0 <= usd < float("inf"):
            self._cost = (self._cost or 0.0) - self._stage_cost + usd
            self._stage_cost = usd

    def limited(self, seconds: float, why: str) -> None:
        """Its engine waits for its provider, in the middle of a stage."""
        self.record({"type": "limited", "seconds": round(seconds, 3), "text": why[:500]})

    def show_limit(self, limit: RateLimited | None) -> None:
        """Show that it waits for its provider, or no longer does."""
        self._flag.show(limit, **self.facts())

    async def ask(self, question: str) -> str | None:
        """Nobody is there to be asked."""
        self.record({"type": "unanswered", "text": question})
        return None

    async def messages(self) -> AsyncIterator[str]:
        """Nobody sends anything to a dream."""
        nobody: tuple[str, ...] = ()
        for text in nobody:
            yield text

    def enters(self, stage: str) -> None:
        """Tell which of the four stages begins."""
        self._stage_cost = 0.0
        self._context.tell(stage=stage)
        self._context.progress(usage=self._usage(), stage=stage, phase=self._phase)

    def facts(self) -> dict[str, object]:
        """What is known of the work."""
        cost = {} if self._cost is None else {"costUsd": self._cost}
        return {"progress": self._progress.to_json(), "usage": self._usage(), **cost}

    def see(self) -> None:
        """Look at the copy now."""
        now = trees.signature(self._stage)
        touched = sorted(name for name in now.keys() | self._before.keys() if now.get(name) != self._before.get(name))
        if touched:
            self._writes()
            names = [name.encode("utf-8", "replace").decode() for name in touched[:MOST_NAMED]]
            self._context.tell(touched=names, touchedCount=len(touched))

    def close(self) -> None:
        """Look no more."""
        self._looking.cancel()
        os.close(self._transcript)

    async def _look(self) -> None:
        while True:
            began = time.monotonic()
            self.see()
            await asyncio.sleep(max(_EVERY, (time.monotonic() - began) / _SHARE))

    def _writes(self) -> None:
        if self._phase != UPDATING:
            self._phase = UPDATING
            self._context.tell(phase=UPDATING)
            self._context.progress(usage=self._usage(), phase=UPDATING)

    def _tell(self, tool: str) -> None:
        self._context.tell(**self.facts())
        self._context.progress(usage=self._usage(), last_tool_name=tool, phase=self._phase)

    def _usage(self) -> dict[str, int]:
        return self._progress.usage(time.monotonic() - self._began)


def note(context: JobContext, text: str) -> None:
    """Write the last line of the transcript: what came of it, for people.

    The memory has changed by then, or not: a transcript that was replaced or cannot be written changes nothing of that.
    """
    try:
        transcript = _open_transcript(context)
    except OSError:
        return
    try:
        write_all(transcript, _line({"type": "note", "for": "people", "text": text}))
    finally:
        os.close(transcript)


def _open_transcript(context: JobContext) -> int:
    return open_plain(f"{context.folder}/{TRANSCRIPT}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _line(line: Mapping[str, object]) -> bytes:
    return (json.dumps({"at": now_ms(), **line}) + "\n").encode()
