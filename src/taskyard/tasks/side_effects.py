"""Interface by which the task list runs hooks and acceptance commands, sends mail and gets leases.

`app` implements it; `NoSideEffects` serves stores that are used on their own.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from taskyard.tasks.model import Lease, Task


class Evidence(NamedTuple):
    """Result of running a task's acceptance command."""

    command: str
    exit_code: int | None  #: None: timeout
    output: str
    seconds: float
    at: int


class SideEffects(Protocol):
    """Hooks, acceptance commands, mail and identity. Never called while a lock is held."""

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """Return the lease under which the caller would hold a claim, with a new token each time."""
        ...

    def instance(self, agent: str) -> str:
        """Return the instance that acts as `agent`; "" if it has claimed nothing yet."""
        ...

    def is_main(self, agent: str | None) -> bool:
        """Return whether `agent` is the main agent, which is asked to have its work verified."""
        ...

    def leads(self, agent: str | None) -> bool:
        """Return whether `agent` is the lead of the list's team."""
        ...

    def is_guarded(self, event: str) -> bool:
        """Return whether any hook is registered for `event`."""
        ...

    def ask_hooks(self, event: str, task: Task, agent: str | None, *, cancel: threading.Event | None = None) -> None:
        """Run the hooks of `event`.

        Raises:
            HookRefused: a hook refused.
            Cancelled: `cancel` was set meanwhile.
        """
        ...

    def accept(self, spec: Mapping[str, object], *, cancel: threading.Event | None = None) -> Evidence:
        """Run an acceptance command.

        Raises:
            Untrusted: no user has allowed it.
            Cancelled: `cancel` was set meanwhile.
        """
        ...

    def tell(self, recipient: str, *, sender: str | None, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Send a mail message about the list."""
        ...

    def changed(self) -> None:
        """Wake the watchers of this list in this process."""
        ...


class NoSideEffects:
    """No hooks, no mail, and manual leases: for stores used on their own."""

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """Return a lease by name, which expires only if `seconds` is given."""
        from taskyard.core.system import now_ms
        from taskyard.tasks.model import Lease, new_token

        span, since = 0 if seconds is None else int(seconds * 1000), now_ms()
        expires = since + span if span else None
        return Lease(agent, agent, new_token(), "time" if span else "manual", since, expires, span)

    def instance(self, agent: str) -> str:
        """Return the agent's name."""
        return agent

    def is_main(self, agent: str | None) -> bool:
        """Return whether no agent is named: there are no teams here."""
        return agent is None

    def leads(self, agent: str | None) -> bool:
        """Return False: there are no teams here."""
        return False

    def is_guarded(self, event: str) -> bool:
        """Return False."""
        return False

    def ask_hooks(self, event: str, task: Task, agent: str | None, *, cancel: threading.Event | None = None) -> None:
        """Refuse nothing."""

    def accept(self, spec: Mapping[str, object], *, cancel: threading.Event | None = None) -> Evidence:
        """Refuse every command."""
        from taskyard.errors import Untrusted

        raise Untrusted("The acceptance command", str(spec.get("command")), "taskyard trust")

    def tell(self, recipient: str, *, sender: str | None, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Send nothing."""

    def changed(self) -> None:
        """Wake nothing."""
