"""The rows of the three lists: tasks, jobs, people."""

from __future__ import annotations

from taskyard.tui.row_list import RowList
from taskyard.tui.rows import job_cost, job_note, job_row, person_row, task_row
from taskyard.view.job_views import JobView
from taskyard.view.people import Person
from taskyard.view.task_views import TaskView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.tui.paint import Piece
    from taskyard.view.glyphs import Style

#: Columns of a name in the tree of people at most.
_LONGEST_NAME = 16


class Timed(RowList[JobView | TaskView | Person]):
    """What the three share: a clock, a style, and the spinner of the row with the focus."""

    def __init__(self, *, id: str, style: Style, now: Callable[[], int], empty: str = "") -> None:
        super().__init__(id=id, ascii=style.ascii, empty=empty)
        self.style = style
        self.now = now
        self.turn = 0

    def turn_of(self, id: str) -> int | None:
        """How far the spinner is, on the row that has the focus."""
        return self.turn if self.has_focus and id == self.selected else None


class TaskRows(Timed):
    """Tasks, in the order of the snapshot."""

    def __init__(self, *, id: str, style: Style, now: Callable[[], int], empty: str = "") -> None:
        super().__init__(id=id, style=style, now=now, empty=empty)
        self._ids_wide = 1

    def show(self, items: Sequence[JobView | TaskView | Person]) -> None:
        """Show these tasks; a longer id makes room for itself."""
        wide = max((len(self.key_of(item)) for item in items), default=1)
        if wide != self._ids_wide:
            self._ids_wide = wide
            self.refresh()
        super().show(items)

    def key_of(self, item: JobView | TaskView | Person) -> str:
        """A task's id."""
        assert isinstance(item, TaskView)
        return item.id

    def draw(self, item: JobView | TaskView | Person, columns: int) -> list[list[Piece]]:
        """One line."""
        assert isinstance(item, TaskView)
        turn = self.turn_of(item.id) if item.state == "doing" else None
        return [task_row(item, columns=columns, ids=self._ids_wide, now=self.now(), style=self.style, turn=turn)]


class JobRows(Timed):
    """Jobs, in the order of the snapshot."""

    def __init__(self, *, id: str, style: Style, now: Callable[[], int], empty: str = "") -> None:
        super().__init__(id=id, style=style, now=now, empty=empty)
        self._costs_wide = 0
        self.asks: dict[str, str] = {}  #: what stands in place of a job's state, by id

    def key_of(self, item: JobView | TaskView | Person) -> str:
        """A job's id."""
        assert isinstance(item, JobView)
        return item.id

    def height_of(self, item: JobView | TaskView | Person) -> int:
        """Two lines where it printed something and goes on."""
        assert isinstance(item, JobView)
        return 2 if job_note(item) else 1

    def draw(self, item: JobView | TaskView | Person, columns: int) -> list[list[Piece]]:
        """A line, and what it printed last."""
        assert isinstance(item, JobView)
        turn, asks = self.turn_of(item.id), self.asks.get(item.id, "")
        return job_row(
            item, columns=columns, now=self.now(), style=self.style, costs=self._costs_wide, turn=turn, asks=asks
        )

    def show(self, items: Sequence[JobView | TaskView | Person]) -> None:
        """Show these jobs; a higher cost makes room for itself."""
        wide = max((len(job_cost(item)) for item in items if isinstance(item, JobView)), default=0)
        if wide != self._costs_wide:
            self._costs_wide = wide
            self.refresh()
        super().show(items)


class PeopleRows(Timed):
    """The team."""

    def key_of(self, item: JobView | TaskView | Person) -> str:
        """A name."""
        assert isinstance(item, Person)
        return item.name

    def draw(self, item: JobView | TaskView | Person, columns: int) -> list[list[Piece]]:
        """One line."""
        assert isinstance(item, Person)
        names = min(max((len(self.key_of(one)) for one in self.items), default=1), _LONGEST_NAME)
        return [person_row(item, columns=columns, names=names, now=self.now(), style=self.style)]
