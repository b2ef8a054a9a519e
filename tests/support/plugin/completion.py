"""Somebody else's completion checker, published by an entry point: `merged` where the place says so."""

from __future__ import annotations

from collections.abc import Mapping


async def merged(metadata: Mapping[str, object]) -> str | None:
    """That it was merged; it cannot look at anything called `odd`."""
    if metadata.get("odd"):
        raise RuntimeError("I cannot look at that")
    return f"Merged by {metadata['by']}." if metadata.get("merged") is True else None
