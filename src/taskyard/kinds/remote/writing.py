"""
What a session said, appended to the job's output once, wherever its process is killed.

First the text is appended, then cursor and size are saved together. Whoever was killed in between left more in the
output than the sidecar says: that much of what comes next is there already.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.kinds.remote.sidecar import Sidecar
    from taskyard.runtime.context import JobContext


class Writing:
    """The output of one job, for the process that follows its session."""

    def __init__(self, context: JobContext, sidecar: Sidecar) -> None:
        self._context = context
        self._sidecar = sidecar
        if context.size < sidecar.place.size:  # a power cut took the end of it: everything is heard again
            sidecar.save(cursor="", size=0)
        self._ahead = context.written(sidecar.place.size)

    def add(self, text: str, cursor: str) -> None:
        """Append what was said, and remember up to where it was heard."""
        said = text.encode("utf-8", "surrogateescape")
        new, self._ahead = unwritten(self._ahead, said)
        if new:
            self._context.write(new.decode("utf-8", "surrogateescape"))
        if cursor != self._sidecar.place.cursor or new:
            self._sidecar.save(cursor=cursor, size=self._context.size - len(self._ahead))


def unwritten(ahead: bytes, said: bytes) -> tuple[bytes, bytes]:
    """What of `said` is to be appended, where `ahead` is there already, and what of that is still ahead.

    Where the two have nothing in common, somebody else wrote into the output: what was said is not lost for that.
    """
    if ahead.startswith(said):
        return b"", ahead[len(said) :]
    if said.startswith(ahead):
        return said[len(ahead) :], b""
    return said, b""
