"""Loading libraries that take their time."""

from __future__ import annotations

import gc


class Loading:
    """
    For the length of a `with` block nobody looks for garbage: what is being loaded is none, and there is much of it.

        with Loading():
            from taskyard.mcp_server import server
    """

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()
