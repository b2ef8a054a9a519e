"""`taskyard task …`: the shared list from a shell. One table; each verb lives in a file by its subject."""

from __future__ import annotations

from taskyard.cli.command import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = "taskyard.cli.task"

ROWS: Mapping[str, Row] = {
    "add": Row(f"{_HERE}.add:ADD", "Put a task on the list"),
    "list": Row(f"{_HERE}.listing:LIST", "Show the tasks, live with --watch"),
    "show": Row(f"{_HERE}.show:SHOW", "Show everything about one task"),
    "next": Row(f"{_HERE}.next:NEXT", "Find a free task and claim it, in one step"),
    "claim": Row(f"{_HERE}.claims:CLAIM", "Take a task"),
    "start": Row(f"{_HERE}.moves:START", "Say that work begins"),
    "done": Row(f"{_HERE}.moves:DONE", "Say that it is done"),
    "reopen": Row(f"{_HERE}.moves:REOPEN", "Put a task back to pending"),
    "block": Row(f"{_HERE}.links:BLOCK", "Let a task wait for others"),
    "unblock": Row(f"{_HERE}.links:UNBLOCK", "Let a task no longer wait for others"),
    "assign": Row(f"{_HERE}.claims:ASSIGN", "Name a new owner, who gets mail"),
    "release": Row(f"{_HERE}.claims:RELEASE", "Put a task back into the pool"),
    "renew": Row(f"{_HERE}.claims:RENEW", "Hold on to a claim for longer"),
    "edit": Row(f"{_HERE}.edit:EDIT", "Change the fields of a task"),
    "rm": Row(f"{_HERE}.removal:RM", "Take tasks off the list"),
    "archive": Row(f"{_HERE}.removal:ARCHIVE", "Put completed tasks away"),
    "reset": Row(f"{_HERE}.removal:RESET", "Put the whole list away"),
    "restore": Row(f"{_HERE}.restore:RESTORE", "Bring removed tasks back"),
    "log": Row(f"{_HERE}.log:LOG", "What happened, by whom and why"),
    "events": Row(f"{_HERE}.events:EVENTS", "What happened, as JSON lines, live if wanted"),
    "import": Row(f"{_HERE}.portable:IMPORT", "Add the tasks of a JSON, Markdown or CSV file"),
    "export": Row(f"{_HERE}.portable:EXPORT", "The list as JSON, Markdown, CSV, DOT or Mermaid"),
}
