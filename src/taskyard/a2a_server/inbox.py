"""
Messages taken in: the first of a task begins a job, each further one is told to it.

A message is taken once, by its id: the job's record names the one it began with, and `letters` those that came later.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Mapping

from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from taskyard.a2a_server.letters import Letters, new
from taskyard.a2a_server.origin import Offered, Origin
from taskyard.a2a_server.skills import Skill
from taskyard.a2a_server.states import asked_at
from taskyard.a2a_server.tasks import Known, Tasks
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import Conflict, JobEnded, TaskyardError, UsageError
from taskyard.kinds.agent import LONGEST_PROMPT
from taskyard.kinds.agent_messages import as_line
from taskyard.names import check_text, nearest
from taskyard.remote.a2a.faults import RETRYABLE
from taskyard.remote.a2a.lines import plain
from taskyard.runtime.jobs import Jobs
from taskyard.shapes import as_text

_log = logging.getLogger("taskyard.a2a")

#: Characters of an id that somebody else made.
_LONGEST_ID = 256

#: Seconds to wait for another server of this user that begins a task just now.
_PATIENCE = 15.0


class Inbox:
    """Where messages arrive."""

    def __init__(self, jobs: Jobs, tasks: Tasks, skills: Mapping[str, Skill], *, most: int) -> None:
        """`most`: tasks of one caller that may go on at once."""
        self._jobs = jobs
        self._tasks = tasks
        self._skills = skills
        self._most = most

    def take(self, caller: str, wish: SendMessageRequest) -> str:
        """The id of the task that a message is for, or has begun.

        Raises:
            A2AError: it cannot be taken; says why.
        """
        message = wish.message
        if message.role != Role.ROLE_USER:
            raise InvalidParamsError("A message to an agent has the role of a user.")
        check_text("message id", message.message_id, longest=_LONGEST_ID, allow_empty=False)
        check_text("context id", message.context_id, longest=_LONGEST_ID)
        text = text_of(message.parts)
        if message.task_id:
            return self._told(caller, message, text)
        with RangeLock(f"{self._tasks.home}/a2a.lock") as lock:
            lock.take(0, timeout=_PATIENCE, what="the tasks of others")
            begun = self._tasks.book.begun(caller, message.message_id)
            return begun or self._begin(caller, wish, text)

    def _begin(self, caller: str, wish: SendMessageRequest, text: str) -> str:
        skill = self._skill(wish)
        self._check_room(caller)
        message = wish.message
        context = message.context_id or uuid.uuid4().hex
        origin = Origin(caller, message.message_id, context, skill.name, skill.transcript)
        try:
            return self._jobs.start(Offered(skill.agent(text), origin)).id
        except UsageError as error:  # of the skill, which the caller did not choose and may not see
            _log.warning("The skill %s could not be started: %s", skill.name, error)
            raise InternalError("This skill cannot work on the message; the log of the server says why.") from error

    def _skill(self, wish: SendMessageRequest) -> Skill:
        """The skill that is asked for: by name in the metadata, where there are several."""
        named = _word(wish.message.metadata, "skill") or _word(wish.metadata, "skill")
        if not named and len(self._skills) == 1:
            return next(iter(self._skills.values()))
        if named not in self._skills:
            known = ", ".join(nearest(named, self._skills) or self._skills)
            raise InvalidParamsError(f"The message's metadata must name a skill: `skill` is one of {known}.")
        return self._skills[named]

    def _check_room(self, caller: str) -> None:
        living = {job.id for job in self._jobs.list()}
        count = sum(origin.caller == caller and job in living for job, origin in self._tasks.book.look().items())
        if count >= self._most:
            said = f"{count} tasks go on, and no more may at once. Try again when one is over."
            raise InvalidRequestError(said, data={RETRYABLE: "true"})

    def _told(self, caller: str, message: Message, text: str) -> str:
        known = self._tasks.find(caller, message.task_id)
        if message.context_id and message.context_id != known.origin.context:
            raise InvalidParamsError("That task belongs to another context.")
        if message.message_id == known.origin.message or self._was_told(known, message.message_id):
            return known.job.id
        letters = Letters(self._tasks.folder(known.job.id))
        asked, question = asked_at(known.job), as_text(known.job.facts.get("question"))
        letters.begin(new(message.message_id, text, asked=asked, question=question if asked else ""))
        try:
            self._jobs.answer(known.job.id, as_line(caller, text))
        except TaskyardError as error:
            letters.refused(message.message_id)
            if isinstance(error, JobEnded):
                raise UnsupportedOperationError(f"The task is over: it has {error.status}.") from error
            if isinstance(error, Conflict):
                raise UnsupportedOperationError("The task takes no messages now.") from error
            raise
        letters.done(message.message_id)
        return known.job.id

    def _was_told(self, known: Known, message_id: str) -> bool:
        """Whether a message was handed over; if we died over it, its question tells, where it answered one."""
        letter = known.letters.get(message_id)
        if letter is None:
            return False
        return letter.is_done or (letter.asked > 0 and letter.asked != asked_at(known.job))


def text_of(parts: Iterable[Part]) -> str:
    """What a message says: text and data; files are not taken, and no address is ever asked for.

    Raises:
        ContentTypeNotSupportedError: there is something else in it.
        BadText: it is empty, too long, or cannot be stored.
    """
    told: list[str] = []
    for part in parts:
        if part.HasField("text"):
            told.append(part.text)
        elif part.HasField("data"):
            told.append(json.dumps(plain(MessageToDict(part.data)), ensure_ascii=False))
        else:
            raise ContentTypeNotSupportedError("Text and data are taken, files and addresses are not.")
    return check_text("message", "\n".join(told), longest=LONGEST_PROMPT, allow_empty=False)


def _word(metadata: Struct, name: str) -> str:
    return as_text(MessageToDict(metadata).get(name))
