"""
A reminder of the list for a model that has long not touched it: at the end of an answer, now and then.

The rule is that of `context.reminder`. A server sees calls and no turns, so each call counts as one: a model that
works without the list is reminded of it, one that does not call us is left alone.
"""

from __future__ import annotations

from taskyard.context import MOST_REMINDERS, USES, ReminderConfig


class Reminding:
    """How long one caller has gone without its list."""

    def __init__(self, config: ReminderConfig) -> None:
        self.config = config
        self._since_use = self._since_reminder = 0
        self._reminders = 0

    def called(self, tool: str) -> None:
        """One more call."""
        self._since_use = 0 if tool in USES else self._since_use + 1
        self._since_reminder += 1

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
