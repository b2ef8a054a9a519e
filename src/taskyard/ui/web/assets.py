"""Static files of the page: only those that the manifest names, read once, identified by hash.

    static/manifest.json     {"index.html": "<sha256>", "app.js": "<sha256>", …}

`scripts/assets.py` writes it. A requested path is looked up among these names and never used as a file path.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from taskyard.core import files
from taskyard.core.values import as_object
from taskyard.errors import Damaged

MANIFEST = "manifest.json"

#: Most bytes of one file.
LARGEST_ASSET = 4_000_000

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
        """The entity tag, by which a browser asks whether it changed."""
        return f'"{self.sha256[:32]}"'

    def matches_etag(self, tags: str) -> bool:
        """Return whether the file is among a browser's entity tags."""
        return any(tag.strip().removeprefix("W/") == self.etag for tag in tags.split(","))


def static_folder() -> str:
    """Return the folder of the static files."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")


def load_assets(path: str) -> dict[str, Asset]:
    """Load every file that the manifest in `path` names.

    Raises:
        Damaged: A file cannot be served, or the manifest is invalid.
    """
    return {name: _load_asset(os.path.join(path, name)) for name in read_manifest(path)}


def read_manifest(path: str) -> Mapping[str, str]:
    """Return the names and recorded hashes of the files in `path`."""
    where = os.path.join(path, MANIFEST)
    try:
        found = as_object(json.loads(files.read(where) or b"{}"))
    except ValueError:
        found = None
    if found is None or not all(isinstance(value, str) and is_safe_name(name) for name, value in found.items()):
        raise Damaged(where, "it does not name files with their hashes")
    return {name: str(value) for name, value in found.items()}


def compute_manifest(path: str) -> dict[str, str]:
    """Compute the manifest of the files in `path`."""
    return {
        name: _load_asset(os.path.join(path, name)).sha256 for name in sorted(_asset_names(path)) if name != MANIFEST
    }


def is_safe_name(name: str) -> bool:
    """Return whether a name is of a file below the folder, without hidden parts."""
    return all(part and not part.startswith(".") and "\\" not in part for part in name.split("/"))


def _load_asset(path: str) -> Asset:
    kind = _TYPES.get(os.path.splitext(path)[1])
    if kind is None:
        raise Damaged(path, "a page has no file of this type")
    body = files.read(path, most=LARGEST_ASSET)
    if body is None:
        raise Damaged(path, "it is not there")
    return Asset(body, kind, hashlib.sha256(body).hexdigest())


def _asset_names(path: str) -> Iterator[str]:
    for root, _, names in os.walk(path):
        for name in names:
            found = os.path.relpath(os.path.join(root, name), path)
            if is_safe_name(found) and os.path.splitext(name)[1] in _TYPES:
                yield found  # licence files without an extension are not served
