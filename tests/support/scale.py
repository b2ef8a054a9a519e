"""How much of it: full counts in a soak, a tenth of them in an ordinary run."""

from __future__ import annotations

import os

#: Whether this is `make soak`.
FULL = os.environ.get("TASKYARD_SOAK") == "1"


def scale(count: int, *, least: int = 1) -> int:
    """`count` in a soak, else a tenth of it, but never fewer than `least` (nor more than `count`)."""
    return count if FULL else min(count, max(count // 10, least))
