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
    clock, _, rest = text.partition("-")
    since_boot, _, boot = rest.partition("-")
    if boot == _boot() and since_boot.isdecimal():
        return int(since_boot) < _since_boot()
    return not clock.isdecimal() or int(clock) < now_ms()


def _since_boot() -> int:
    """In milliseconds."""
    return int(elapsed() * 1000)


def _boot() -> str:
    """Eight hex digits for this boot of this machine."""
    import zlib  # two libraries, which keepers of jobs do without

    return f"{zlib.crc32(this_host().encode()):08x}"
