"""What a program shows on a terminal that a test holds the other end of."""

from __future__ import annotations

import os

from support.wait import until


def shown(terminal: int, wanted: bytes) -> bytes:
    """Everything that comes up to `wanted`, and with it."""
    seen = bytearray()

    def arrived() -> bool:
        seen.extend(os.read(terminal, 65536))
        return wanted in seen

    until(arrived, what=f"{wanted!r} on the screen")
    return bytes(seen)
