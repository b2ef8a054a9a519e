"""
The work of one task, as a background job: `python -m taskyard.demo.job KIND SECONDS [fails | hangs]`.

It prints how far it is, and at last what it came to.
"""

from __future__ import annotations

import sys
import time

from taskyard.demo.plan import work

#: How long one that hangs would: beyond the end of every demo.
_FOR_EVER = 60.0


def main(kind: str, seconds: float, how: str = "") -> int:
    """Do it; the exit code."""
    if how == "hangs":
        _say("waiting for the test database …")
        time.sleep(_FOR_EVER)
    if how == "fails":
        _say(work(kind, seconds / 2, said=_say))
        _say("error: the machine is too busy to measure anything")
        return 1
    _say(work(kind, seconds, said=lambda text: _say(f"… {text} so far")))
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:]))
