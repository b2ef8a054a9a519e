"""What waits at a turn, as one batch: in order, bounded, with a count of the rest. Pure."""

from __future__ import annotations

from taskyard.runtime.notice import NEXT
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from taskyard.runtime.notice import Notice

#: More ends at once than anybody reads one by one; the rest comes with the next turn.
MOST = 50

#: As much as the output of one job may take of a model's context.
CHARACTERS = 32_000


class Batch(NamedTuple):
    """What is handed over at one turn."""

    notices: tuple[Notice, ...] = ()
    rest: int = 0  #: how many more wait

    @property
    def first(self) -> tuple[Notice, ...]:
        """Those that come before anything else in the turn."""
        return tuple(notice for notice in self.notices if notice.priority == NEXT)

    @property
    def later(self) -> tuple[Notice, ...]:
        """Those that come after the messages the user has queued."""
        return tuple(notice for notice in self.notices if notice.priority != NEXT)


def order(notice: Notice) -> tuple[bool, int, str]:
    """Its place in line: `next` before `later`, then by time."""
    return notice.priority != NEXT, notice.at, notice.id


def arranged(
    waiting: Iterable[Notice], *, most: int = MOST, characters: int | None = None, size: Callable[[Notice], int]
) -> Batch:
    """The first of those that wait: at most `most`, and of their `size` no more than `characters` in all.

    One is always among them, however large: what is never handed over would block all behind it.
    """
    line = sorted(waiting, key=order)
    chosen: list[Notice] = []
    left = characters
    for notice in line[:most]:
        if left is not None:
            left -= size(notice)
            if left < 0 and chosen:
                break
        chosen.append(notice)
    return Batch(tuple(chosen), len(line) - len(chosen))
