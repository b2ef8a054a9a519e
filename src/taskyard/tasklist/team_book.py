"""Where the records of teams are kept: in files (`team_files`), or in a database (`postgres.teams`)."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from taskyard.errors import Damaged
    from taskyard.instances import Instance
    from taskyard.tasklist.team_record import Member, Team


class TeamBook(Protocol):
    """Every team of one place, with what else of it lies there: boxes for mail, signs of life."""

    def read(self, team: str) -> Team | None:
        """The team of this name; None if there is none.

        Raises:
            Damaged: its record cannot be read.
        """
        ...

    def has(self, team: str) -> bool:
        """Whether there is a team of this name, readable or not."""
        ...

    def listing(self) -> tuple[list[Team], list[Damaged]]:
        """Every team by name, and what could not be read."""
        ...

    def names(self) -> list[str]:
        """The folder names of all teams."""
        ...

    def change(self, team: str, rule: Callable[[Team | None], Team | None]) -> Team | None:
        """Replace a team by what `rule` makes of it, None for either meaning that there is none.

        The rule may be asked several times; what it decided on then still holds when that takes effect.
        """
        ...

    def set_aside(self, team: str) -> None:
        """Take a record that cannot be read out of the way, and keep it."""
        ...

    def open_box(self, team: str, agent: str) -> None:
        """Have `agent` get mail in a team."""
        ...

    def close_box(self, team: str, agent: str) -> None:
        """Have `agent` get no more mail in a team; what it has stays readable."""
        ...

    def put_mail_away(self, team: str) -> None:
        """Keep a dissolved team's mail where a new team of that name does not find it."""
        ...

    def believe(self, instance: Instance) -> None:
        """Have everybody who reads this book know that an instance of this process lives, as long as it does."""
        ...

    def alive(self, members: Sequence[Member]) -> list[bool | None]:
        """Whether each member lives; None where nobody can tell."""
        ...

    def heard(self, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Have `wake` called, from any thread, when a team may have changed whose record shows in no folder."""
        ...
