"""
Lease records: which instance holds a claim. One file per claimed task in `.taskyard/leases/`.

They stand beside the tasks, not in them: another program patches a task's metadata from an older
read, and a token that came back from the dead would be no fence.
"""

from __future__ import annotations

import json
import os
from typing import cast

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.names import is_id
from taskyard.shapes import as_object
from taskyard.tasklist.model import Lease, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.tasklist.list_folder import ListFolder


class LeaseFiles:
    """The lease records of one list. Writers hold the task's lock."""

    def __init__(self, folder: ListFolder, *, alive: Callable[[str, str], bool | None]) -> None:
        """`alive(lock file, host)` is the kernel's word on a holder; None = it cannot be told from here."""
        self._folder = folder
        self._alive = alive

    def read(self, task_id: str) -> tuple[Lease | None, int]:
        """The record of a task, and how many holders it lost before."""
        data = files.read(self._folder.lease(task_id), most=65536)
        return _parsed(data) if data is not None else (None, 0)

    def write(self, task_id: str, lease: Lease | None, losses: int) -> None:
        """Put the record in place; without lease and losses there is none."""
        path = self._folder.lease(task_id)
        if lease is None and not losses:
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass
            return
        held = {} if lease is None else {k: v for k, v in lease._asdict().items() if v not in (None, "")}
        files.replace(path, json.dumps({**held, "losses": losses}).encode())

    def current(self, task: Task) -> Lease | None:
        """The lease under which the task is owned now, dead or alive."""
        if task.owner is None or task.is_done:
            return None
        lease, _ = self.read(task.id)
        return lease if lease is not None and lease.owner == task.owner else None

    def is_dead(self, lease: Lease) -> bool:
        """Whether the holder is gone for certain; what cannot be told counts as living."""
        if lease.kind == "time":
            return lease.expires is not None and lease.expires < now_ms()
        return lease.kind == "process" and self._alive(lease.lock, lease.host) is False

    def ids(self) -> list[str]:
        """The tasks that have a record."""
        try:
            names = os.listdir(self._folder.leases)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []
        return [name[:-5] for name in names if name.endswith(".json") and is_id(name[:-5])]


def _parsed(data: bytes) -> tuple[Lease | None, int]:
    """A record as written above; one that cannot be read holds nothing."""
    try:
        raw = as_object(json.loads(data)) or {}
    except (ValueError, RecursionError):
        return None, 0
    texts = {name: raw.get(name, "") for name in ("owner", "instance", "token", "kind", "host", "lock")}
    numbers = {name: raw.get(name) for name in ("since", "expires", "losses")}
    losses = numbers["losses"] if isinstance(numbers["losses"], int) else 0
    if not texts["token"] or not all(isinstance(text, str) for text in texts.values()):
        return None, losses
    since, expires = numbers["since"], numbers["expires"]
    return (
        Lease(
            **cast("dict[str, str]", texts),
            since=since if isinstance(since, int) else 0,
            expires=expires if isinstance(expires, int) else None,
        ),
        losses,
    )
