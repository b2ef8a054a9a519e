"""
CSV, for spreadsheets.

A cell that a spreadsheet would run as a formula gets a leading apostrophe, which reading takes away again.
Ids, labels and capabilities are separated by commas within their cell, paths by lines.
"""

from __future__ import annotations

import csv
import io

from taskyard.errors import BadValue
from taskyard.names import LONGEST_TEXT
from taskyard.tasklist import extras
from taskyard.tasklist.formats.imported import Imported, check_count, imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.tasklist.formats.outgoing import Outgoing

COLUMNS = (
    "id",
    "subject",
    "status",
    "owner",
    "blocked_by",
    "parent",
    "priority",
    "labels",
    "due",
    "requires",
    "paths",
    "external_system",
    "external_id",
    "external_url",
    "active_form",
    "description",
)
_OTHER_NAMES = {"title": "subject", "assignee": "owner", "depends_on": "blocked_by", "dependencies": "blocked_by"}

#: Spreadsheets take a cell that begins like this for a formula; some also fold the full-width forms.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def to_csv(tasks: Sequence[Outgoing]) -> str:
    """`tasks` with one line each under a header."""
    rows = [COLUMNS, *([_guarded(cell) for cell in _cells(item)] for item in tasks)]
    return "".join(map(_line, rows))


def _line(cells: Sequence[str]) -> str:
    """One row. A bare carriage return is quoted too: unquoted it would begin a row, and perhaps a formula."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(cells)  # only characters of the terminator are quoted
    return out.getvalue().removesuffix("\r\n") + "\n"


def from_csv(text: str, *, source: str = "") -> list[Imported]:
    """The tasks in `text`; commas, semicolons and tabs all separate columns.

    Raises:
        BadValue, BadText: a column is unknown or a cell malformed; names the line.
    """
    found: list[Imported] = []
    for line, row in _rows(text):
        check_count(len(found) + 1)
        found.append(_task(row, f"line {line}", source))
    return found


def _cells(item: Outgoing) -> Iterator[str]:
    task, external = item.task, extras.external_of(item.task)
    yield from (task.id, task.subject, task.status.value, task.owner or "", ", ".join(item.blocked_by))
    yield item.parent or ""
    yield str(extras.priority_of(task)) if "priority" in task.extra else ""
    yield ", ".join(extras.labels_of(task))
    yield extras.due_of(task) or ""
    yield ", ".join(extras.requires_of(task))
    yield "\n".join(extras.paths_of(task))
    yield from (external.system, external.id, external.url or "") if external else ("", "", "")
    yield task.active_form or ""
    yield "" if task.description == task.subject else task.description


def _guarded(cell: str) -> str:
    return "'" + cell if cell.lstrip("'").startswith(_FORMULA) else cell


def _unguarded(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA) else cell


def _rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each line that is not empty, as cells by column."""
    # The module's limit is one for the whole process and below what a description may hold.
    csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST_TEXT))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    columns: list[str] = []
    try:
        for row in reader:
            line = reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if not columns:
                columns = _columns(row)
                continue
            if len(row) > len(columns):
                raise BadValue(f"line {line}", f"{len(row)} cells long", f"at most {len(columns)}, as in the header")
            yield line, dict(zip(columns, map(_unguarded, row)))
    except csv.Error as error:
        raise BadValue(f"line {reader.line_num}", "", "rows as in the header", found=f"is no CSV ({error})") from None


def _delimiter(text: str) -> str:
    """What separates the header's columns: spreadsheets of many countries save semicolons."""
    header = text.lstrip().split("\n", 1)[0]
    return max(",;\t", key=header.count)


def _columns(header: list[str]) -> list[str]:
    names = [cell.strip().lower().replace(" ", "_").replace("-", "_") for cell in header]
    names = [_OTHER_NAMES.get(name, name) for name in names]
    for cell, name in zip(header, names):
        if name not in COLUMNS:
            raise BadValue("The column", cell, f"one of {', '.join(COLUMNS)}")
        if names.count(name) > 1:
            raise BadValue("The column", cell, "a name that no other column has")
    if "subject" not in names:
        raise BadValue("The header", ", ".join(header), "a column named subject")
    return names


def _task(row: dict[str, str], where: str, source: str) -> Imported:
    def cell(name: str) -> str:
        return row.get(name, "").strip()

    given: dict[str, object] = {
        "labels": _listed(cell("labels"), ",") or None,
        "requires": _listed(cell("requires"), ",") or None,
        "paths": _listed(cell("paths"), "\n") or None,
        "due": cell("due") or None,
    }
    if text := cell("priority"):
        given["priority"] = int(text) if text.isascii() and text.isdigit() and len(text) < 3 else text
    if any(cell(name) for name in ("external_system", "external_id", "external_url")):
        given["external"] = {"system": cell("external_system"), "id": cell("external_id")}
        if url := cell("external_url"):
            given["external"] = {"system": cell("external_system"), "id": cell("external_id"), "url": url}
    fields: dict[str, object] = {
        "subject": row.get("subject", ""),
        "description": row.get("description", ""),
        "active_form": row.get("active_form") or None,
        "owner": cell("owner") or None,
        "status": cell("status"),
        "blocked_by": [key.removeprefix("#") for key in _listed(cell("blocked_by").replace(";", ","), ",")],
        "parent": cell("parent").removeprefix("#") or None,
    }
    key = cell("id").removeprefix("#")
    return imported(key or where, fields, where=where, source=source if key else "", extras=given)


def _listed(cell: str, separator: str) -> list[str]:
    return [part.strip() for part in cell.split(separator) if part.strip()]
