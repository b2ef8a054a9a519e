"""A whole list taken over: under its ids, with its times, in one transaction that nobody thinks in."""

from __future__ import annotations

from taskyard.errors import ListNotEmpty
from taskyard.tasklist.postgres.writes import COMMIT, HAVE_LIST, Write, commit_values, new_op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.database.connection import Link
    from taskyard.tasklist.model import Act, Task
    from taskyard.tasklist.postgres.committing import Committing

#: The times that the tasks had; those that are not known stay as they are.
_TIMES = """
    UPDATE task t SET created_at = coalesce(w.created, t.created_at), updated_at = coalesce(w.updated, t.updated_at)
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS w(id, created, updated)
    WHERE t.list = %s AND t.id = w.id
"""

#: The same in the log: the change that was just made.
_LOGGED = """
    UPDATE change c SET created = ARRAY(
        SELECT t.created_at FROM unnest(c.tasks) WITH ORDINALITY AS n(id, place)
        JOIN task t ON t.list = c.list AND t.id = n.id ORDER BY n.place
    )
    WHERE c.op = %s
"""


def adopt(commits: Committing, tasks: Sequence[Task], act: Act, last: int) -> None:
    """Put tasks on an empty list as they are; no id up to `last`, nor one of theirs, is given out again.

    Raises:
        ListNotEmpty: it has tasks.
    """
    list_id, op = commits.list_id(), new_op()
    values = commit_values(list_id, [Write(task.id, False, True, task, None, 0) for task in tasks], act, op, seen={})
    times = [[int(task.id) for task in tasks], [t.created_at for t in tasks], [t.updated_at for t in tasks], list_id]

    def work(link: Link) -> None:
        link.execute(HAVE_LIST, [list_id])
        if link.execute("SELECT FROM change WHERE op = %s", [op]).rowcount:
            return  # it was done, and the answer lost
        there = link.execute("SELECT FROM task WHERE list = %s AND NOT is_gone", [list_id]).rowcount
        if there:
            raise ListNotEmpty(commits.name, there)
        link.execute("UPDATE list SET last_id = greatest(last_id, %s) WHERE id = %s", [last, list_id])
        if tasks:
            link.execute(COMMIT, values)
            link.execute(_TIMES, times)
            link.execute(_LOGGED, [op])

    commits.database.within(work)
