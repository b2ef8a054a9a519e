"""Services that an agent's job gets from its host program: stores, mail, notices and registration.

`taskyard.yard.async_yard` implements this protocol, and a job gets it as `JobContext.services`. So this
package needs to import neither the PostgreSQL stores nor the composition root, both of which import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from taskyard.agents.mail import Mail
    from taskyard.config import Settings
    from taskyard.jobs.notices import Outbox
    from taskyard.storage.process_registry import Instance
    from taskyard.tasks.lists import Lists
    from taskyard.tasks.store import TaskStore
    from taskyard.yard import Yard


class Services(Protocol):
    """Stores and registries, chosen by the setting `store`."""

    def task_store(self, settings: Settings, folder: str, name: str) -> TaskStore:
        """Open the store of a list; `folder` contains the lists that are files."""
        ...

    def list_changes(self, settings: Settings, name: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Call `wake` from another thread when a list in a database may have changed.

        Lists in files are watched elsewhere.
        """
        ...

    def lists(self, tasks_dir: str | os.PathLike[str] | None) -> Lists:
        """Return all lists that `taskyard.open` would find."""
        ...

    def mail(self, settings: Settings, home: str, team: str, *, instance: Instance) -> Mail:
        """Open the mailboxes of a team, for one live agent."""
        ...

    def outbox(self, settings: Settings, home: str, recipient: str) -> Outbox:
        """Open the notices that wait for an agent."""
        ...

    def register(self, settings: Settings, home: str, agent: str | None) -> Instance:
        """Register this process as alive, under the name of an agent or under none."""
        ...

    def teammate_yard(
        self, settings: Settings, home: str, store: TaskStore, *, report: Callable[[str], None], cwd: str | None
    ) -> Yard:
        """Return the yard of a teammate, on a store shared in this process."""
        ...
