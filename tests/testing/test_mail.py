"""The contract of a post office, kept by mail in files and in a database; and broken ones are found out."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import pytest

from taskyard.agents.mailbox import FileMail
from taskyard.postgres.connection import database
from taskyard.postgres.mail import PostgresMail
from taskyard.testing import check_mail

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from taskyard.agents.mail import Mail, Message

#: Seconds of silence after which a reader counts as gone: long enough for a loaded machine to say three words in.
SILENCE = 2.0


@pytest.mark.req("M-02", "X-01")
def test_mail_in_files_keeps_the_contract(tmp_path: Path) -> None:
    numbers = count()

    def make() -> Callable[[], Mail]:
        return partial(FileMail, str(tmp_path / f"home{next(numbers)}"), "crew", claude_folder=str(tmp_path / "claude"))

    check_mail(make, silence=0)


@pytest.mark.req("M-02", "X-01")
def test_mail_in_a_database_keeps_the_contract(address: str, tmp_path: Path) -> None:
    numbers = count()

    def make() -> Callable[[], Mail]:
        home, claude = str(tmp_path / "home"), str(tmp_path / "claude")
        team = f"crew{next(numbers)}"
        return partial(PostgresMail, database(address), home, team, claude_folder=claude, silence=SILENCE)

    check_mail(make, silence=SILENCE)


class Forgetful(FileMail):
    """Takes mail from nobody's hands but the first reader's, and says that it is new."""

    def take(self, agent: str, *, limit: int = 100, hold: float | None = None) -> list[Message]:
        return [message._replace(redelivered=False) for message in super().take(agent, limit=limit, hold=hold)]


@pytest.mark.req("M-02")
def test_an_office_that_hides_a_redelivery_does_not_pass(tmp_path: Path) -> None:
    numbers = count()
    with pytest.raises(AssertionError, match="gives back what it held"):
        check_mail(lambda: partial(Forgetful, str(tmp_path / str(next(numbers))), "crew"), silence=0)
