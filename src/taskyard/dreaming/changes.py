"""What a dream made different: names, and a diff that a terminal may show."""

from __future__ import annotations

import os

from taskyard.dreaming import trees
from taskyard.errors import Conflict, shown
from taskyard.harmless import safe
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.dreaming.trees import Tree

#: A file's diff is made of so much at most: beyond it takes long to find, and nobody reads it.
_LARGEST, _MOST_LINES = 200_000, 4_000

#: All of a diff, in characters.
LONGEST_DIFF = 1_000_000


class Changes(NamedTuple):
    """The files that differ."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def touched(self) -> list[str]:
        """All of them."""
        return sorted((*self.added, *self.changed, *self.removed))


def between(before: Tree, after: Tree) -> Changes:
    """What differs, of files alone."""
    old = {name: entry for name, entry in before.items() if entry.kind == trees.FILE}
    new = {name: entry for name, entry in after.items() if entry.kind == trees.FILE}
    return Changes(
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(name for name in old.keys() & new.keys() if old[name].essence != new[name].essence)),
        tuple(sorted(old.keys() - new.keys())),
    )


def check(before: Tree, after: Tree) -> None:
    """Refuse a result that must not take the memory's place.

    Raises:
        Conflict: it holds a link or a file with another name elsewhere, or nothing is left.
    """
    for name, entry in after.items():
        if entry.kind == trees.LINK:
            raise Conflict(f"The dream made a link, {shown(name)}: links lead out of the memory.")
        if entry.kind == trees.FILE and entry.names > 1:
            raise Conflict(f"The dream made {shown(name)} another name of a file: who changes one changes both.")
    if between(before, after).removed and not any(entry.kind == trees.FILE for entry in after.values()):
        raise Conflict("The dream left nothing of the memory.")


def diff(before: str, after: str, changes: Changes) -> Iterator[str]:
    """The difference of two folders' files, in lines, unified; harmless to show, and bounded."""
    room = LONGEST_DIFF
    for name in changes.touched:
        for line in _of_file(before, after, name):
            room -= len(line) + 1
            if room < 0:
                yield "… and more: the diff is cut here."
                return
            yield line


def _of_file(before: str, after: str, name: str) -> Iterator[str]:
    import difflib

    title = safe(name)
    old, new = _lines(os.path.join(before, name)), _lines(os.path.join(after, name))
    if old is None or new is None:
        yield f"--- a/{title}"
        yield f"+++ b/{title}"
        yield "… differs: it is no text, or too long to compare."
        return
    from_, to = (f"a/{title}" if old else "/dev/null"), (f"b/{title}" if new else "/dev/null")
    found = False
    for line in difflib.unified_diff(old, new, from_, to, lineterm=""):
        found = True
        yield line
    if not found:
        yield f"--- a/{title}"
        yield f"+++ b/{title}"
        yield "… differs in its mode, or in how its lines end."


def _lines(path: str) -> list[str] | None:
    """A text's lines, harmless; none if it is not there; None if it is no text, or too long."""
    from taskyard.disk import files
    from taskyard.errors import Damaged

    try:
        data = files.read(path, most=_LARGEST)
    except Damaged:
        return None
    try:
        lines = (data or b"").decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    if lines and not lines[-1]:
        lines.pop()
    return [safe(line) for line in lines] if len(lines) <= _MOST_LINES else None
