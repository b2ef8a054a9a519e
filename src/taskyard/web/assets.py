"""
The page's own files: those that its manifest names and no others, read once, told apart by their hash.

    static/manifest.json     {"index.html": "<sha256>", "app.js": "<sha256>", …}

`scripts/assets.py` writes it. A path from outside is looked up among these names: none is ever made into a file's path.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from taskyard.disk import files
from taskyard.errors import Damaged
from taskyard.shapes import as_object

MANIFEST = "manifest.json"

#: The largest file a page may have.
LARGEST = 4_000_000

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


class Asset(NamedTuple):
    """One file, as it is sent."""

    body: bytes
    type: str
    sha256: str

    @property
    def etag(self) -> str:
        """What a browser names to ask whether it changed."""
        return f'"{self.sha256[:32]}"'

    def is_known_as(self, tags: str) -> bool:
        """Whether it is among the tags that a browser has."""
        return any(tag.strip().removeprefix("W/") == self.etag for tag in tags.split(","))


def folder() -> str:
    """Where they are."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")


def load(path: str) -> dict[str, Asset]:
    """Every file that the manifest in `path` names.

    Raises:
        Damaged: one of them cannot be served, or the manifest is none.
    """
    return {name: _asset(os.path.join(path, name)) for name in manifest(path)}


def manifest(path: str) -> Mapping[str, str]:
    """The names of the files in `path`, and their hashes as they were written down."""
    where = os.path.join(path, MANIFEST)
    try:
        found = as_object(json.loads(files.read(where) or b"{}"))
    except ValueError:
        found = None
    if found is None or not all(isinstance(value, str) and is_plain(name) for name, value in found.items()):
        raise Damaged(where, "it does not name files with their hashes")
    return {name: str(value) for name, value in found.items()}


def written(path: str) -> dict[str, str]:
    """What the manifest of the files that are in `path` must say."""
    return {name: _asset(os.path.join(path, name)).sha256 for name in sorted(_names(path)) if name != MANIFEST}


def is_plain(name: str) -> bool:
    """Whether a name leads to a file below the folder, and to none that is hidden."""
    return all(part and not part.startswith(".") and "\\" not in part for part in name.split("/"))


def _asset(path: str) -> Asset:
    kind = _TYPES.get(os.path.splitext(path)[1])
    if kind is None:
        raise Damaged(path, "a page has no file of this type")
    body = files.read(path, most=LARGEST)
    if body is None:
        raise Damaged(path, "it is not there")
    return Asset(body, kind, hashlib.sha256(body).hexdigest())


def _names(path: str) -> Iterator[str]:
    for root, _, names in os.walk(path):
        for name in names:
            found = os.path.relpath(os.path.join(root, name), path)
            if is_plain(found) and os.path.splitext(name)[1] in _TYPES:
                yield found  # licences without an ending are for people who look into the package
