"""The end of a transcript as text: what an agent at work said and did last. Pure."""

from __future__ import annotations

import json

from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Characters of one entry.
_LONGEST_ENTRY = 2_000

#: What a tool was given says most by one of these, the first that is there.
_TELLING = ("description", "command", "file_path", "path", "file", "pattern", "query", "url", "prompt")
_LONGEST_INPUT = 200


def readable(data: bytes) -> str:
    """Each entry of a transcript on lines of its own; a line that is cut off or no entry is left out."""
    lines: list[str] = []
    for raw in data.splitlines():
        try:
            entry = as_object(json.loads(raw))
        except (ValueError, RecursionError):
            continue
        if entry is not None:
            lines += [text for text in _shown(entry) if text]
    return "\n".join(lines)


def _shown(entry: Mapping[str, object]) -> Iterator[str]:
    kind, text = entry.get("type"), as_text(entry.get("text")).strip()
    if kind == "assistant":
        yield text[:_LONGEST_ENTRY]
        for raw in as_list((as_object(entry.get("message")) or {}).get("content")) or []:
            block = as_object(raw) or {}
            yield as_text(block.get("text")).strip()[:_LONGEST_ENTRY]
            if block.get("type") == "tool_use":
                yield _tool(block)
    elif kind == "tool_use":
        yield _tool(entry)
    elif kind == "question":
        yield f"? {text[:_LONGEST_ENTRY]}"
    elif kind in ("prompt", "user") and text:
        yield f"> {text.splitlines()[0][:_LONGEST_ENTRY]}"


def _tool(use: Mapping[str, object]) -> str:
    given = as_object(use.get("input")) or {}
    about = next((value for key in _TELLING if isinstance(value := given.get(key), str) and value.strip()), "")
    return f"[{as_text(use.get('name'))} {' '.join(about.split())[:_LONGEST_INPUT]}".rstrip() + "]"
