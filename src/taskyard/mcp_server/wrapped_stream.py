"""A stream of the SDK with another in front of it: what the two directions have in common."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self


class Closable(Protocol):
    """What can be closed."""

    async def aclose(self) -> None:
        """Close it."""
        ...


class WrappedStream:
    """A context manager that closes the stream behind it."""

    def __init__(self, behind: Closable) -> None:
        self._behind = behind

    async def aclose(self) -> None:
        """Close the stream."""
        await self._behind.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()
