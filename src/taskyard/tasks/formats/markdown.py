"""Markdown format of a list: a checklist that people can edit.

    - [x] #1 Freeze the API · @ada
    - [ ] #2 Migrate the schema · in progress · @bob · after #1
      > The description, quoted, so that a checklist inside it is not taken for tasks.
      - [ ] #3 Backfill · after #1 · priority 2 · due 2026-05-01 · label db

Parts are nested below their parent. In a hand-written list neither id nor attributes are needed, and plain
indented text is a description too. Attributes are parsed from the right; the first part that is none
belongs to the subject.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from taskyard.errors import BadValue
from taskyard.tasks import model
from taskyard.tasks.formats.exchange import ImportedTask, check_count, check_imported
from taskyard.tasks.model import TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.tasks.formats.exchange import ExportedTask

#: Levels; deeper parts are written at the margin with `part of #…`, because deeper lists are unreadable.
MAX_DEPTH = 20

_ITEM = re.compile(r"([ \t]*)[-*+] \[(.)\](?:[ \t]+(.*))?$")
_LIST_MARK = re.compile(r"<!-- taskyard list: ([A-Za-z0-9_-]{1,200}) -->$")
_KEYS = r"#[0-9]+(?:, ?#[0-9]+)*"
_ATTRIBUTE = re.compile(
    r"(?P<doing>in progress)|@(?P<owner>.+)|after (?P<after>" + _KEYS + r")|part of #(?P<parent>[0-9]+)"
    r"|priority (?P<priority>[0-9]{1,2})|due (?P<due>\S+)|label (?P<label>.+)"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~·])")
_MARKS = {" ": "pending", "x": "completed", "X": "completed", "~": "in_progress", "/": "in_progress"}


def to_markdown(tasks: Sequence[ExportedTask], *, list_name: str = "") -> str:
    """Return a checklist with status, owner, blockers, parents, priority, due date, labels and descriptions."""
    lines = [f"# {list_name}", f"<!-- taskyard list: {list_name} -->", ""] if list_name else []
    for depth, item, named in _walk_tree(tasks):
        margin = "  " * depth
        lines.append(f"{margin}- {_title(item, name_parent=named)}")
        if item.task.description and item.task.description != item.task.subject:
            lines += [f"{margin}  > {line}" if line else f"{margin}  >" for line in item.task.description.split("\n")]
    return "\n".join(lines) + "\n"


def _walk_tree(tasks: Sequence[ExportedTask]) -> Iterator[tuple[int, ExportedTask, bool]]:
    """Yield depth, task, and whether its parent must be named because the task is not nested below it."""
    parts: dict[str, list[ExportedTask]] = {}
    for item in tasks:
        if item.parent:
            parts.setdefault(item.parent, []).append(item)
    written: set[str] = set()
    roots = [item for item in tasks if not item.parent]
    # Tasks below no root are in a cycle of parents, made by another program: each is written at the margin.
    for start in [*roots, *tasks]:
        todo = [(0, start)]
        while todo:
            depth, item = todo.pop()
            if item.task.id in written:
                continue
            written.add(item.task.id)
            yield depth, item, depth == 0 and item.parent is not None
            below = depth + 1 if depth < MAX_DEPTH else 0
            todo += [(below, part) for part in reversed(parts.get(item.task.id, []))]


def _title(item: ExportedTask, *, name_parent: bool) -> str:
    task = item.task
    box = "x" if task.is_done else " "
    attributes = ["in progress"] if task.status is TaskStatus.IN_PROGRESS else []
    if task.owner:
        attributes.append(f"@{_escaped(task.owner)}")
    if item.blocked_by:
        attributes.append("after " + ", ".join(f"#{blocker}" for blocker in item.blocked_by))
    if name_parent:
        attributes.append(f"part of #{item.parent}")
    if "priority" in task.extra:
        attributes.append(f"priority {model.priority_of(task)}")
    if due := model.due_of(task):
        attributes.append(f"due {due.replace(' ', 'T')}")
    attributes += [f"label {_escaped(label)}" for label in model.labels_of(task)]
    return f"[{box}] #{task.id} " + " · ".join([_escaped(task.subject), *attributes])


def _escaped(text: str) -> str:
    r"""Return `text` on one line, with separators, backslashes and `<` escaped.

    >>> _escaped("a · b <c>")
    'a \\· b \\<c>'
    """
    one_line = text.replace("\r", " ").replace("\n", " ")
    return one_line.replace("\\", "\\\\").replace("·", "\\·").replace("<", "\\<")


def from_markdown(text: str, *, source: str = "") -> list[ImportedTask]:
    """Parse the tasks of every checklist in `text`; other text is ignored.

    Raises:
        BadValue, BadText: a box or field is malformed; names the line.
    """
    reader = _Reader(source)
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        reader.take(line, number)
    return [item.checked(reader.source) for item in reader.items]


class _Item:
    """A task while its lines are being read."""

    key: str

    def __init__(self, line: int, indent: int, mark: str, title: str, above: _Item | None) -> None:
        if mark not in _MARKS:
            raise BadValue(f"The box in line {line}", f"[{mark}]", "[ ], [x] or [~]")
        self.line, self.indent = line, indent
        self.fields: dict[str, object] = {"status": _MARKS[mark], "parent": above.key if above else None}
        self.extras: dict[str, object] = {}
        self.labels: list[str] = []  # last first, as they are found
        self.description: list[str] = []
        numbered = re.match(r"#([0-9]+)(?:\s+|$)", title)
        self.has_id = numbered is not None
        self.key = numbered[1] if numbered else f"line {line}"
        self._read_title(title[numbered.end() :] if numbered else title)

    def _read_title(self, title: str) -> None:
        parts = title.split(" · ")
        while len(parts) > 1 and (found := _ATTRIBUTE.fullmatch(parts[-1].strip())):
            parts.pop()
            self._set(found)
        self.fields["subject"] = _unescape(" · ".join(parts)).strip()

    def _set(self, found: re.Match[str]) -> None:
        name = found.lastgroup
        value = _unescape(found[name or 0])
        if name == "doing":
            if self.fields["status"] == "pending":
                self.fields["status"] = "in_progress"
        elif name == "after":
            self.fields["blocked_by"] = [key.strip().removeprefix("#") for key in value.split(",")]
        elif name == "priority":
            self.extras["priority"] = int(value)
        elif name == "label":
            self.labels.append(value)
        elif name == "due":
            self.extras["due"] = value
        else:
            self.fields[str(name)] = value

    def checked(self, source: str) -> ImportedTask:
        self.fields["description"] = "\n".join(self.description)
        if self.labels:
            self.extras["labels"] = self.labels[::-1]
        origin = source if self.has_id else ""
        return check_imported(self.key, self.fields, where=f"line {self.line}", source=origin, extras=self.extras)


class _Reader:
    """Parser state within the document."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.items: list[_Item] = []
        self._open: list[_Item] = []  # the current item, after those it is a part of
        self._fenced = False

    def take(self, line: str, number: int) -> None:
        text = line.strip(" \t")
        if text.startswith("```"):
            self._fenced = not self._fenced
        item = None if self._fenced else _ITEM.match(line)
        if item:
            self._start(item, number)
        elif text:
            self._text(line)

    def _start(self, found: re.Match[str], number: int) -> None:
        check_count(len(self.items) + 1)
        indent = _width(found[1])
        while self._open and self._open[-1].indent >= indent:
            self._open.pop()
        item = _Item(number, indent, found[2], found[3] or "", self._open[-1] if self._open else None)
        self.items.append(item)
        self._open.append(item)

    def _text(self, line: str) -> None:
        text = line.lstrip(" \t")
        indent = _width(line[: len(line) - len(text)])
        inside = bisect_left(self._open, indent, key=lambda item: item.indent)  # each is deeper than the one before
        if inside:
            quoted = text.startswith(">")
            self._open[inside - 1].description.append(text[1:].removeprefix(" ") if quoted else text.rstrip())
            return
        self._open.clear()  # a heading or paragraph at the margin ends the list
        if not self.source and not self.items and (mark := _LIST_MARK.match(line)):
            self.source = mark[1]


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _width(margin: str) -> int:
    return len(margin.expandtabs(4))
