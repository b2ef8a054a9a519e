"""In whose hands taken mail and notices are: the agent's own instance, or an unnamed one of this process."""

from __future__ import annotations

from taskyard import instances

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.instances import Instance


class Hands:
    """The holder under which this process takes what waits; a forked child becomes one of its own."""

    __slots__ = ("_home", "_instance", "_unnamed")

    def __init__(self, home: str, instance: Instance | None) -> None:
        self._home = home
        self._instance = instance
        self._unnamed: Instance | None = None

    def found(self) -> str | None:
        """The holder, if this process has taken anything yet."""
        for instance in (self._instance, self._unnamed):
            if instance is not None and instance.is_ours:
                return instance.id
        return None

    def holder(self) -> str:
        """The holder; from now on this process is one."""
        if there := self.found():
            return there
        entered = instances.enter_unnamed(self._home)
        if there := self.found():  # another thread was faster
            entered.leave()
            return there
        self._unnamed = entered
        return entered.id

    def open(self) -> None:
        """Let go of everything that was taken unnamed: it goes back to the box."""
        if self._unnamed is not None:
            self._unnamed.leave()
            self._unnamed = None
