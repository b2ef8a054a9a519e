"""What the members of a team shall be like, and what they are called."""

from __future__ import annotations

from taskyard import instances
from taskyard.errors import BadName
from taskyard.names import check_name, folder_name
from taskyard.shapes import as_list
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

    from taskyard.kinds.teammate import Teammate

#: What members are called if nobody says otherwise: short, easy to tell apart.
NAMES = ("ada", "ben", "cleo", "dan", "eva", "finn", "gus", "hana", "ivo", "june", "kai", "lena", "max", "nora", "otto")

#: Where members live.
PLACES = ("process", "tmux", "inside")


class Wish(NamedTuple):
    """What every member of a team has in common."""

    team: str
    prompt: str = ""  #: what each is told before its tasks
    engine: str = ""
    command: tuple[str, ...] = ()
    model: str | None = None
    plan_first: bool = False
    until: str = "done"
    can: tuple[str, ...] = ()  #: capabilities, for tasks that require some
    on_rate_limit: str | None = None  #: "wait" or "stop"; the setting of that name if not given
    on_parent_exit: str | None = None  #: what becomes of members whose lead is killed: "kill" or "keep"

    def spec(self, name: str, *, is_inside: bool = False) -> Teammate:
        """The job that is the member `name`."""
        from taskyard.kinds.teammate import Teammate

        return Teammate(
            name,
            self.team,
            prompt=self.prompt,
            engine=self.engine,
            command=self.command,
            model=self.model,
            plan_first=self.plan_first,
            is_inside=is_inside,
            until=self.until,
            capabilities=self.can,
            on_rate_limit=self.on_rate_limit,
            on_parent_exit=self.on_parent_exit,
        )

    @classmethod
    def from_json(cls, record: Mapping[str, object]) -> Self:
        """The wish that `_asdict` was taken of."""
        known: dict[str, object] = {name: record[name] for name in cls._fields if name in record}
        for name in ("command", "can"):
            known[name] = tuple(str(word) for word in as_list(known.get(name)) or ())
        return cls(**known)  # type: ignore[arg-type]  # written by us


def free_names(home: str, team: str, taken: Iterable[str], *, wanted: Iterable[str] = ()) -> Iterator[str]:
    """Names that nobody living has, nor anybody in `taken`: those wanted first, then ours, then ours with numbers."""
    used = {folder_name("an agent", name) for name in taken}
    used |= {folder_name("an agent", record.name) for record in instances.living(home)}
    for name in _candidates(team, wanted):
        if folder_name("an agent", name) not in used:
            used.add(folder_name("an agent", name))
            yield name


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names for members, each once.

    Raises:
        BadName: one cannot be a name, or is there twice.
    """
    found = tuple(check_name("an agent", name) for name in names)
    folders = [folder_name("an agent", name) for name in found]
    for name, folder in zip(found, folders, strict=True):
        if folders.count(folder) > 1:
            raise BadName("a member", name, "another member has it")
    return found


def _candidates(team: str, wanted: Iterable[str]) -> Iterator[str]:
    yield from wanted
    yield from NAMES
    number = 1
    while True:
        number += 1
        yield from (f"{name}-{number}" for name in NAMES)
