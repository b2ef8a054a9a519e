"""
What we put into whose files, and what was there before: `<home>/clients/<client>.json`, by file.

It is written before the file is: if we die in between, it speaks of things that are not there, which harms nobody.
"""

from __future__ import annotations

import json

from taskyard.disk import files
from taskyard.errors import Damaged
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def read(home: str, client: str) -> dict[str, dict[str, object]]:
    """What is known of a client's files; nothing, where that cannot be read."""
    try:
        raw = files.read(_path(home, client))
        found = as_object(json.loads(raw)) if raw else None
    except (Damaged, ValueError, RecursionError):
        found = None
    records = {path: as_object(record) for path, record in (found or {}).items()}
    return {path: record for path, record in records.items() if record is not None}


def write(home: str, client: str, records: Mapping[str, Mapping[str, object]]) -> None:
    """Keep what is known; with nothing to know there is no file."""
    path = _path(home, client)
    if not records:
        files.remove(path)
        return
    files.make_private_folder(home)
    files.make_private_folder(f"{home}/clients")
    files.replace(path, json.dumps(records, indent=2).encode() + b"\n")


def _path(home: str, client: str) -> str:
    return f"{home}/clients/{client}.json"
