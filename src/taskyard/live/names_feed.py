"""Which lists there are, kept up to date."""

from __future__ import annotations

import threading

from taskyard.disk.watch import watcher
from taskyard.errors import StoreAway, TaskyardError
from taskyard.lists.alarm import Alarm
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.disk.watch import Followed
    from taskyard.lists.protocol import Lists


class NamesFeed:
    """The names of all lists of a place; used by one thread."""

    def __init__(self, lists: Lists, bell: threading.Event) -> None:
        """`bell` rings when there may be another one."""
        self.names: tuple[str, ...] = ()
        self.problem = ""  #: why there is no telling, if there is not
        self.is_away = False  #: because the place is out of reach
        self._lists = lists
        self._bell = bell
        self._told = threading.Event()
        self._alarm: Alarm | None = None
        self.followed: Sequence[Followed] = ()  #: everything whose changes ring the bell
        if lists.folder is not None:
            self.followed = (watcher().follow(lists.folder, news=bell),)
        else:
            self._alarm = Alarm(lists.wait, self._ring)

    def _ring(self) -> None:
        self._told.set()
        self._bell.set()

    @property
    def has_news(self) -> bool:
        """Whether something happened since the last look."""
        return self._told.is_set() or any(followed.has_news for followed in self.followed)

    def look(self) -> bool:
        """Bring it up to date; whether anything is different now."""
        if not self._is_worth_a_look():
            return False
        was = self.names, self.problem
        self.is_away = False
        try:
            self.names, self.problem = tuple(self._lists.names()), ""
        except StoreAway as error:
            self.is_away = True
            self.problem = safe(str(self._lists.away or error))
        except TaskyardError as error:
            self.problem = safe(str(error))
        return was != (self.names, self.problem)

    def _is_worth_a_look(self) -> bool:
        is_told = self._told.is_set()
        self._told.clear()  # before the look: what is told from here on is looked at once more
        names = [followed.told() for followed in self.followed]
        return is_told or bool(self.problem) or not self.names or any(each != set() for each in names)

    def close(self) -> None:
        """Follow them no longer."""
        if self._alarm is not None:
            self._alarm.close()
        for followed in self.followed:
            followed.close()
