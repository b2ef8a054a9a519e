"""
The interface of every kind of background job, on one screen.

A kind is one module in `taskyard.kinds` with one record: what to do, as data. It has a `type` (as records name it), a
`letter` (its ids begin with it; x if it has none) and `wanted()`: the wish, checked, that is carried out.

    Wanted(argv=…)                           a program: its keeper runs it, as it runs any command
    Wanted(arguments={…})                    Python: a process below the keeper makes the record again by `from_json`
                                             and awaits its `run(context)`, which answers with an `Outcome`
    Wanted(arguments={…}, is_inside=True)    the same, inside the program that starts it, for as long as that lives

Stopping arrives in `run` as cancellation: clean up in `finally`, bound every wait there, let it through. Whatever
else is raised is a failure. To add a kind, write the module, list it in `taskyard.kinds` or publish it under the entry
point group of that name, and run `taskyard.testing.check_job_handler` on it.
"""

from __future__ import annotations

from taskyard.errors import BadValue, TaskyardError
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol, Self

    from taskyard.runtime.context import JobContext

    class Spec(Protocol):
        """What one job shall do, as data. It may have a `letter` (see `letter_of`)."""

        @property
        def type(self) -> str: ...
        def wanted(self) -> Wanted:
            """What it takes to do it.

            Raises:
                UsageError: something in it cannot be.
            """
            ...

    class Handler(Spec, Protocol):
        """A kind whose work is written in Python."""

        @classmethod
        def from_json(cls, arguments: Mapping[str, object]) -> Self:
            """The record that `wanted().arguments` was made from."""
            ...

        async def run(self, context: JobContext) -> Outcome:
            """Do the work, and say how it ended."""
            ...


class Wanted(NamedTuple):
    """What a kind asks the runtime for."""

    description: str  #: one line for people, safe to show
    argv: Sequence[str] = ()
    arguments: Mapping[str, object] | None = None  #: for `from_json`; must be JSON
    is_inside: bool = False
    text: str = ""  #: the command as a person would type it
    cwd: str | None = None  #: the current folder if not given
    env: Mapping[str, str] | None = None  #: this process's if not given
    timeout: float | None = None  #: seconds until it is ended; pauses do not count
    output_cap: int | None = None  #: bytes on disk
    on_parent_exit: str | None = None  #: "kill" or "keep"
    stdin: bool = False  #: input can be sent to it
    pty: bool = False  #: it gets a terminal of its own
    transcript: bool = False  #: what it writes is a transcript, a line of JSON each; its output is a link to that
    grace: float = 3.0  #: seconds between being asked to end and being made to
    leave_children: bool = False  #: processes it leaves behind go on under its keeper
    retries: int = 0
    retry_delay: float = 1.0  #: seconds before the second attempt; twice as long before each further one
    tool_use_id: str | None = None
    priority: str = "later"  #: of its notices: "next" comes before what the user has queued
    is_silent: bool = False  #: its end is told to nobody
    asks_elsewhere: bool = False  #: its questions reach the one who can answer by another way than notices
    is_for_people: bool = False  #: its end is told to people, and to no model
    facts: Mapping[str, object] = {}  #: what its kind adds to the record from the start
    task: str | None = None  #: the task it is for, `list/id`; that of whoever starts it if not given
    provider: str = ""  #: of an agent: the key of its account; agents there wait together for its rate limits
    on_rate_limit: str | None = None  #: of an agent: "wait" or "stop"; the setting of that name if not given
    resumes: bool = False  #: its work goes on elsewhere: without a keeper it gets another, and is not lost
    needs_env: Sequence[str] = ()  #: variables without which nobody can go on with it; their values are stored nowhere
    is_light: bool = False  #: it only waits for jobs of its own, and takes none of the slots that they need


class Outcome(NamedTuple):
    """What a handler says of its work: done, unless it names an error."""

    result: str = ""  #: its final answer
    error: str = ""  #: why it failed
    facts: Mapping[str, object] = {}  #: what its kind adds to the record: usage, worktree, …


#: What ids of a kind begin with that names no letter.
NO_LETTER = "x"


def letter_of(spec: Spec) -> str:
    """What the ids of a kind begin with.

    Raises:
        BadValue: it names something that is no lower-case letter.
    """
    letter: object = getattr(spec, "letter", NO_LETTER)
    if not isinstance(letter, str) or len(letter) != 1 or not "a" <= letter <= "z":
        raise BadValue(f"The letter of {spec.type}", letter, "one letter from a to z")
    return letter


def in_words(error: BaseException) -> str:
    """What an exception says of the work that raised it; ours are sentences already."""
    return str(error) if isinstance(error, TaskyardError) else f"{type(error).__name__}: {error}"
