"""
A moment to come, as text that other processes can read, also after somebody set the clock.

    <epoch ms>-<ms since boot>-<boot>

On the same boot of the same machine no change of the clock matters; elsewhere the clock is all there is.
"""

from __future__ import annotations

from taskyard.clock import elapsed, now_ms
from taskyard.disk.processes import this_host


def deadline(seconds: float) -> str:
    """The moment in `seconds` from now."""
    span = int(seconds * 1000)
    return f"{now_ms() + span}-{_since_boot() + span}-{_boot()}"


def has_passed(text: str) -> bool:
    """Whether a moment has come; one that cannot be read has."""
    passed = since(text)
    return passed is None or passed > 0


def since(text: str) -> float | None:
    """Seconds since a moment, less than 0 before it; None if it cannot be read."""
    clock, _, rest = text.partition("-")
    since_boot, _, boot = rest.partition("-")
    if boot == _boot() and since_boot.isdecimal():
        return (_since_boot() - int(since_boot)) / 1000
    return (now_ms() - int(clock)) / 1000 if clock.isdecimal() else None


def _since_boot() -> int:
    """In milliseconds."""
    return int(elapsed() * 1000)


def _boot() -> str:
    """Eight hex digits for this boot of this machine."""
    import zlib  # two libraries, which keepers of jobs do without

    return f"{zlib.crc32(this_host().encode()):08x}"
