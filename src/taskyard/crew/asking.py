"""
What a program that has members is told, in a private file; and its first word, in another beside it.

A command line could not hold it: words there are seen by every user of the machine, and tmux interprets some.
"""

from __future__ import annotations

import json
import os
import time

from taskyard.crew.wish import Wish
from taskyard.disk import files
from taskyard.errors import Damaged, TaskyardError
from taskyard.runtime.ending import read
from taskyard.shapes import as_list, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Of the terminal a member lives in, not of whoever started it.
_OF_TERMINAL = ("TERM", "TMUX", "TMUX_PANE", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")

#: Who a process is to Taskyard: whoever lives in a window of its own is somebody else.
_OF_OURSELVES = ("TASKYARD_JOB", "TASKYARD_INSTANCE", "TASKYARD_AGENT")

#: Seconds after which a file that nobody has read is nobody's.
_OLD = 3600.0


class Request(NamedTuple):
    """What such a program was told."""

    wish: Wish
    names: tuple[str, ...]
    said: str  #: where its first word goes


def written(home: str, wish: Wish, names: Sequence[str], *, place: Mapping[str, str]) -> str:
    """Put a request into a private file, with our surroundings and the lists' `place`; `take` removes it again."""
    folder = f"{home}/starting"
    files.make_private_folder(home)
    files.make_private_folder(folder)
    _sweep(folder)
    path = f"{folder}/{os.urandom(8).hex()}.json"
    env = {key: value for key, value in os.environ.items() if key not in (*_OF_TERMINAL, *_OF_OURSELVES)}
    env |= {"TASKYARD_HOME": home, **place}
    request = {"wish": wish._asdict(), "names": list(names), "env": env, "cwd": os.getcwd()}
    files.create(path, json.dumps(request).encode("ascii"))
    return path


def take(path: str, *, surroundings: bool) -> Request:
    """Read and remove a request; with `surroundings`, be where and in which environment it was written.

    Raises:
        Damaged, StorageError: it is none.
    """
    found = read(path) or {}
    wish, env, cwd = as_object(found.get("wish")), as_object(found.get("env")), as_text(found.get("cwd"))
    names = tuple(as_text(name) for name in as_list(found.get("names")) or ())
    if wish is None or env is None or not cwd or not names:
        raise Damaged(path, "it is no request for members")
    os.unlink(path)
    if surroundings:
        kept = {key: os.environ[key] for key in _OF_TERMINAL if key in os.environ}
        os.environ.clear()
        os.environ.update({key: as_text(value) for key, value in env.items()} | kept)
        os.chdir(cwd)
    return Request(Wish.from_json(wish), names, f"{path}.said")


def say(said: str, **word: object) -> None:
    """Tell whoever asked what became of it; the first word counts."""
    try:
        files.create(said, json.dumps(word).encode("ascii"))
    except (TaskyardError, FileExistsError):
        pass  # it was said, or nobody listens


def heard(path: str) -> Mapping[str, object] | None:
    """The first word of the program that took the request `path`."""
    return read(f"{path}.said")


def forget(path: str) -> None:
    """Nobody waits for an answer any more."""
    for file in (path, f"{path}.said"):
        try:
            os.unlink(file)
        except FileNotFoundError:
            pass


def _sweep(folder: str) -> None:
    """Remove what somebody left who was killed: it may hold secrets."""
    with os.scandir(folder) as entries:
        old = [entry.path for entry in entries if time.time() - entry.stat(follow_symlinks=False).st_mtime > _OLD]
    for path in old:
        try:
            os.unlink(path)
        except OSError:
            pass  # somebody was quicker
