"""
`taskyard task list --watch`: the list, kept in view.

On a terminal the screen is drawn anew at every change. Elsewhere the rows come once, then a line
for each change; with `--json`, the whole answer on one line for each change. The kernel tells of
changes, or the server does; on a terminal a look every few seconds moves the clocks on. While a database is away
that is said, and nothing that happened meanwhile is left out.
"""

from __future__ import annotations

import sys
from functools import partial

from taskyard.cli.output import columns, is_terminal, print_line, style
from taskyard.cli.steady import Steady
from taskyard.cli.task.listing import chosen, hidden_done, nothing_here, show
from taskyard.cli.task.log import line_of
from taskyard.clock import now_ms
from taskyard.view.ordering import hidden_line
from taskyard.view.text import done_line, safe, task_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.tasklist.model import Change, Listing

#: With nothing unfinished no clock moves; only file events matter.
_LONG = 3600.0

_CLEAR = "\x1b[H\x1b[2J"


def watch(args: Args, yard: Yard) -> int:
    """Show the list until interrupted, or until all is done where that was asked for."""
    drawing = is_terminal(sys.stdout) and not args.as_json
    position = yard.tasks.store.position()
    listing = yard.tasks.list()
    steady = Steady(args, yard.lists)
    shown: object = None
    if not drawing:
        show(args, yard, listing)
        shown = tuple(listing)
    while True:
        if drawing:
            _draw(args, yard, listing, steady.trouble)
        sys.stdout.flush()
        if args.until_done and all(task.is_done for task in listing):
            return 0
        unfinished = any(not task.is_done for task in listing)
        yard.tasks.store.wait(yard.settings.poll_interval if unfinished else _LONG)
        found = steady.look(yard.tasks.list)
        listing = listing if found is None else found
        if args.as_json:
            if tuple(listing) != shown:
                show(args, yard, listing)
                shown = tuple(listing)
        elif not drawing and found is not None:
            news = steady.look(partial(yard.tasks.log, since=position)) or ()
            position = _told(news) or position


def _told(news: Sequence[Change]) -> int | None:
    """A line for each change; where to go on from, if there were any."""
    for change in news:
        if not change.aborted:
            print_line(line_of(change))
    return news[-1].id + 1 if news else None


def _draw(args: Args, yard: Yard, listing: Listing, trouble: str) -> None:
    rows = chosen(args, listing, me=yard.agent, just_done=True)
    room = max(3, _height() - (4 if trouble else 3))
    lines = task_rows(rows[:room], now=now_ms(), columns=columns(), style=style(args))
    left = [row for row in rows[room:] if row.state != "done"]
    if rest := hidden_line(row.task for row in left):
        lines.append(rest)
    done = hidden_done(args, listing) - sum(row.state == "done" for row in rows)
    if line := done_line(done, style(args)):
        lines.append(line)
    if trouble:
        lines.append(safe(trouble))
    sys.stdout.write(_CLEAR + "\n".join(lines or [nothing_here(args, yard, listing)]) + "\n")


def _height() -> int:
    import os

    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except (OSError, ValueError):
        return 24
