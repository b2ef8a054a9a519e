"""
The graph of what waits for what, as lines of text: levels as columns, tasks in them, lines between them. Pure.

     level 0            level 1            level 2
     ✓ 11 Freeze API ─▶ ◐ 12 Migrate ──┬─▶ ◌ 13 Switch readers
     ○ 9 Release notes                 └─▶ ◌ 17 Backfill

What follows from other lines is left out: who waits for 12 and 13, where 13 waits for 12, has a line from 13 alone.
A line that passes a level has a row of its own there.
"""

from __future__ import annotations

from taskyard.typed import NamedTuple
from taskyard.view.glyphs import Style
from taskyard.view.text import cut, padded, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from taskyard.view.task_views import TaskView

#: Columns of a task in the graph at most.
WIDEST = 26

#: More tasks than this are no picture any more; the first of the list's order are drawn.
MOST = 400

_N, _E, _S, _W = 1, 2, 4, 8
_LINES = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
_ASCII_LINES = " |-+||++-+-++++" + "+"


class Node(NamedTuple):
    """Where a task is in the drawing."""

    id: str
    row: int  #: the line it is on
    column: int  #: where its glyph is
    width: int
    token: str
    level: int


class Drawing(NamedTuple):
    """Lines of text, and where the tasks are in them."""

    lines: tuple[str, ...] = ()
    nodes: Mapping[str, Node] = {}
    after: Mapping[str, tuple[str, ...]] = {}  #: the lines that are drawn: from a task to those that wait for it
    before: Mapping[str, tuple[str, ...]] = {}
    left_out: int = 0  #: tasks that were too many


class _Spot(NamedTuple):
    """A place in a column: a task's, or one where a line passes."""

    key: tuple[str, str]  #: a task's id and "", or the two tasks of the line that passes
    parents: tuple[tuple[str, str], ...]


def draw(tasks: Sequence[TaskView], style: Style = Style()) -> Drawing:  # noqa: B008  (immutable)
    """The graph of `tasks`."""
    shown = {task.id: task for task in tasks[:MOST]}
    if not shown:
        return Drawing()
    before = reduced({task_id: _open_links(task, shown) for task_id, task in shown.items()}, shown)
    columns = _columns(shown, before)
    rows = _rows(columns)
    labels = {task_id: _label(task, style) for task_id, task in shown.items()}
    canvas, nodes = _painted(columns, rows, labels, shown, style)
    after: dict[str, tuple[str, ...]] = {}
    for task_id, parents in before.items():
        for parent in parents:
            after[parent] = (*after.get(parent, ()), task_id)
    return Drawing(tuple(canvas), nodes, after, before, len(tasks) - len(shown))


def walk(drawing: Drawing, task_id: str, across: int, down: int) -> str:
    """The task that is next in a direction: along a line, or up and down in its column; itself if there is none."""
    node = drawing.nodes.get(task_id)
    if node is None:
        return next(iter(drawing.nodes), "")
    if across:
        ways = (drawing.after if across > 0 else drawing.before).get(task_id, ())
        return min(ways, key=lambda other: abs(drawing.nodes[other].row - node.row), default=task_id)
    column = sorted((one.row, one.id) for one in drawing.nodes.values() if one.level == node.level)
    place = column.index((node.row, node.id)) + down
    return column[min(max(place, 0), len(column) - 1)][1]


def reduced(before: Mapping[str, Sequence[str]], tasks: Mapping[str, TaskView]) -> dict[str, tuple[str, ...]]:
    """Without the lines that follow from others."""
    above: dict[str, set[str]] = {}
    found: dict[str, tuple[str, ...]] = {}
    for task_id in sorted(before, key=lambda one: tasks[one].level):
        implied: set[str] = set()
        for parent in before[task_id]:
            implied |= above.get(parent, set())
        found[task_id] = tuple(parent for parent in before[task_id] if parent not in implied)
        above[task_id] = implied.union(before[task_id])
    return found


def _open_links(task: TaskView, shown: Mapping[str, TaskView]) -> tuple[str, ...]:
    """What a task waits for; a line that goes back, in a circle somebody wrote by hand, is not drawn."""
    return tuple(b for b in task.blocked_by if b in shown and shown[b].level < task.level)


def _label(task: TaskView, style: Style) -> str:
    return cut(f"{task.ascii if style.ascii else task.glyph} {task.id} {task.subject}", WIDEST, style)


def _columns(shown: Mapping[str, TaskView], before: Mapping[str, Sequence[str]]) -> list[list[_Spot]]:
    """What is in each level, lines that pass among it."""
    columns: list[list[_Spot]] = [[] for _ in range(max(task.level for task in shown.values()) + 1)]
    for task in sorted(shown.values(), key=lambda task: (task.level, task.rank)):
        parents: list[tuple[str, str]] = []
        for parent in before[task.id]:
            last = (parent, "")
            for level in range(shown[parent].level + 1, task.level):
                columns[level].append(_Spot((parent, task.id), (last,)))
                last = (parent, task.id)
            parents.append(last)
        columns[task.level].append(_Spot((task.id, ""), tuple(parents)))
    return columns


def _rows(columns: Sequence[list[_Spot]]) -> dict[tuple[int, tuple[str, str]], int]:
    """A line for every spot: beside the first it comes from where that is free, below its neighbours always."""
    rows: dict[tuple[int, tuple[str, str]], int] = {}
    for level, spots in enumerate(columns):
        wanted = [[rows[level - 1, parent] for parent in spot.parents] for spot in spots]
        order = sorted(range(len(spots)), key=lambda at: (_middle(wanted[at]), at))
        free = 0
        for at in order:
            row = max(free, min(wanted[at], default=0))
            rows[level, spots[at].key] = row
            free = row + 1
    return rows


def _middle(rows: Sequence[int]) -> float:
    return sum(rows) / len(rows) if rows else float("inf")


class _Way(NamedTuple):
    """The lines of one spot to those in the next column: out of a row, along a track, into rows."""

    row: int
    into: tuple[int, ...]

    @property
    def is_straight(self) -> bool:
        return self.into == (self.row,)


def _ways(level: int, columns: Sequence[list[_Spot]], rows: Mapping[tuple[int, tuple[str, str]], int]) -> list[_Way]:
    into: dict[int, list[int]] = {}
    for spot in columns[level + 1]:
        for parent in spot.parents:
            into.setdefault(rows[level, parent], []).append(rows[level + 1, spot.key])
    return [_Way(row, tuple(sorted(targets))) for row, targets in sorted(into.items())]


def _tracks(ways: Sequence[_Way]) -> dict[int, int]:
    """The track of each way that bends: two share one only where they do not meet.

    Where a way leaves in a row into which another one leads, it bends before that one: the two would read as one.
    """
    bent = [way for way in ways if not way.is_straight]
    tracks: dict[int, int] = {}
    taken: list[list[tuple[int, int]]] = []
    for way in sorted(bent, key=lambda one: sum(one.row in other.into for other in bent if other != one), reverse=True):
        low, high = min(way.row, *way.into), max(way.row, *way.into)
        before = [tracks[other.row] for other in bent if other.row in tracks and other.row in way.into]
        track = 1 + max(before, default=-1)
        while track < len(taken) and any(low <= end and start <= high for start, end in taken[track]):
            track += 1
        if track == len(taken):
            taken.append([])
        taken[track].append((low, high))
        tracks[way.row] = track
    return tracks


def _painted(
    columns: Sequence[list[_Spot]],
    rows: Mapping[tuple[int, tuple[str, str]], int],
    labels: Mapping[str, str],
    shown: Mapping[str, TaskView],
    style: Style,
) -> tuple[list[str], dict[str, Node]]:
    """All columns beside each other, with the lines between them."""
    height = max(rows.values()) + 1
    lines, nodes = [" "] * (height + 1), dict[str, Node]()
    for level, spots in enumerate(columns):
        left, title = width(lines[0]), f"level {level}"
        wide = 1 + max([width(title), *(width(labels[spot.key[0]]) for spot in spots if not spot.key[1])])
        ways = _ways(level, columns, rows) if level + 1 < len(columns) else []
        ends = {rows[level + 1, spot.key] for spot in columns[level + 1] if not spot.key[1]} if ways else set[int]()
        leaving, dash = {way.row for way in ways}, "-" if style.ascii else "─"
        cells = [" " * wide] * height
        for spot in spots:
            row, text = rows[level, spot.key], "" if spot.key[1] else f"{labels[spot.key[0]]} "
            cells[row] = text + (dash if row in leaving else " ") * (wide - width(text))
            if not spot.key[1]:
                task = shown[spot.key[0]]
                nodes[task.id] = Node(task.id, row + 1, left, width(text) - 1, task.token, level)
        between = _between(ways, height, ends, style) if ways else [""] * height
        lines[0] += padded(title, wide + width(between[0]))
        for row in range(height):
            lines[row + 1] += cells[row] + between[row]
    return [line.rstrip() for line in lines], nodes


def _between(ways: Sequence[_Way], height: int, ends: Container[int], style: Style) -> list[str]:
    """What is between two columns: the tracks, and arrows at the rows in `ends`."""
    tracks = _tracks(ways)
    room = max(tracks.values(), default=-1) * 2 + 3
    grid = [[0] * room for _ in range(height)]
    arrows: set[int] = set()
    for way in ways:
        arrows.update(way.into)
        if way.is_straight:
            _level(grid, way.row, 0, room)
            continue
        at = tracks[way.row] * 2 + 1
        _level(grid, way.row, 0, at)
        grid[way.row][at] |= _W
        low, high = min(way.row, *way.into), max(way.row, *way.into)
        for row in range(low, high + 1):
            grid[row][at] |= (_N if row > low else 0) | (_S if row < high else 0)
        for row in way.into:
            grid[row][at] |= _E
            _level(grid, row, at + 1, room)
    signs, tip, on, off = (_ASCII_LINES, "> ", "--", "  ") if style.ascii else (_LINES, "▶ ", "──", "  ")
    return [
        "".join(signs[mask] for mask in grid[row]) + (off if row not in arrows else tip if row in ends else on)
        for row in range(height)
    ]


def _level(grid: list[list[int]], row: int, start: int, end: int) -> None:
    for column in range(start, end):
        grid[row][column] |= _E | _W
