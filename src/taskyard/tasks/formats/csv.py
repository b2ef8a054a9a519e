"""CSV format of a list, for spreadsheets.

A cell that a spreadsheet would run as a formula gets a leading apostrophe, which the import removes. Ids,
labels and capabilities are separated by commas within their cell, paths by newlines.
"""

from __future__ import annotations

import csv
import io

from taskyard.core.values import LONGEST_TEXT
from taskyard.errors import BadValue
from taskyard.tasks import model
from taskyard.tasks.formats.exchange import ImportedTask, check_count, check_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.tasks.formats.exchange import ExportedTask

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

#: Spreadsheets treat a cell that begins with one of these as a formula; some also fold full-width forms.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def to_csv(tasks: Sequence[ExportedTask]) -> str:
    """Return `tasks` with one row each under a header."""
    rows = [COLUMNS, *([_escape_formula(cell) for cell in _cells(item)] for item in tasks)]
    return "".join(map(_format_row, rows))


def _format_row(cells: Sequence[str]) -> str:
    """Format one row. A bare carriage return is quoted too: unquoted it would begin a row, perhaps a formula."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(cells)  # only characters of the terminator are quoted
    return out.getvalue().removesuffix("\r\n") + "\n"


def from_csv(text: str, *, source: str = "") -> list[ImportedTask]:
    """Parse the tasks in `text`; columns may be separated by commas, semicolons or tabs.

    Raises:
        BadValue, BadText: a column is unknown or a cell malformed; names the line.
    """
    found: list[ImportedTask] = []
    for line, row in _rows(text):
        check_count(len(found) + 1)
        found.append(_parse_task(row, f"line {line}", source))
    return found


def _cells(item: ExportedTask) -> Iterator[str]:
    task, external = item.task, model.external_of(item.task)
    yield from (task.id, task.subject, task.status.value, task.owner or "", ", ".join(item.blocked_by))
    yield item.parent or ""
    yield str(model.priority_of(task)) if "priority" in task.extra else ""
    yield ", ".join(model.labels_of(task))
    yield model.due_of(task) or ""
    yield ", ".join(model.requires_of(task))
    yield "\n".join(model.paths_of(task))
    yield from (external.system, external.id, external.url or "") if external else ("", "", "")
    yield task.active_form or ""
    yield "" if task.description == task.subject else task.description


def _escape_formula(cell: str) -> str:
    return "'" + cell if cell.lstrip("'").startswith(_FORMULA) else cell


def _unescape_formula(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA) else cell


def _rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row that is not empty, as cells by column."""
    # The module's limit is global for the process and below the length of a description.
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
            yield line, dict(zip(columns, map(_unescape_formula, row)))
    except csv.Error as error:
        raise BadValue(f"line {reader.line_num}", "", "rows as in the header", found=f"is not CSV ({error})") from None


def _delimiter(text: str) -> str:
    """Return the separator in the header: spreadsheets of many countries use semicolons."""
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


def _parse_task(row: dict[str, str], where: str, source: str) -> ImportedTask:
    def cell(name: str) -> str:
        return row.get(name, "").strip()

    given: dict[str, object] = {
        "labels": _split_cell(cell("labels"), ",") or None,
        "requires": _split_cell(cell("requires"), ",") or None,
        "paths": _split_cell(cell("paths"), "\n") or None,
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
        "blocked_by": [key.removeprefix("#") for key in _split_cell(cell("blocked_by").replace(";", ","), ",")],
        "parent": cell("parent").removeprefix("#") or None,
    }
    key = cell("id").removeprefix("#")
    return check_imported(key or where, fields, where=where, source=source if key else "", extras=given)


def _split_cell(cell: str, separator: str) -> list[str]:
    return [part.strip() for part in cell.split(separator) if part.strip()]
