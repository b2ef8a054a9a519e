"""The open tasks for a model after a compaction, and the agents a client's hook acts for.

`format_open_tasks` is pure and bounded, in the format of TaskList.

A hook and an MCP server of one session have only a common ancestor process. The nearest ancestor of the hook
with a server directly below it is the client; a shell further up may have started others.
"""

from __future__ import annotations

import os

from taskyard.core.system import process_alive, stat_fields, this_host
from taskyard.integrations.model_context import MOST_CHARACTERS, MOST_TASKS
from taskyard.storage import process_registry
from taskyard.tasks.model import TaskStatus
from taskyard.tasks.text import format_listing, hidden_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from taskyard.tasks.model import Task


_RANK = (TaskStatus.IN_PROGRESS, TaskStatus.PENDING)
_HEAD = "[Automatic note from Taskyard: the open tasks of the list {name}, as they are now.]"


def format_open_tasks(name: str, tasks: Sequence[Task], *, unreadable: Container[str] = ()) -> str:
    """Return the open tasks in the format of TaskList, bounded, those in progress first; "" if there are none."""
    visible = [task for task in tasks if not task.is_internal]
    still_open = [task for task in visible if task.status in _RANK]
    if not still_open:
        return ""
    told = dict(zip((task.id for task in visible), format_listing(visible, unreadable=unreadable).split("\n")))
    head = _HEAD.format(name=name)
    room = MOST_CHARACTERS - len(head) - len(hidden_line(still_open)) - 1
    chosen: set[str] = set()
    for task in sorted(still_open, key=lambda task: _RANK.index(task.status)):
        line = _escape_line(told[task.id])
        room -= len(line) + 1
        if room < 0 or len(chosen) == MOST_TASKS:
            break
        chosen.add(task.id)
        told[task.id] = line
    rest = hidden_line(task for task in still_open if task.id not in chosen)
    return "\n".join([head, *(told[task.id] for task in still_open if task.id in chosen), *([rest] if rest else [])])


def _escape_line(line: str) -> str:
    """Return a line that can neither close a tag of the client nor open one."""
    plain = "".join(char if char.isprintable() else " " for char in line)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


#: Maximum number of ancestors examined.
_MAX_DEPTH = 100

#: A client runs a hook directly or through a shell. Higher ancestors may be shared with other clients.
_CLIENT_DEPTH = 2


def sibling_agents(home: str) -> list[str]:
    """Return the names of live instances started by our nearest such ancestor; none if there is none."""
    return [record.name for record in _siblings(_local_instances(home))]


def agents_by_name(home: str, wanted: str) -> list[str]:
    """Return sibling instances that requested the name `wanted` (perhaps `wanted-2` now), else `wanted` itself.

    Empty if it belongs to another client: our own server has had no request yet, and has no name.
    """
    living = _local_instances(home)
    if ours := [record.name for record in _siblings(living) if record.agent == wanted]:
        return ours
    near = set(_ancestors(os.getpid())[:_CLIENT_DEPTH])
    holders = [record for record in living if record.name == wanted]
    is_theirs = holders and not any(near.intersection(_ancestors(record.pid)) for record in holders)
    return [] if is_theirs else [wanted]


def _local_instances(home: str) -> list[process_registry.ProcessRecord]:
    return [
        record
        for record in process_registry.live_instances(home)
        if record.host == this_host() and process_alive(record.pid, record.start)
    ]


def _siblings(living: Sequence[process_registry.ProcessRecord]) -> list[process_registry.ProcessRecord]:
    below: dict[int, list[process_registry.ProcessRecord]] = {}
    for record in living:
        below.setdefault(_parent(record.pid), []).append(record)
    for pid in _ancestors(os.getpid()):
        if records := below.get(pid):
            return records
    return []


def _ancestors(pid: int) -> list[int]:
    """Return the pids of all ancestors, nearest first."""
    found: list[int] = []
    pid = _parent(pid)
    while pid > 1 and len(found) < _MAX_DEPTH:
        found.append(pid)
        pid = _parent(pid)
    return found


def _parent(pid: int) -> int:
    fields = stat_fields(str(pid))
    return int(fields[1]) if fields else 0
