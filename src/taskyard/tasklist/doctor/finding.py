"""What the doctor can find, each under a name that stays: people and scripts ask for repairs by it."""

from __future__ import annotations

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(NamedTuple):
    """One sort of finding."""

    about: str  #: what it means, for the overview
    can_fix: bool = False
    is_safe: bool = False  #: repaired without being named: nothing can be lost by it
    is_note: bool = False  #: worth knowing; nothing is wrong


#: Every name, in the order of a report.
KINDS: Mapping[str, Kind] = {
    "unreachable": Kind("The database cannot be reached, or lets nobody in"),
    "other-schema": Kind("The database has tables of another version, or none"),
    "not-a-list": Kind("The list's folder is a link or a file"),
    "lock-held": Kind("A living process holds a lock for longer than any change takes"),
    "damaged-task": Kind("A task file cannot be read", can_fix=True),
    "not-a-task-file": Kind("Something called like a task is no plain file", can_fix=True),
    "hidden-task": Kind("A task file that Claude Code does not see", can_fix=True, is_safe=True),
    "wrong-id": Kind("The id in a task file differs from its name", can_fix=True, is_safe=True),
    "deleted-mark": Kind("A file that only says that its task is gone", can_fix=True, is_note=True),
    "cycle": Kind("Tasks that wait for each other for ever"),
    "half-edge": Kind("A dependency that only one of its two tasks knows", can_fix=True, is_safe=True),
    "dangling-blocker": Kind("A dependency on a task that is not there", can_fix=True, is_safe=True),
    "held-task": Kind("A task set aside after losing its holder too often", can_fix=True),
    "foreign-file": Kind("A name that no task can have", can_fix=True),
    "id-without-room": Kind("A task whose id leaves no room for others"),
    "other-file": Kind("A file of somebody else's", is_note=True),
    "damaged-older-list": Kind("The older tasks.json cannot be read"),
    "stale-lock": Kind("A lock that a dead program left", can_fix=True, is_safe=True),
    "foreign-lock": Kind("Something that blocks a lock for ever", can_fix=True),
    "bad-mark": Kind("The mark of the highest id is not a number", can_fix=True, is_safe=True),
    "low-mark": Kind("The mark is below an id that was given out", can_fix=True, is_safe=True),
    "impossible-mark": Kind("The mark is above every possible id, or no plain file", can_fix=True),
    "unsettled": Kind("A change that its writer did not finish", can_fix=True, is_safe=True),
    "orphan-lease": Kind("A lease record that fits no task", can_fix=True, is_safe=True),
    "dead-holder": Kind("A task held by a process that is gone", can_fix=True, is_safe=True),
    "ledger": Kind("The ledger and the event log disagree", can_fix=True, is_safe=True),
    "leftover-draft": Kind("A half-written file of a dead writer", can_fix=True, is_safe=True),
    "torn-log": Kind("Lines of the event log that cannot be read", is_note=True),
    "open-permissions": Kind("Others may read what is yours alone", can_fix=True, is_safe=True),
    "planted-link": Kind("A link where a file or folder of ours should be"),
    "damaged-record": Kind("A record of teams or trust cannot be read"),
    "damaged-claude-team": Kind("Claude Code's record of a team cannot be read"),
    "damaged-claude-inbox": Kind("An inbox of Claude Code's cannot be read"),
    "stopped-supervisor": Kind("A job's supervisor is stopped by a signal", can_fix=True, is_safe=True),
    "damaged-job": Kind("A job's folder does not say what the job is, or how it ended"),
    "clock-skew": Kind("This machine's clock and the database's differ", is_note=True),
    "network-fs": Kind("The list is on a network file system", is_note=True),
    "hooks": Kind("A hook in a settings file that cannot be one"),
    "settings": Kind("Taskyard's own settings cannot be read"),
}


class Finding(NamedTuple):
    """One thing the doctor found."""

    name: str  #: a key of `KINDS`
    file: str
    why: str
    fix: str = ""  #: what the repair would do, or the command a person should consider
    task_id: str | None = None

    @property
    def kind(self) -> Kind:
        """What sort of finding it is."""
        return KINDS[self.name]


class Repair(NamedTuple):
    """One thing the doctor did."""

    name: str
    file: str
    done: str
    kept: str | None = None  #: where the original is now, or a copy of it
