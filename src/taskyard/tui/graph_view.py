"""The Graph tab: what waits for what, and a cursor that goes along the lines."""

from __future__ import annotations

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from taskyard.tui.paint import Piece, blank, strip_of, style_of
from taskyard.view.graph_text import Drawing, draw, walk
from taskyard.view.text import width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from taskyard.view.glyphs import Style
    from taskyard.view.graph_text import Node
    from taskyard.view.task_views import TaskView


class GraphView(ScrollView, can_focus=True, inherit_bindings=False):
    """The graph of a list."""

    DEFAULT_CSS = """
    GraphView {
        overflow-x: auto; overflow-y: auto; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; height: 1fr;
    }
    """

    class Moved(Message):
        """The cursor is on another task."""

        def __init__(self, task: str) -> None:
            super().__init__()
            self.task = task

    def __init__(self, *, id: str, style: Style) -> None:
        super().__init__(id=id)
        self._style = style
        self._tasks: Sequence[TaskView] = ()
        self.drawing = Drawing()
        self.cursor = ""

    def tell(self, tasks: Sequence[TaskView]) -> None:
        """Draw these; what did not change is not drawn again."""
        if tasks == self._tasks:
            return
        self._tasks, before = tasks, self.drawing
        self.drawing = draw(tasks, self._style)
        if self.drawing == before:
            return
        wide = max((width(line) for line in self.drawing.lines), default=0)
        self.virtual_size = Size(wide + 2, len(self.drawing.lines) + bool(self.drawing.left_out))
        self.refresh()

    def point(self, task_id: str) -> None:
        """Put the cursor on a task."""
        if task_id in self.drawing.nodes and task_id != self.cursor:
            self.cursor = task_id
            self._into_view()
            self.refresh()

    def walk(self, across: int, down: int) -> None:
        """Along a line, or up and down in a column."""
        to = walk(self.drawing, self.cursor, across, down)
        if to and to != self.cursor:
            self.point(to)
            self.post_message(self.Moved(to))

    def _into_view(self) -> None:
        node = self.drawing.nodes[self.cursor]
        self.scroll_to_region(Region(node.column, max(node.row - 1, 0), node.width + 1, 2), animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor on a task."""
        x, y = event.x + self.scroll_offset.x, event.y + self.scroll_offset.y
        for node in self.drawing.nodes.values():
            if node.row == y and node.column <= x < node.column + node.width:
                self.point(node.id)
                self.post_message(self.Moved(node.id))

    def render_line(self, y: int) -> Strip:
        """One line of what is seen."""
        room, row = self.scrollable_content_region.width, y + self.scroll_offset.y
        if not self.drawing.lines:
            return strip_of([Piece(" There are no tasks to draw." if y == 0 else "", "muted")], room)
        if row == len(self.drawing.lines) and self.drawing.left_out:
            return strip_of([Piece(f" {self.drawing.left_out:,} more tasks are not drawn.", "muted")], room)
        if row >= len(self.drawing.lines):
            return blank(room)
        left = self.scroll_offset.x
        return self._line(row).crop(left, left + room).adjust_cell_length(room, style_of(""))

    def _line(self, row: int) -> Strip:
        """A line, its tasks in their colours."""
        text = self.drawing.lines[row]
        nodes = sorted((node for node in self.drawing.nodes.values() if node.row == row), key=lambda node: node.column)
        whole = Strip([Segment(text, style_of(""))])
        cuts = [place for node in nodes for place in (node.column, node.column + node.width)]
        parts = whole.divide([*cuts, max(whole.cell_length, *cuts, 1)])
        looks = [look for node in nodes for look in ("muted", self._look(node))] + ["muted"]
        return Strip.join([part.apply_style(style_of(look)) for part, look in zip(parts, looks)])

    def _look(self, node: Node) -> str:
        look = node.token  # "default" is no colour
        if node.id != self.cursor:
            return look
        return f"{look} bold reverse" if self.has_focus else f"{look} bold underline"
