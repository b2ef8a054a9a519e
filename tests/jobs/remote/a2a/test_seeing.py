from __future__ import annotations

import pytest
from a2a.types.a2a_pb2 import Artifact, Part, Task, TaskState, TaskStatus

from taskyard.jobs.remote import a2a
from taskyard.jobs.remote.a2a import A2aCursor, parse_cursor
from taskyard.jobs.remote.backend import RemoteState


def part(text: str, offset: int, then: float, *, more: bool) -> Task:
    """A task of our own server that is over, with a stretch of what it said."""
    where = {a2a.OFFSET_KEY: offset, a2a.NEXT_KEY: then, a2a.MORE_KEY: more}
    said = Artifact(artifact_id=a2a.TRANSCRIPT, parts=[Part(text=text)], metadata=where)
    result = Artifact(artifact_id=a2a.RESULT, parts=[Part(text="done")])
    return Task(id="t", status=TaskStatus(state=TaskState.TASK_STATE_COMPLETED), artifacts=[said, result])


def test_a_task_is_over_only_for_who_has_heard_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(a2a, "_MAX_POLL_CHARS", 3)
    first = a2a.PollBuilder(A2aCursor(), is_ours=True)

    assert not first.hear(part("one\n", 0, 10, more=True)), "it is enough for one poll"
    seen = first.seen(part("one\n", 0, 10, more=True))
    assert (seen.state, seen.text, seen.result) == (RemoteState.RUNNING, "one\n", "")
    second = a2a.PollBuilder(parse_cursor(seen.cursor), is_ours=True)
    second.hear(part("two\n", 10, 20, more=False))
    seen = second.seen(part("two\n", 10, 20, more=False))
    assert (seen.state, seen.text, seen.result) == (RemoteState.COMPLETED, "two\n", "done")


def test_what_is_left_is_asked_for_at_once() -> None:
    heard = a2a.PollBuilder(A2aCursor(), is_ours=True)

    assert heard.hear(part("one\n", 0, 10, more=True))
    assert not heard.hear(part("two\n", 10, 20, more=False))


@pytest.mark.parametrize(("offset", "then"), [(5, 20), (0, -3)])
def test_a_server_that_tells_another_stretch_or_goes_back_keeps_nobody_asking(offset: int, then: float) -> None:
    heard = a2a.PollBuilder(A2aCursor(), is_ours=True)

    assert not heard.hear(part("one\n", offset, then, more=True))
    assert heard.offset == 0
