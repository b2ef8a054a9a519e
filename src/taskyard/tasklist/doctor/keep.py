"""Originals of what the doctor changes: `.taskyard/doctor/<when>/…`, as they were, where nobody else looks."""

from __future__ import annotations

import os

from taskyard.clock import iso, now_ms
from taskyard.disk import files

#: Copied as one piece; nothing that is repaired by rewriting comes near it.
LARGEST_COPY = 64 * 1024 * 1024


class Keep:
    """Where one run of the doctor puts originals; made when the first one comes."""

    def __init__(self, root: str, ours: str) -> None:
        """`root`: the folder the originals are in; `ours`: the part of it that is Taskyard's own."""
        self._root = root
        self._ours = ours
        self.folder = os.path.join(ours, "doctor", iso(now_ms()).replace(":", "-"))

    def copy(self, path: str) -> str:
        """Keep a copy of `path`; where it is. The first copy of a run is the original and stays."""
        target = self._target(path)
        data = files.read(path, most=LARGEST_COPY)
        if data is not None:
            try:
                files.create(target, data)
            except FileExistsError:
                pass
        return target

    def move(self, path: str) -> str:
        """Take `path` away, whatever it is, and keep it; where it is. A link is moved, not followed."""
        target = self._target(path)
        while os.path.lexists(target):
            target += "~"
        try:
            os.rename(path, target)
        except OSError as error:
            raise files.storage_error(path, error) from error
        return target

    def _target(self, path: str) -> str:
        target = os.path.join(self.folder, os.path.relpath(path, self._root))
        files.make_private_folder(self._ours)
        files.make_private_folder(os.path.join(self._ours, "doctor"))
        files.make_private_folder(self.folder)
        files.make_private_folder(os.path.dirname(target))
        return target
