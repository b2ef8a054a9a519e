"""Mail about tasks: to whoever must hear of it, known before or not, and never about their own act."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskyard.agents.mailbox import FileMail
from taskyard.errors import RecipientNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def post(tmp_path: Path) -> Iterator[FileMail]:
    with FileMail(str(tmp_path / "home"), "crew", claude_folder=str(tmp_path / "claude")) as post:
        yield post


@pytest.mark.req("L-16")
def test_a_new_owner_gets_mail_and_nobody_gets_mail_about_their_own_act(post: FileMail) -> None:
    data = {"taskId": "7", "subject": "s", "description": "d", "assignedBy": "ada", "timestamp": "2026-11-16T00:00:00Z"}
    assert post.inform("eve", "eve", type="task_assignment", data=data).state == "skipped"
    with pytest.raises(RecipientNotFound):
        post.send("ada", "eve", "not known yet")
    post.inform("ada", "eve", type="task_assignment", data=data)
    [message] = post.take("eve")
    assert (message.type, message.data) == ("task_assignment", data)
