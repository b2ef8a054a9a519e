"""
Asking a completion checker, which is somebody else's code: bounded, in a thread of its own, never two at once.

A thread that hangs is left behind: it keeps neither the polls waiting nor the process from ending.
"""

from __future__ import annotations

import asyncio
import inspect
import threading

from taskyard.remote.completion import checker_of
from taskyard.runtime.kind import in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.remote.completion import Checker
    from taskyard.runtime.context import JobContext

#: Seconds a checker has: it asks somebody else, perhaps, and keeps us from polling meanwhile.
PATIENCE = 30.0


class Checking:
    """The checker of one job's subtype."""

    def __init__(self, remote_task_type: str, context: JobContext, reference: str = "") -> None:
        """`reference`: the checker that the job recorded; a package's or ours if empty."""
        self._type = remote_task_type
        self._reference = reference
        self._checker: Checker | None = None  # once it is loaded
        self._context = context
        self._thread: threading.Thread | None = None

    async def ask(self, metadata: Mapping[str, object]) -> str | None:
        """What it says; None if there is none, or nothing is complete. What it gets wrong is a fact of the job."""
        try:
            self._checker = self._checker or checker_of(self._type, self._reference)
            if self._checker is None:
                return None
            async with asyncio.timeout(PATIENCE):
                text = await self._said(self._checker, metadata)
        except Exception as error:  # somebody else's code: it is told, and asked again at the next poll
            why = "it does not answer" if isinstance(error, TimeoutError) else in_words(error)
            self._context.tell(checkerError=why[:500])
            return None
        self._context.tell(checkerError="")
        return text if isinstance(text, str) and text else None

    async def _said(self, checker: Checker, metadata: Mapping[str, object]) -> object:
        if self._thread is not None and self._thread.is_alive():
            raise TimeoutError
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[object] = loop.create_future()

        def settle(error: Exception | None, said: object) -> None:
            if not answer.done():
                answer.set_exception(error) if error is not None else answer.set_result(said)

        def call() -> None:
            error, said = None, None
            try:
                said = checker(metadata)
            except Exception as raised:  # the top of a thread
                error = raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, error, said)

        self._thread = threading.Thread(target=call, name="taskyard-checker", daemon=True)
        self._thread.start()
        said = await answer
        return await said if inspect.isawaitable(said) else said
