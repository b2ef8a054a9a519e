"""
Claude Code as the other program in the folder: what it sees of a list, and what it does to it.

Written from its observed behaviour alone; nothing of Taskyard is imported here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_STATUSES = ("pending", "in_progress", "completed")
_OPTIONAL = {"activeForm": str, "owner": str, "metadata": dict, "description": str}


def seen(path: Path) -> dict[str, Any] | None:
    """The task in a file, as Claude Code reads it; None if the file is invisible to it."""
    data = path.read_bytes()
    if data.startswith(b"\xef\xbb\xbf"):
        return None
    try:
        raw = json.loads(data.decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("id"), str) or not isinstance(raw.get("subject"), str):
        return None
    if raw.get("status") not in _STATUSES or not isinstance(raw.get("description"), str):
        return None
    if any(key in raw and not isinstance(raw[key], kind) for key, kind in _OPTIONAL.items()):
        return None
    if any(not _is_texts(raw.get(side)) for side in ("blocks", "blockedBy")):
        return None
    return raw


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def visible(folder: Path) -> dict[str, dict[str, Any]]:
    """Every task its TaskList would show, by file name; what it hides is left out."""
    found = {path.stem: raw for path in sorted(folder.glob("*.json")) if (raw := seen(path)) is not None}
    return {name: raw for name, raw in found.items() if not (raw.get("metadata") or {}).get("_internal")}


def next_id(folder: Path) -> int:
    """The id its TaskCreate would give."""
    numbers = [int(path.stem) for path in folder.glob("*.json") if re.fullmatch(r"[0-9]+", path.stem)]
    mark = folder / ".highwatermark"
    text = mark.read_text("utf-8").strip() if mark.exists() else ""
    found = re.match(r"[+-]?[0-9]+", text)
    return max([0, *numbers, int(found.group()) if found else 0]) + 1


def layout(raw: dict[str, Any]) -> bytes:
    """The bytes it would write: `JSON.stringify(raw, null, 2)`."""
    return json.dumps(raw, indent=2, ensure_ascii=False).encode("utf-8")


def write(folder: Path, raw: dict[str, Any]) -> None:
    """Write a task as it does: in place, without truncating first, without a newline at the end."""
    path = folder / f"{raw['id']}.json"
    data = layout(raw)
    with open(path, "r+b" if path.exists() else "wb") as file:
        file.write(data)
        file.truncate(len(data))


def update(folder: Path, task_id: str, **fields: Any) -> None:
    """Its TaskUpdate: known keys in its order, extra top-level keys lost."""
    raw = {**json.loads((folder / f"{task_id}.json").read_bytes()), **fields}
    order = ("id", "subject", "description", "activeForm", "owner", "status", "blocks", "blockedBy", "metadata")
    write(folder, {key: raw[key] for key in order if key in raw})


def delete(folder: Path, task_id: str) -> None:
    """Its deletion: the mark raised, the file gone, the id stripped from every other task."""
    mark = max(next_id(folder) - 1, int(task_id))
    (folder / ".highwatermark").write_text(str(mark), encoding="utf-8")
    (folder / f"{task_id}.json").unlink()
    for path in folder.glob("*.json"):
        raw = json.loads(path.read_bytes())
        if task_id in (*raw["blocks"], *raw["blockedBy"]):
            sides = {side: [other for other in raw[side] if other != task_id] for side in ("blocks", "blockedBy")}
            update(folder, path.stem, **sides)


def clean_up(folder: Path) -> None:
    """What its interactive UI does some seconds after everything is completed."""
    (folder / ".highwatermark").write_text(str(next_id(folder) - 1), encoding="utf-8")
    for path in folder.glob("*.json"):
        path.unlink()
