"""
A list as a file, and back.

Export writes JSON (everything), a Markdown checklist, CSV, DOT or Mermaid; import reads the first three.
All of it is pure: texts and records in, texts and records out. `plan_import` says what an import would add.
"""

from __future__ import annotations

from taskyard.errors import BadValue
from taskyard.names import folder_name
from taskyard.tasklist.formats.imported import Imported, check_size, check_whole
from taskyard.tasklist.formats.outgoing import harmless, outgoing
from taskyard.tasklist.import_plan import ImportPlan, Skipped, plan_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.tasklist.model import Task

__all__ = ["READ", "WRITTEN", "ImportPlan", "Imported", "Skipped", "export", "parse", "plan_import"]

READ = ("json", "markdown", "csv")
WRITTEN = (*READ, "dot", "mermaid")


def export(tasks: Iterable[Task], format: str, *, list_name: str = "", last_id: int = 0) -> str:
    """`tasks` as text in `format`; trackers stay behind. With `list_name` a later import knows where they came from.

    `last_id`: the highest that was ever given out on that list.

    Raises:
        BadValue: there is no such format.
    """
    leaving = outgoing(tasks)
    name = folder_name("a list", list_name) if list_name else ""
    # Each format is loaded when asked for: the command line starts without them.
    if format == "json":
        from taskyard.tasklist.formats.json_format import to_json

        return to_json(leaving, list_name=name, last_id=last_id)
    if format == "markdown":
        from taskyard.tasklist.formats.markdown_format import to_markdown

        return to_markdown([harmless(item) for item in leaving], list_name=name)
    if format == "csv":
        from taskyard.tasklist.formats.csv_format import to_csv

        return to_csv([harmless(item) for item in leaving])
    if format in ("dot", "mermaid"):
        from taskyard.tasklist.formats.graph_format import to_dot, to_mermaid

        return to_dot(leaving, list_name=name) if format == "dot" else to_mermaid(leaving)
    raise BadValue("The export format", format, f"one of {', '.join(WRITTEN)}")


def parse(text: str, format: str, *, source: str = "") -> list[Imported]:
    """The tasks `text` describes. `source` names the list they come from, where the text itself does not.

    Raises:
        BadValue, BadText: the text is malformed; names the line or element, and the field.
    """
    text = check_size(text)
    if format == "json":
        from taskyard.tasklist.formats.json_format import from_json

        found = from_json(text, source=source)
    elif format == "markdown":
        from taskyard.tasklist.formats.markdown_format import from_markdown

        found = from_markdown(text, source=source)
    elif format == "csv":
        from taskyard.tasklist.formats.csv_format import from_csv

        found = from_csv(text, source=source)
    else:
        raise BadValue("The import format", format, f"one of {', '.join(READ)}")
    check_whole(found)
    return found
