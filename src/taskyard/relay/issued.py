"""
Notices of every home, for those who check what looks like one.

Each home has a key of its own, which never leaves it. What the database holds is compared word for word; its check
value is worked out here if it was issued here, and else by the home that issued it, which must be there to be asked:
what nobody can vouch for is refused (`HostAway`), never taken as genuine.
"""

from __future__ import annotations

from taskyard import message_ids
from taskyard.errors import HostAway
from taskyard.relay import far_notices, records
from taskyard.relay.asking import Asking
from taskyard.relay.forwarding import Forwarding
from taskyard.runtime.verify import IssuedHere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.database.pool import Database
    from taskyard.relay.host import Host
    from taskyard.runtime.notice import Notice


class IssuedAnywhere:
    """The notices of all homes that share a database."""

    def __init__(self, host: Host, database: Database, agent: str | None) -> None:
        self._host = host
        self._database = database
        self._asking = Asking(database, agent)
        self._here = IssuedHere(host.home)
        self._hosts: dict[str, str] = {}  #: who issued which
        Forwarding(host, database).before_reading()

    def with_id(self, notice_id: str) -> Notice | None:
        """The notice with this id."""
        if not message_ids.is_id(notice_id):
            return None
        found = far_notices.with_id(self._database, notice_id)
        if found is None:
            return self._here.with_id(notice_id)
        self._hosts[notice_id] = found.host
        return found.notice

    def of_job(self, job_id: str) -> Iterable[Notice]:
        """Every notice about a job."""
        found = far_notices.of_job(self._database, job_id)
        self._hosts.update((one.notice.id, one.host) for one in found)
        return [one.notice for one in found] or self._here.of_job(job_id)

    def is_read(self, notice_id: str) -> bool:
        """Whether somebody acknowledged it."""
        found = far_notices.with_id(self._database, notice_id)
        return self._here.is_read(notice_id) if found is None else found.state == "read"

    def is_sealed(self, notice: Notice) -> bool:
        """Whether the home that issued it says that it did.

        Raises:
            HostAway: it cannot be asked, so nobody can say.
        """
        host = self._hosts.get(notice.id, self._host.id)
        if host == self._host.id:
            return self._here.is_sealed(notice)
        far = records.find_all(self._database, [notice.task_id]).get(notice.task_id)
        if far is None or far.host != host:
            raise HostAway(host, notice.task_id, seconds=0.0)
        return self._asking.ask(far, "check", {"news": dict(notice.news)}).get("genuine") is True
