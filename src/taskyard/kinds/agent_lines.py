"""Lines of a transcript, as the engines write them. Pure."""

from __future__ import annotations

from taskyard.shapes import as_list, as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def spoken(line: Mapping[str, object]) -> str:
    """What the agent says in a line; nothing if it is about something else."""
    if line.get("type") != "assistant":
        return ""
    if isinstance(text := line.get("text"), str):
        return text
    content = as_list((as_object(line.get("message")) or {}).get("content")) or []
    blocks = (as_object(raw) or {} for raw in content)
    return "\n".join(text for block in blocks if isinstance(text := block.get("text"), str))
