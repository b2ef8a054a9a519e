"""Who we are to other machines: a home on a machine, under an id made by chance and a name for people."""

from __future__ import annotations

import json
import os

from taskyard.disk import files
from taskyard.disk.processes import this_host
from taskyard.errors import Damaged
from taskyard.runtime.events import Events
from taskyard.shapes import as_number, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.config import Settings

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"

#: A name that is longer does not fit beside a job.
_LONGEST_NAME = 40


class Host(NamedTuple):
    """One home, as others see it."""

    home: str
    id: str
    name: str
    since: int  #: events up to this one happened before it had anything to do with a database

    @property
    def channel(self) -> str:
        """On which its relay is told of requests."""
        return f"host_{self.id}"


def host_of(home: str, settings: Settings) -> Host:
    """Who this home is; from the first time on it is always the same, unless the home was copied to another machine."""
    path = f"{home}/host.json"
    name = (settings.host or os.uname().nodename)[:_LONGEST_NAME]
    machine = this_host().partition("/")[0]
    while True:
        raw = _read(path)
        if as_text(raw.get("id")) and raw.get("machine") == machine:
            return Host(home, as_text(raw["id"]), name, as_number(raw.get("since")))
        files.make_private_folder(home)
        made = {
            "id": "".join(_ALPHABET[byte % 36] for byte in os.urandom(12)),
            "machine": machine,
            "since": Events(home).skip(),
        }
        _put(path, json.dumps(made).encode(), instead=bool(raw))


def _put(path: str, data: bytes, *, instead: bool) -> None:
    """Have it there, unless somebody was quicker; `instead` of one that another machine made."""
    if instead:
        files.replace(path, data)
        return
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    files.create(temporary, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        if not _read(path):
            os.replace(temporary, path)  # what is there says nothing
            return
    os.unlink(temporary)


def _read(path: str) -> dict[str, object]:
    try:
        return as_object(json.loads(files.read(path, most=4096) or b"{}")) or {}
    except (Damaged, ValueError, RecursionError):
        return {}
