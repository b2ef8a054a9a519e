"""One poll: tasks as they are told, put together to what is new and how it stands. Pure."""

from __future__ import annotations

from a2a.types.a2a_pb2 import Artifact, Task, TaskState
from google.protobuf.json_format import MessageToDict

from taskyard.remote.a2a import since
from taskyard.remote.a2a.cursor import Cursor
from taskyard.remote.a2a.lines import ended, news, plain, text_of
from taskyard.remote.backend import RemoteState, Seen
from taskyard.shapes import as_object

_STATES = {
    TaskState.TASK_STATE_INPUT_REQUIRED: RemoteState.NEEDS_INPUT,
    TaskState.TASK_STATE_AUTH_REQUIRED: RemoteState.NEEDS_INPUT,
    TaskState.TASK_STATE_COMPLETED: RemoteState.COMPLETED,
    TaskState.TASK_STATE_FAILED: RemoteState.FAILED,
    TaskState.TASK_STATE_CANCELED: RemoteState.STOPPED,
    TaskState.TASK_STATE_REJECTED: RemoteState.FAILED,
}

#: Characters that one poll brings at most, where the rest can be asked for.
_ENOUGH = 8_000_000

#: What is said of an end that came without a word.
_WORDLESS = {
    TaskState.TASK_STATE_FAILED: "it failed, and does not say why",
    TaskState.TASK_STATE_REJECTED: "it rejected the task, and does not say why",
}


class Seeing:
    """What is heard of one task."""

    def __init__(self, cursor: Cursor, *, is_ours: bool) -> None:
        """`is_ours`: our own server tells, from an offset on."""
        self.is_ours = is_ours
        self._cursor = cursor
        self._told: list[str] = []
        self._is_behind = False

    @property
    def offset(self) -> int:
        """Where our own server is to go on."""
        return self._cursor.offset

    def hear(self, task: Task) -> bool:
        """Take in what a task says; whether to ask for more of it at once."""
        if not self.is_ours:
            text, self._cursor = news(task, self._cursor, is_over=final(task))
            self._told.append(text)
            return False
        for artifact in task.artifacts:
            if artifact.artifact_id == since.TRANSCRIPT:
                self._part(artifact)
        return self._is_behind and sum(map(len, self._told)) < _ENOUGH

    def _part(self, artifact: Artifact) -> None:
        where = MessageToDict(artifact.metadata)
        then = where.get(since.NEXT)
        if where.get(since.OFFSET) != self._cursor.offset or not isinstance(then, (int, float)):
            return  # not what was asked for
        self._told.append(ended(text_of(artifact.parts)))
        self._is_behind = where.get(since.MORE) is True and then > self._cursor.offset
        self._cursor = self._cursor._replace(offset=max(int(then), self._cursor.offset))

    def seen(self, task: Task) -> Seen:
        """What all of it says; it is over only for who has heard everything."""
        state = _STATES.get(task.status.state, RemoteState.RUNNING)
        text, metadata = "".join(self._told), as_object(plain(MessageToDict(task.metadata))) or {}
        if self._is_behind and state.is_final:
            return Seen(RemoteState.RUNNING, str(self._cursor), text, metadata=metadata)
        spoken = text_of(task.status.message.parts).strip()
        error = spoken or _WORDLESS.get(task.status.state, "") if state is RemoteState.FAILED else ""
        question = spoken or "It needs input." if state is RemoteState.NEEDS_INPUT else ""
        result = _result(task, spoken) if state is RemoteState.COMPLETED else ""
        return Seen(state, str(self._cursor), text, result, error, question, metadata)


def final(task: Task) -> bool:
    """Whether a task is over."""
    return _STATES.get(task.status.state, RemoteState.RUNNING).is_final


def _result(task: Task, spoken: str) -> str:
    """The final answer: the artifact of that name, else what it said at its end, else the last artifact."""
    named = [each for each in task.artifacts if since.RESULT in (each.artifact_id, each.name)]
    if not named and spoken:
        return spoken
    last = (named or list(task.artifacts))[-1:]
    return text_of(last[0].parts).rstrip("\n") if last else ""
