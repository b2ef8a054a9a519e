"""What a job printed: in windows of lines, as text and names of styles; never as markup."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from taskyard.errors import UsageError
from taskyard.live.output import Reader, Window
from taskyard.runtime.finding import find_folder
from taskyard.runtime.output import Output
from taskyard.view.text import size
from taskyard.web.answers import Refusal, data
from taskyard.web.site import Site
from taskyard.web.values import Given

#: Lines that are shown where nobody says how many.
SOME_LINES = 1_000

#: Bytes of one window that is streamed, and how far somebody may be behind before the rest is left out.
_WINDOW, _MOST_BEHIND = 200_000, 1_000_000

#: The largest output that can be fetched as a file, and bytes at a time.
LARGEST_FILE, _PIECE = 64_000_000, 256 * 1024


async def output(site: Site, given: Given, request: Request) -> Response:
    """A window of lines: the last, those before an offset, or those from one on."""
    if len({"tail", "before", "after"} & given.keys()) > 1:
        raise UsageError("Give one of tail, before and after.")

    def look() -> tuple[Window, bool]:
        reader = reader_of(site, given.text("id"))
        is_over = reader.is_over()
        lines = given.number("lines", SOME_LINES)
        if "before" in given:
            return reader.before(given.number("before"), lines), is_over
        if "after" in given:
            return reader.after(given.number("after"), lines=lines), is_over
        return reader.tail(given.number("tail", lines)), is_over

    window, is_over = await site.threads.look(look)
    return data(window_json(window, is_over=is_over))


async def find(site: Site, given: Given, request: Request) -> Response:
    """Where the next line begins that holds a text."""

    def look() -> int | None:
        reader = reader_of(site, given.text("id"))
        backwards = bool(given.get("backwards"))
        start = given.number("from", reader.after(0, 0).size if backwards else 0)
        return reader.find(given.text("text"), start, backwards=backwards)

    return data({"offset": await site.threads.look(look)})


async def download(site: Site, given: Given, request: Request) -> Response:
    """All of it, byte by byte, for a file."""
    job_id = given.text("id")

    def look() -> tuple[Output, int]:
        found = Output(find_folder(site.yard.home, job_id))
        return found, found.end()

    found, end = await site.threads.look(look)
    if end > LARGEST_FILE:
        where = found.folder.output
        said = f"This output has {size(end)}; up to {size(LARGEST_FILE)} can be fetched. The file is {where}."
        return Refusal(413, "too_large", said).answer()

    async def pieces() -> AsyncIterator[bytes]:
        at = 0
        while at < end:
            part = await site.threads.look(partial(found.read, at, min(_PIECE, end - at)))
            if not part.text or part.restarted:
                return
            at = part.next_offset
            yield part.text

    headers = {"Content-Disposition": f'attachment; filename="{job_id}.txt"'}
    return StreamingResponse(pieces(), headers=headers, media_type="text/plain; charset=utf-8")


class Printed:
    """An output as it grows, for one who follows it."""

    def __init__(self, reader: Reader, start: int | None) -> None:
        """`start`: where to go on; None: with the last lines."""
        self._reader = reader
        self._at = start
        self._last: Window | None = None
        self._was_over: bool = False
        self.is_behind = True  #: more is there already

    def more(self) -> tuple[Window | None, bool]:
        """What is new, None if nothing is, and whether nothing will be added."""
        is_over = self._reader.is_over()
        window = self._reader.tail(SOME_LINES) if self._at is None else self._reader.after(self._at, _WINDOW)
        if window.size - window.end > _MOST_BEHIND:
            newest = self._reader.tail(SOME_LINES)
            window = newest._replace(omitted=newest.start - (self._at or 0))
        is_new = is_over != self._was_over or self._last is None or not _holds(self._last, window)
        self.is_behind = window.end != self._at and window.end < window.size
        self._at = window.end
        self._was_over = is_over
        self._last = window if is_new else self._last
        return (window if is_new else None), is_over


def _holds(before: Window, window: Window) -> bool:
    """Whether a window shows only what the one before it showed: nothing, or the same beginning of a line."""
    lines = window.lines
    return not window.restarted and not window.omitted and lines == before.lines[len(before.lines) - len(lines) :]


def window_json(window: Window, *, is_over: bool) -> dict[str, object]:
    """A window as plain values: each line is runs of text, each with the names of its styles."""
    return {
        "start": window.start,
        "end": window.end,
        "size": window.size,
        "omitted": window.omitted,
        "is_over": is_over,
        "partial": window.is_open,
        "restarted": window.restarted,
        "offsets": [line.offset for line in window.lines],
        "lines": [[[run.text, run.pen.words] for run in line.runs] for line in window.lines],
    }


def reader_of(site: Site, job_id: str) -> Reader:
    """The output of a job. Reads the disk.

    Raises:
        JobNotFound: there never was such a job.
        OutputGone: what it printed was taken away to make room.
    """
    find_folder(site.yard.home, job_id)
    return Reader(site.yard.home, job_id)
