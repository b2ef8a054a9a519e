"""
What a job printed, in parts: from an offset on, or the last of it; never the whole file at once.

    part = Output(folder).read(0)
    part = Output(folder).read(part.next_offset)      what came since

Any process may read, while the job runs and after, whoever started it.
"""

from __future__ import annotations

from taskyard.errors import BadJobId
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.output_file import open_output
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.output_file import OutputFile
    from taskyard.runtime.output_text import ModelText

#: Read at a time: large against the cost of a call, small against memory.
CHUNK = 64 * 1024

#: A tail is for eyes: lines so long that more than this is needed are shown from their middle.
LARGEST_TAIL = 1024 * 1024

#: More than any progress line has.
_LAST_LINE = 4096

#: No character takes more bytes in UTF-8.
_WIDEST = 4


class Part(NamedTuple):
    """A piece of an output."""

    text: bytes
    offset: int  #: of its first byte, counted from the first byte the job ever printed
    next_offset: int  #: where to go on
    omitted: int = 0  #: bytes that were asked for and are no longer there: the output was larger than its cap
    restarted: bool = False  #: the command truncated its output; this is it from its new beginning


class Output:
    """The output of one job."""

    def __init__(self, folder: JobFolder, *, transcripts: str | None = None) -> None:
        """`transcripts` is the folder that an agent's output may be linked into, beside the job's own.

        Raises:
            BadJobId: no job can have such an id.
        """
        if not is_job_id(folder.id):
            raise BadJobId(folder.id)
        self.folder = folder
        self._transcripts = transcripts

    def read(self, offset: int, most: int = CHUNK) -> Part:
        """What was printed from `offset` on, at most `most` bytes of it; no output yet reads as empty.

        Raises:
            StorageError: something that is no output is in its place, or the disk refused.
        """
        file = self._open()
        if file is None:
            return Part(b"", offset, offset)
        with file:
            restarted = offset > file.end()
            wanted = 0 if restarted else max(offset, 0)
            start, text = file.read(wanted, most)
        return Part(text, start, start + len(text), start - wanted, restarted)

    def tail(self, lines: int, *, most: int = LARGEST_TAIL) -> Part:
        """The last `lines` lines, though not more than `most` bytes."""
        file = self._open()
        if file is None:
            return Part(b"", 0, 0)
        with file:
            return _tail(file, lines, most)

    def tail_bytes(self, most: int) -> Part:
        """The last `most` bytes, or as many as are there."""
        file = self._open()
        if file is None:
            return Part(b"", 0, 0)
        with file:
            wanted = max(file.end() - most, 0)
            gone, there = file.gap()
            start, text = file.read(max(wanted, there), most)
        return Part(text, start, start + len(text), max(start - max(wanted, gone), 0) if wanted < there else 0)

    def gap(self) -> tuple[int, int]:
        """From which offset to which nothing is there any more: the output was larger than its cap."""
        file = self._open()
        if file is None:
            return 0, 0
        with file:
            return file.gap()

    def end(self) -> int:
        """The offset behind the newest byte there is now."""
        return self.tail_bytes(0).next_offset

    def last_line(self, *, whole: bool = False) -> bytes:
        """The newest line that says something; of a line that was overwritten, its last form.

        `whole` passes over a line that is still being written, unless it is the first.
        """
        text = self.tail_bytes(_LAST_LINE).text.replace(b"\r", b"\n")
        ended = text[: text.rfind(b"\n") + 1].rstrip()
        text = ended if whole and ended else text.rstrip()
        return text[text.rfind(b"\n") + 1 :]

    def for_model(self, limit: int | None = None) -> ModelText:
        """As much of the end as a model is given; `limit` in characters, else as the environment says."""
        from taskyard.runtime.output_text import for_model, model_limit

        characters = model_limit() if limit is None else limit
        part = self.tail_bytes(characters * _WIDEST)
        return for_model(part.text, path=self.folder.output, limit=characters, is_all=part.offset == 0)

    def _open(self) -> OutputFile | None:
        return open_output(self.folder, transcripts=self._transcripts)


def _tail(file: OutputFile, lines: int, most: int) -> Part:
    """Go back block by block until enough lines are in hand; nothing before them is ever read."""
    end = begin = file.end()
    text, gone = b"", 0
    while lines > 0 and begin > 0 and len(text) < most and _breaks(text) < lines:
        head, there = file.gap()
        wanted = max(begin - min(CHUNK, most - len(text)), there)
        start, piece = file.read(wanted, max(begin - wanted, 0))
        piece = piece[: max(begin - start, 0)]  # what lies behind is in hand already
        if start + len(piece) < begin:
            break  # the command truncated it while we read
        text, begin = piece + text, min(start, begin)
        if start > wanted or (head < there and begin <= there):
            gone = begin - file.gap()[0]
            break
    kept = _last_lines(text, lines)
    return Part(kept, end - len(kept), end, gone if len(kept) == len(text) else 0)


def _breaks(text: bytes) -> int:
    """How many line breaks stand before the last line."""
    return text.count(b"\n") - text.endswith(b"\n")


def _last_lines(text: bytes, lines: int) -> bytes:
    """The last lines of a text; a break at its very end belongs to the last of them."""
    if lines <= 0:
        return b""
    at = len(text) - text.endswith(b"\n")
    for _ in range(lines):
        at = text.rfind(b"\n", 0, at)
        if at < 0:
            return text
    return text[at + 1 :]
