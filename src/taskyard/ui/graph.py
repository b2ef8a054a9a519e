"""The dependency graph of tasks: positions, critical path, and a drawing as lines of text. Pure.

A level is a column: the number of dependency steps before a task. A rank is its row there, close to its blockers so
that few lines cross. The critical path is the longest chain of open tasks.

     level 0            level 1            level 2
     ✓ 11 Freeze API ─▶ ◐ 12 Migrate ──┬─▶ ◌ 13 Switch readers
     ○ 9 Release notes                 └─▶ ◌ 17 Backfill

Implied edges are left out: a task blocked by 12 and 13, where 13 is blocked by 12, has a line from 13 only.
A line that passes a level has a row of its own there.
"""

from __future__ import annotations

from taskyard.core.text import Style, cut, padded, width
from taskyard.core.values import NamedTuple
from taskyard.tasks.graph import levels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from taskyard.tasks.model import Task
    from taskyard.ui.tasks import TaskView


class GraphPosition(NamedTuple):
    """The position of one task in the graph."""

    level: int = 0
    rank: int = 0
    is_critical: bool = False


NO_POSITION = GraphPosition()


def graph_positions(tasks: Mapping[str, Task]) -> dict[str, GraphPosition]:
    """Return the position of each task; internal tasks (trackers) have none."""
    shown = {task_id: task for task_id, task in tasks.items() if not task.is_internal}
    columns: dict[int, list[str]] = {}
    level_of = levels(shown)
    for task_id in sorted(shown, key=int):
        columns.setdefault(level_of[task_id], []).append(task_id)
    rank_of: dict[str, int] = {}
    for level in sorted(columns):
        ordered = sorted(columns[level], key=lambda task_id: _rank_key(shown[task_id], rank_of))
        rank_of.update({task_id: rank for rank, task_id in enumerate(ordered)})
    critical = set(critical_path(shown, level_of))
    return {task_id: GraphPosition(level_of[task_id], rank_of[task_id], task_id in critical) for task_id in shown}


def critical_path(tasks: Mapping[str, Task], level_of: Mapping[str, int]) -> Sequence[str]:
    """Return the longest chain of open tasks, each blocked by the previous one; empty if no open task is blocked."""
    before: dict[str, str | None] = {}
    length: dict[str, int] = {}
    for task_id in sorted(tasks, key=lambda task_id: (level_of[task_id], int(task_id))):
        task = tasks[task_id]
        if task.is_done:
            continue
        # in a cycle (possible in hand-edited files) a blocker may not have been counted yet
        best = max((b for b in task.blocked_by if b in length), key=lambda b: length[b], default=None)
        before[task_id], length[task_id] = best, 1 + (length[best] if best is not None else 0)
    last = max(length, key=lambda task_id: length[task_id], default=None)
    if last is None or length[last] < 2:
        return ()
    path: list[str] = []
    step: str | None = last
    while step is not None:
        path.append(step)
        step = before[step]
    return path[::-1]


def _rank_key(task: Task, rank_of: Mapping[str, int]) -> tuple[float, int]:
    """Sort by the mean rank of the blockers; tasks without any follow, in the order of ids."""
    ranks = [rank_of[blocker] for blocker in task.blocked_by if blocker in rank_of]
    return (sum(ranks) / len(ranks) if ranks else float("inf"), int(task.id))


#: Most columns of a task's label.
MAX_LABEL_WIDTH = 26

#: Most tasks in a drawing; the first in list order are drawn.
MAX_TASKS = 400

_N, _E, _S, _W = 1, 2, 4, 8
_LINES = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
_ASCII_LINES = " |-+||++-+-++++" + "+"


class Node(NamedTuple):
    """The position of a task in the drawing."""

    id: str
    row: int  #: its line
    column: int  #: the column of its glyph
    width: int
    token: str
    level: int


class Drawing(NamedTuple):
    """Lines of text, and the positions of tasks in them."""

    lines: tuple[str, ...] = ()
    nodes: Mapping[str, Node] = {}
    after: Mapping[str, tuple[str, ...]] = {}  #: edges that are drawn: from a task to those it blocks
    before: Mapping[str, tuple[str, ...]] = {}
    left_out: int = 0  #: number of tasks beyond `MAX_TASKS`


class _Slot(NamedTuple):
    """A place in a column: a task, or a line that passes."""

    key: tuple[str, str]  #: a task's id and "", or the two tasks of the line that passes
    parents: tuple[tuple[str, str], ...]


def draw_graph(tasks: Sequence[TaskView], style: Style = Style()) -> Drawing:  # noqa: B008  (immutable)
    """Draw the graph of `tasks`."""
    shown = {task.id: task for task in tasks[:MAX_TASKS]}
    if not shown:
        return Drawing()
    before = transitive_reduction({task_id: _forward_edges(task, shown) for task_id, task in shown.items()}, shown)
    columns = _build_columns(shown, before)
    rows = _assign_rows(columns)
    labels = {task_id: _label(task, style) for task_id, task in shown.items()}
    canvas, nodes = _render(columns, rows, labels, shown, style)
    after: dict[str, tuple[str, ...]] = {}
    for task_id, parents in before.items():
        for parent in parents:
            after[parent] = (*after.get(parent, ()), task_id)
    return Drawing(tuple(canvas), nodes, after, before, len(tasks) - len(shown))


def adjacent_task(drawing: Drawing, task_id: str, across: int, down: int) -> str:
    """Return the next task in a direction, along an edge or within its column; the task itself if there is none."""
    node = drawing.nodes.get(task_id)
    if node is None:
        return next(iter(drawing.nodes), "")
    if across:
        ways = (drawing.after if across > 0 else drawing.before).get(task_id, ())
        return min(ways, key=lambda other: abs(drawing.nodes[other].row - node.row), default=task_id)
    column = sorted((one.row, one.id) for one in drawing.nodes.values() if one.level == node.level)
    place = column.index((node.row, node.id)) + down
    return column[min(max(place, 0), len(column) - 1)][1]


def transitive_reduction(
    before: Mapping[str, Sequence[str]], tasks: Mapping[str, TaskView]
) -> dict[str, tuple[str, ...]]:
    """Remove edges that are implied by others."""
    above: dict[str, set[str]] = {}
    found: dict[str, tuple[str, ...]] = {}
    for task_id in sorted(before, key=lambda one: tasks[one].level):
        implied: set[str] = set()
        for parent in before[task_id]:
            implied |= above.get(parent, set())
        found[task_id] = tuple(parent for parent in before[task_id] if parent not in implied)
        above[task_id] = implied.union(before[task_id])
    return found


def _forward_edges(task: TaskView, shown: Mapping[str, TaskView]) -> tuple[str, ...]:
    """Return the shown blockers; edges that go back, in a cycle of hand-edited files, are not drawn."""
    return tuple(b for b in task.blocked_by if b in shown and shown[b].level < task.level)


def _label(task: TaskView, style: Style) -> str:
    return cut(f"{task.ascii if style.ascii else task.glyph} {task.id} {task.subject}", MAX_LABEL_WIDTH, style)


def _build_columns(shown: Mapping[str, TaskView], before: Mapping[str, Sequence[str]]) -> list[list[_Slot]]:
    """Return the slots of each level, including lines that pass."""
    columns: list[list[_Slot]] = [[] for _ in range(max(task.level for task in shown.values()) + 1)]
    for task in sorted(shown.values(), key=lambda task: (task.level, task.rank)):
        parents: list[tuple[str, str]] = []
        for parent in before[task.id]:
            last = (parent, "")
            for level in range(shown[parent].level + 1, task.level):
                columns[level].append(_Slot((parent, task.id), (last,)))
                last = (parent, task.id)
            parents.append(last)
        columns[task.level].append(_Slot((task.id, ""), tuple(parents)))
    return columns


def _assign_rows(columns: Sequence[list[_Slot]]) -> dict[tuple[int, tuple[str, str]], int]:
    """Assign a row to every slot: beside its first parent if free, always below its neighbours."""
    rows: dict[tuple[int, tuple[str, str]], int] = {}
    for level, spots in enumerate(columns):
        wanted = [[rows[level - 1, parent] for parent in spot.parents] for spot in spots]
        order = sorted(range(len(spots)), key=lambda at: (_mean_row(wanted[at]), at))
        free = 0
        for at in order:
            row = max(free, min(wanted[at], default=0))
            rows[level, spots[at].key] = row
            free = row + 1
    return rows


def _mean_row(rows: Sequence[int]) -> float:
    return sum(rows) / len(rows) if rows else float("inf")


class _EdgeGroup(NamedTuple):
    """The edges from one slot into the next column: out of a row, along a track, into rows."""

    row: int
    into: tuple[int, ...]

    @property
    def is_straight(self) -> bool:
        return self.into == (self.row,)


def _edge_groups(
    level: int, columns: Sequence[list[_Slot]], rows: Mapping[tuple[int, tuple[str, str]], int]
) -> list[_EdgeGroup]:
    into: dict[int, list[int]] = {}
    for spot in columns[level + 1]:
        for parent in spot.parents:
            into.setdefault(rows[level, parent], []).append(rows[level + 1, spot.key])
    return [_EdgeGroup(row, tuple(sorted(targets))) for row, targets in sorted(into.items())]


def _tracks(ways: Sequence[_EdgeGroup]) -> dict[int, int]:
    """Return the track of each edge group that bends: two share one only if they do not overlap.

    A group that leaves from a row into which another one leads bends before that one; otherwise the two would
    read as one.
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


def _render(
    columns: Sequence[list[_Slot]],
    rows: Mapping[tuple[int, tuple[str, str]], int],
    labels: Mapping[str, str],
    shown: Mapping[str, TaskView],
    style: Style,
) -> tuple[list[str], dict[str, Node]]:
    """Render all columns side by side, with the edges between them."""
    height = max(rows.values()) + 1
    lines, nodes = [" "] * (height + 1), dict[str, Node]()
    for level, spots in enumerate(columns):
        left, title = width(lines[0]), f"level {level}"
        wide = 1 + max([width(title), *(width(labels[spot.key[0]]) for spot in spots if not spot.key[1])])
        ways = _edge_groups(level, columns, rows) if level + 1 < len(columns) else []
        ends = {rows[level + 1, spot.key] for spot in columns[level + 1] if not spot.key[1]} if ways else set[int]()
        leaving, dash = {way.row for way in ways}, "-" if style.ascii else "─"
        cells = [" " * wide] * height
        for spot in spots:
            row, text = rows[level, spot.key], "" if spot.key[1] else f"{labels[spot.key[0]]} "
            cells[row] = text + (dash if row in leaving else " ") * (wide - width(text))
            if not spot.key[1]:
                task = shown[spot.key[0]]
                nodes[task.id] = Node(task.id, row + 1, left, width(text) - 1, task.token, level)
        between = _render_edges(ways, height, ends, style) if ways else [""] * height
        lines[0] += padded(title, wide + width(between[0]))
        for row in range(height):
            lines[row + 1] += cells[row] + between[row]
    return [line.rstrip() for line in lines], nodes


def _render_edges(ways: Sequence[_EdgeGroup], height: int, ends: Container[int], style: Style) -> list[str]:
    """Render the edges between two columns: the tracks, and arrows at the rows in `ends`."""
    tracks = _tracks(ways)
    room = max(tracks.values(), default=-1) * 2 + 3
    grid = [[0] * room for _ in range(height)]
    arrows: set[int] = set()
    for way in ways:
        arrows.update(way.into)
        if way.is_straight:
            _draw_horizontal(grid, way.row, 0, room)
            continue
        at = tracks[way.row] * 2 + 1
        _draw_horizontal(grid, way.row, 0, at)
        grid[way.row][at] |= _W
        low, high = min(way.row, *way.into), max(way.row, *way.into)
        for row in range(low, high + 1):
            grid[row][at] |= (_N if row > low else 0) | (_S if row < high else 0)
        for row in way.into:
            grid[row][at] |= _E
            _draw_horizontal(grid, row, at + 1, room)
    signs, tip, on, off = (_ASCII_LINES, "> ", "--", "  ") if style.ascii else (_LINES, "▶ ", "──", "  ")
    return [
        "".join(signs[mask] for mask in grid[row]) + (off if row not in arrows else tip if row in ends else on)
        for row in range(height)
    ]


def _draw_horizontal(grid: list[list[int]], row: int, start: int, end: int) -> None:
    for column in range(start, end):
        grid[row][column] |= _E | _W
