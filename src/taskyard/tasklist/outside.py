"""What the list needs of the world around it, as one small interface that `app` fills in."""

from __future__ import annotations

from typing import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from taskyard.tasklist.model import Lease, Task


class Evidence(NamedTuple):
    """What running a task's acceptance command showed."""

    command: str
    exit_code: int | None  #: None: it ran out of time
    output: str
    seconds: float
    at: int


class Outside(Protocol):
    """Hooks, acceptance commands, mail and identity. Never called while a lock is held."""

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """What this caller would hold a claim under: a new token each time."""
        ...

    def instance(self, agent: str) -> str:
        """Which instance acts when `agent` does; "" if it has claimed nothing yet."""
        ...

    def is_main(self, agent: str | None) -> bool:
        """Whether `agent` is the main agent, who is told to have its work verified."""
        ...

    def leads(self, agent: str | None) -> bool:
        """Whether `agent` is the lead of the list's team."""
        ...

    def is_guarded(self, event: str) -> bool:
        """Whether any hook listens to `event`."""
        ...

    def ask_hooks(self, event: str, task: Task, agent: str | None, *, cancel: threading.Event | None = None) -> None:
        """Run the hooks of `event`.

        Raises:
            HookRefused: one of them said no.
            Cancelled: `cancel` was set meanwhile.
        """
        ...

    def accept(self, spec: Mapping[str, object], *, cancel: threading.Event | None = None) -> Evidence:
        """Run an acceptance command.

        Raises:
            Untrusted: no person has allowed it.
            Cancelled: `cancel` was set meanwhile.
        """
        ...

    def tell(self, recipient: str, *, sender: str | None, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Send mail about the list."""
        ...

    def changed(self) -> None:
        """Wake whoever watches this list in this process."""
        ...


class Nobody:
    """An outside with no hooks, no mail and a manual lease: for stores used on their own."""

    def lease(self, agent: str, *, seconds: float | None = None) -> Lease:
        """A lease by name, with an end only if one is asked for."""
        from taskyard.clock import now_ms
        from taskyard.tasklist.model import Lease
        from taskyard.tasklist.tokens import new_token

        span, since = 0 if seconds is None else int(seconds * 1000), now_ms()
        expires = since + span if span else None
        return Lease(agent, agent, new_token(), "time" if span else "manual", since, expires, span)

    def instance(self, agent: str) -> str:
        """The name is all there is."""
        return agent

    def is_main(self, agent: str | None) -> bool:
        """Whoever names no agent: there are no teams here."""
        return agent is None

    def leads(self, agent: str | None) -> bool:
        """Nobody: there are no teams here."""
        return False

    def is_guarded(self, event: str) -> bool:
        """Nothing is."""
        return False

    def ask_hooks(self, event: str, task: Task, agent: str | None, *, cancel: threading.Event | None = None) -> None:
        """Nobody objects."""

    def accept(self, spec: Mapping[str, object], *, cancel: threading.Event | None = None) -> Evidence:
        """Nobody may run anything here."""
        from taskyard.errors import Untrusted

        raise Untrusted("The acceptance command", str(spec.get("command")), "taskyard trust")

    def tell(self, recipient: str, *, sender: str | None, kind: str, text: str, data: Mapping[str, object]) -> None:
        """Nobody gets mail."""

    def changed(self) -> None:
        """Nobody watches."""
