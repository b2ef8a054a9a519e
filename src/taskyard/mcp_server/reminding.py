"""
A reminder of the list for a model that has long not touched it: at the end of an answer, now and then.

The rule is that of `context.reminder`, which counts a model's turns. A server sees its calls: those that begin while
another is being answered belong to one turn. A turn without a call is not seen, so it never comes too early. TaskList
shows all that a reminder would, so one is due ten turns after it at the soonest.
"""

from __future__ import annotations

from taskyard.context import MOST_REMINDERS, USES, ReminderConfig

#: Claiming a task changes it, as TaskUpdate does.
_USES = USES | {"TaskClaim"}
_SHOWS = "TaskList"


class Reminding:
    """How long one caller has gone without its list."""

    def __init__(self, config: ReminderConfig) -> None:
        self.config = config
        self._since_use = self._since_reminder = 0
        self._reminders = 0

    def called(self, tool: str, *, begins_turn: bool) -> None:
        """One more call; `begins_turn`: nothing else was being answered when it came."""
        self._since_use += begins_turn
        self._since_reminder += begins_turn
        if tool in _USES:
            self._since_use = 0
        if tool == _SHOWS:
            self._since_reminder = 0

    def is_due(self) -> bool:
        """Whether it is time; whoever is told so reminds."""
        config = self.config
        most = min(config.most_reminders, MOST_REMINDERS)
        is_due = (
            config.enabled
            and self._since_use >= config.turns_since_use
            and self._since_reminder >= config.turns_between
            and self._reminders < most
        )
        if is_due:
            self._since_reminder = 0
            self._reminders += 1
        return is_due
