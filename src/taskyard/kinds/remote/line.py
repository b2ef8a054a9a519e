"""
The connection of one job to the place where its agent works: made when it is needed, made again after trouble.

While nobody answers the job is shown as disconnected, with why and since when; that it was lost and that it is back
are events. Whatever a place or its backend gets wrong is trouble: its session goes on all the same.
"""

from __future__ import annotations

import asyncio
import contextlib

from taskyard.clock import now_ms
from taskyard.errors import RemoteRefused, StorageError, TaskyardError
from taskyard.remote import backend_of
from taskyard.remote.pace import QUICK, quick_of
from taskyard.remote.remotes import remote_named, token_of
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from taskyard.remote.backend import RemoteBackend
    from taskyard.runtime.context import JobContext

    T = TypeVar("T")

#: Seconds a place has to answer; what takes longer is hanging.
PATIENCE = 60.0

#: Characters of why it is disconnected.
_LONGEST_WHY = 500


class Trouble(Exception):
    """A place could not be asked; the text says why, without any secret."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.refused = refused  #: by a place that was reached, or by what is set up here


class Line:
    """One job's connection."""

    def __init__(self, remote: str, context: JobContext) -> None:
        self._remote = remote
        self._context = context
        self._backend: RemoteBackend | None = None
        self._token = ""
        self._is_lost = context.facts.known.get("disconnected") is not None
        self.troubles = 0  #: in a row
        self.quick = QUICK  #: seconds between polls while there is something new

    async def ask(self, act: Callable[[RemoteBackend], Awaitable[T]], *, patience: float = PATIENCE) -> T:
        """What a place answers.

        Raises:
            Trouble: nothing, and the job is shown as disconnected; or it refuses (`refused`).
        """
        try:
            if self._backend is None:
                place = remote_named(self._remote)
                self._token = token_of(place)
                self._backend = backend_of(place, self._token)
                self.quick = quick_of(place)
            answer = await asyncio.wait_for(act(self._backend), patience)
        except TimeoutError:
            raise await self._troubled(f"no answer within {patience:.0f} s") from None
        except TaskyardError as error:
            raise await self._troubled(self._plain(error), refused=isinstance(error, RemoteRefused)) from None
        except Exception as error:  # somebody else's backend: what it does not expect is no end of the session
            raise await self._troubled(f"{type(error).__name__}: {self._plain(error)}") from None
        self.troubles = 0
        return answer

    def lost(self, why: str) -> None:
        """Show that nobody answers."""
        self.troubles += 1
        since = (as_object(self._context.facts.known.get("disconnected")) or {}).get("since") or now_ms()
        with contextlib.suppress(StorageError):  # a disk that is full may be why
            self._context.tell(disconnected={"since": since, "why": why[:_LONGEST_WHY]})
        if not self._is_lost:
            self._is_lost = True
            self._context.progress(disconnected=True, why=why[:_LONGEST_WHY])

    def found(self) -> None:
        """Show that it is back."""
        if self._is_lost:
            self._is_lost = False
            with contextlib.suppress(StorageError):
                self._context.tell(disconnected=None)
            self._context.progress(disconnected=False)

    async def close(self) -> None:
        """Let go of it; the session goes on."""
        backend, self._backend = self._backend, None
        if backend is not None:
            with contextlib.suppress(Exception):  # somebody else's, and of no use any more
                await asyncio.wait_for(backend.close(), PATIENCE)

    async def _troubled(self, why: str, *, refused: bool = False) -> Trouble:
        await self.close()  # what is set up may change meanwhile: it is read again
        return Trouble(why, refused=refused)

    def _plain(self, error: Exception) -> str:
        """What an error says, without the token, whoever put it there."""
        said = str(error)
        return said.replace(self._token, "…") if self._token else said
