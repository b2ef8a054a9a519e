"""The base of all errors, what is malformed, and what the machine refuses."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import ClassVar


class TaskyardError(Exception):
    """Base of every deliberate error, so one `except` is enough at the edges."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, fact: str = "", advice: str = "") -> None:
        """`advice`: what to do next, at the command line; other front ends have words of their own for that."""
        super().__init__(f"{fact} {advice}" if advice else fact)
        self._fact = fact

    @property
    def fact(self) -> str:
        """What is so, without the advice."""
        return self._fact

    def facts(self) -> dict[str, object]:
        """What the error knows, by name: the attributes set by its class."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class UsageError(TaskyardError):
    """The request is malformed and will fail however often it is repeated."""

    code = "usage"
    exit_code = 2


class MissingExtra(UsageError):
    """What was asked for needs packages that are not installed."""

    code = "missing_extra"

    def __init__(self, what: str, extra: str, module: str = "") -> None:
        from taskyard.installation import command_for_extra

        missing = f" ({module} is missing)" if module else ""
        super().__init__(f"{what} needs more than the core{missing}: `{command_for_extra(extra)}`.")
        self.extra = extra
        self.module = module


class BadName(UsageError):
    """A list, team or agent name that cannot be one."""

    code = "bad_name"

    def __init__(self, what: str, name: str, why: str) -> None:
        super().__init__(f"{shown(name)} is no name for {what}: {why}.")
        self.name = clipped(name)
        self.why = why


class BadId(UsageError):
    """A task id that no task can have."""

    code = "bad_id"

    def __init__(self, task_id: object) -> None:
        super().__init__(
            f"{shown(task_id)} is no task id: ids are whole numbers from 1 to 999,999,999 (at most nine digits),"
            " written without leading zeros."
        )
        self.task_id = clipped(str(task_id))


class BadJobId(UsageError):
    """A job id that no job can have."""

    code = "bad_job_id"

    def __init__(self, job_id: object) -> None:
        super().__init__(f"{shown(job_id)} is no job id: those are a letter and eight of 0-9a-z, such as b3k9x0q2m.")
        self.job_id = clipped(str(job_id))


class BadText(UsageError):
    """Text that cannot be stored: empty, too long, or with characters no file can hold."""

    code = "bad_text"

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"The {field} {why}.")
        self.field = field
        self.why = why


class BadValue(UsageError):
    """A value outside what its field or setting accepts."""

    code = "bad_value"

    def __init__(self, field: str, value: object, expected: str, *, found: str = "") -> None:
        """`found`: what it is instead ("is empty"), where the value itself would say little."""
        super().__init__(f"{field} {found or f'cannot be {shown(value)}'}: expected {expected}.")
        self.field = field
        self.expected = expected


class BadWorkflow(UsageError):
    """What was given as a workflow is none: a key, a value, or how its steps hang together."""

    code = "bad_workflow"

    def __init__(self, file: str, why: str, *, line: int = 0) -> None:
        place = f"{clipped(file, 160) or 'The workflow'}{f', line {line}' if line else ''}"
        super().__init__(f"{place}: {why}{'' if why.endswith('?') else '.'}")
        self.file = clipped(file, 160) or None
        self.line = line or None
        self.why = why


class BadPlan(UsageError):
    """What was given as a plan for a team is none: a key, a value, or how its tasks hang together."""

    code = "bad_plan"

    def __init__(self, file: str, why: str, *, line: int = 0) -> None:
        place = f"{clipped(file, 160) or 'The plan'}{f', line {line}' if line else ''}"
        super().__init__(f"{place}: {why if why.endswith('?') else why.removesuffix('.') + '.'}")
        self.file = clipped(file, 160) or None
        self.line = line or None
        self.why = why


class Busy(TaskyardError):
    """Somebody else held the lock for as long as we were willing to wait."""

    code = "busy"
    exit_code = 75

    def __init__(self, what: str, holder: str, waited: float) -> None:
        super().__init__(f"{what} is locked by {holder}; gave up after {waited:.1f} s. Nothing was written: try again.")
        self.what = what
        self.holder = holder
        self.waited = waited
        self.retryable = True


class Damaged(TaskyardError):
    """A file cannot be read as what it should be."""

    code = "damaged"

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file} cannot be read: {why}.", "`taskyard doctor` explains what can be done.")
        self.file = file
        self.why = why


class BadConfig(TaskyardError):
    """Another program's configuration file that cannot be changed safely, and so was not."""

    code = "bad_config"

    def __init__(self, file: str, why: str, *, advice: str = "") -> None:
        more = advice or "Mend it, or add what `taskyard install --print` shows by hand."
        super().__init__(f"{file} was left as it is: {clipped(why, 160)}. {more}")
        self.file = clipped(file, 160)
        self.why = clipped(why, 160)


class NotGenuine(TaskyardError):
    """What looks like a notice is not one of ours, word for word."""

    code = "not_genuine"

    def __init__(self, why: str) -> None:
        super().__init__(f"This is no genuine notice: {why}.")
        self.why = why


class StorageError(TaskyardError):
    """The disk refused: full, read-only, not a folder, not ours."""

    code = "storage"

    def __init__(self, path: str, why: str, *, advice: str = "", about: str = "", tasks: Sequence[str] = ()) -> None:
        """Say what the disk refused.

        Args:
            path: The file or folder.
            why: What is wrong, without a full stop.
            advice: What to do about it, as a sentence.
            about: What that means for the work at hand, as a sentence.
            tasks: The ids of the tasks that were being written.
        """
        named = f"{_tasks(tasks)} could not be written ({path}): {why}." if tasks else f"{path}: {why}."
        super().__init__(" ".join(part for part in (named, about, advice) if part))
        self.path = path
        self.why = why
        self.advice = advice
        self.tasks = tuple(tasks)

    def writing(self, tasks: Sequence[str], about: str) -> StorageError:
        """The same refusal, met while writing `tasks`; what is already about tasks stays as it is."""
        return self if self.tasks else StorageError(self.path, self.why, advice=self.advice, about=about, tasks=tasks)


class CannotListen(TaskyardError):
    """No server can be reached at an address: it is taken, or not ours."""

    code = "cannot_listen"

    def __init__(self, address: str, why: str, advice: str) -> None:
        super().__init__(f"Nothing can listen on {shown(address)}: {why}. {advice}")
        self.address = address
        self.why = why


class MemberNotStarted(TaskyardError):
    """A member of a team was started and did not come: it was too slow, or died before. Nothing of it is left."""

    code = "member_not_started"

    def __init__(self, member: str, team: str, why: str) -> None:
        super().__init__(f"{clipped(member, 60)} did not come to team {clipped(team, 60)}: {clipped(why, 500)}.")
        self.member = clipped(member, 60)
        self.team = clipped(team, 60)
        self.why = clipped(why, 500)


class Cancelled(TaskyardError):
    """The caller gave up while something ran; it was ended and nothing was saved."""

    code = "cancelled"
    exit_code = 130

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was ended because the caller gave up. Nothing was saved.")
        self.what = what


def _tasks(ids: Sequence[str]) -> str:
    """`Task #2`, or `Tasks #1, #2, #3 and 7 more`."""
    named, rest = ", ".join(f"#{task_id}" for task_id in ids[:3]), len(ids) - 3
    return f"Task{'s' if len(ids) > 1 else ''} {named}" + (f" and {rest} more" if rest > 0 else "")


def clipped(value: str, most: int = 60) -> str:
    """`value`, short enough to stand in a message."""
    return value if len(value) <= most else value[: most - 1] + "…"


def shown(value: object) -> str:
    """`value` as a message may show it: quoted, short, control characters escaped."""
    return ascii(clipped(value)) if isinstance(value, str) and not value.isprintable() else repr(clipped(str(value)))
