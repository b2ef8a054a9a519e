"""Kinds of findings of the doctor, under stable names by which users and scripts request repairs."""

from __future__ import annotations

from taskyard.core.values import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class FindingKind(NamedTuple):
    """One kind of finding."""

    about: str  #: what it means, for the overview
    can_fix: bool = False
    is_safe: bool = False  #: repaired without being named: it cannot lose anything
    is_note: bool = False  #: information; nothing is wrong


#: Every name, in the order of a report.
FINDING_KINDS: Mapping[str, FindingKind] = {
    "unreachable": FindingKind("The database cannot be reached, or refuses the connection"),
    "other-schema": FindingKind("The database has tables of another version, or none"),
    "not-a-list": FindingKind("The list's folder is a link or a file"),
    "lock-held": FindingKind("A live process holds a lock for longer than any change takes"),
    "damaged-task": FindingKind("A task file cannot be read", can_fix=True),
    "not-a-task-file": FindingKind("An entry named like a task is not a plain file", can_fix=True),
    "hidden-task": FindingKind("A task file that Claude Code does not see", can_fix=True, is_safe=True),
    "wrong-id": FindingKind("The id in a task file differs from its name", can_fix=True, is_safe=True),
    "deleted-mark": FindingKind("A file that only says that its task is gone", can_fix=True, is_note=True),
    "cycle": FindingKind("Tasks that wait for each other for ever"),
    "half-edge": FindingKind("A dependency that only one of its two tasks knows", can_fix=True, is_safe=True),
    "dangling-blocker": FindingKind("A dependency on a task that is not there", can_fix=True, is_safe=True),
    "held-task": FindingKind("A task quarantined after losing its holder too often", can_fix=True),
    "foreign-file": FindingKind("A name that no task can have", can_fix=True),
    "id-without-room": FindingKind("A task whose id leaves no room for others"),
    "other-file": FindingKind("A file of another program", is_note=True),
    "damaged-older-list": FindingKind("The older tasks.json cannot be read"),
    "stale-lock": FindingKind("A lock that a dead program left", can_fix=True, is_safe=True),
    "foreign-lock": FindingKind("Something that blocks a lock for ever", can_fix=True),
    "bad-mark": FindingKind("The mark of the highest id is not a number", can_fix=True, is_safe=True),
    "low-mark": FindingKind("The mark is below an id that was given out", can_fix=True, is_safe=True),
    "impossible-mark": FindingKind("The mark is above every possible id, or no plain file", can_fix=True),
    "unsettled": FindingKind("A change that its writer did not finish", can_fix=True, is_safe=True),
    "orphan-lease": FindingKind("A lease record that fits no task", can_fix=True, is_safe=True),
    "dead-holder": FindingKind("A task held by a process that is gone", can_fix=True, is_safe=True),
    "ledger": FindingKind("The index and the event log disagree", can_fix=True, is_safe=True),
    "leftover-draft": FindingKind("A half-written file of a dead writer", can_fix=True, is_safe=True),
    "torn-log": FindingKind("Lines of the event log that cannot be read", is_note=True),
    "open-permissions": FindingKind("Others may read what is yours alone", can_fix=True, is_safe=True),
    "planted-link": FindingKind("A link where a file or folder of ours should be"),
    "damaged-record": FindingKind("A record of teams or trust cannot be read"),
    "damaged-claude-team": FindingKind("Claude Code's record of a team cannot be read"),
    "damaged-claude-inbox": FindingKind("An inbox of Claude Code's cannot be read"),
    "stopped-supervisor": FindingKind("A job's supervisor is stopped by a signal", can_fix=True, is_safe=True),
    "damaged-job": FindingKind("A job's folder does not describe the job, or how it ended"),
    "clock-skew": FindingKind("This machine's clock and the database's differ", is_note=True),
    "network-fs": FindingKind("The list is on a network file system", is_note=True),
    "hooks": FindingKind("A hook in a settings file that cannot be one"),
    "settings": FindingKind("Taskyard's own settings cannot be read"),
}


class Finding(NamedTuple):
    """One finding of the doctor."""

    name: str  #: a key of `FINDING_KINDS`
    file: str
    why: str
    fix: str = ""  #: what the repair would do, or the command a user should consider
    task_id: str | None = None

    @property
    def kind(self) -> FindingKind:
        """The kind of finding."""
        return FINDING_KINDS[self.name]


class Repair(NamedTuple):
    """One repair that was made."""

    name: str
    file: str
    done: str
    kept: str | None = None  #: where the original is now, or a copy of it
