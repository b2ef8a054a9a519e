"""
An agent that works elsewhere: `remote_agent`.

It is handed to a place that runs agents (`taskyard.remote`), under our job's id, and followed from here: a process
below the job's keeper polls it, and appends what it says to the job's output. Whatever of that is killed, the session
goes on; whoever looks at the job next has it followed again, from where its sidecar says (`kinds.remote.sidecar`).
"""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.errors import BadText, BadValue
from taskyard.kinds.checks import check_run
from taskyard.names import check_name, check_text
from taskyard.remote import backend_of
from taskyard.remote.code_reference import check_reference
from taskyard.remote.completion import check_subtype, reference_for
from taskyard.remote.pace import quick_of
from taskyard.remote.remotes import remote_named, token_of
from taskyard.runtime.kind import Wanted
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from taskyard.runtime.context import JobContext
    from taskyard.runtime.kind import Outcome

#: Characters of a prompt, and of all that is kept beside it: places take no more.
LONGEST_PROMPT, _LONGEST_METADATA = 200_000, 16_000

#: Seconds that a place has to end a session: some ask its program first, and wait a while. Everything together ends
#: within five.
GRACE = 4.5

#: Seconds before a process that was killed is started again; twice as long each further time.
_AGAIN = 0.2


class RemoteAgent(NamedTuple):
    """An agent to run elsewhere."""

    prompt: str
    remote: str  #: the place, as config.toml names it
    remote_task_type: str = "remote-agent"  #: what kind of work: by this it is known when it is complete
    metadata: Mapping[str, str] = {}  #: kept with the session, and given to completion checkers; no place for secrets
    command: str = ""  #: the program that does it there, where the place runs programs; the place's own if empty
    session: str | None = None  #: follow this session, which is there, and tell it the prompt, if there is one
    name: str | None = None  #: under which it is known
    description: str | None = None  #: one line for people; the prompt's first line if not given
    timeout: float | None = None  #: seconds until it is ended
    on_parent_exit: str | None = None  #: "kill" or "keep"; kept if not given, since its work is elsewhere
    tool_use_id: str | None = None
    task: str | None = None  #: the task it is for, `list/id`
    checker: str = ""  #: `module:function` or `file.py:function` that says when it is complete; as registered if empty
    resumes: str | None = None  #: the job whose session it goes on with; see `resume`

    @property
    def type(self) -> str:
        """The kind, as records name it."""
        return "remote_agent"

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return "r"

    @classmethod
    def resume(cls, job_id: str, prompt: str = "", *, home: str | None = None) -> Self:
        """What follows the session of an agent elsewhere again, whose job is over; `prompt`, if any, is told it.

        Raises:
            JobNotFound: there is no such job.
            Conflict: it is none of these, or not over, or never had a session.
        """
        from taskyard.kinds.remote.again import earlier

        return cls(**earlier(home or paths.home(), job_id, prompt))  # type: ignore[arg-type]  # fields of an earlier one

    def wanted(self) -> Wanted:
        """What its keeper is asked for.

        Raises:
            RemoteNotFound: no such place is set up.
            RemoteRefused: its token is not there.
            BadValue, BadText, BadName: something in it cannot be.
            MissingExtra: the place takes packages that are not there.
        """
        self._check()
        place = remote_named(self.remote)
        quick_of(place)
        backend_of(place, token_of(place))
        if self.checker:
            checker = check_reference("checker", self.checker, folder=os.getcwd())
        else:
            checker = reference_for(self.remote_task_type)
        known = {"remote": self.remote, "remoteTaskType": self.remote_task_type}
        return Wanted(
            self._line(),
            arguments={
                "prompt": self.prompt,
                "remote": self.remote,
                "remote_task_type": self.remote_task_type,
                "metadata": dict(self.metadata),
                "command": self.command,
                "session": self.session,
                "name": self.name,
                **({"checker": checker} if checker else {}),
            },
            text=f"agent ({self.remote})",
            timeout=self.timeout,
            on_parent_exit=self.on_parent_exit or "keep",
            stdin=True,
            grace=GRACE,
            retry_delay=_AGAIN,
            tool_use_id=self.tool_use_id,
            task=self.task,
            resumes=True,
            needs_env=(place.token_env,) if place.token_env else (),
            facts={
                **known,
                "remoteTaskMetadata": dict(self.metadata),
                "prompt": self.prompt[:10_000],
                **({"sessionId": self.session} if self.session is not None else {}),
                **({"name": self.name} if self.name is not None else {}),
                **({"resumes": self.resumes} if self.resumes is not None else {}),
            },
        )

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """The record that `wanted().arguments` was made from."""
        return cls(**arguments)  # type: ignore[arg-type]  # made by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Follow it to its end."""
        from taskyard.kinds.remote.following import follow

        return await follow(self, context)

    def _check(self) -> None:
        if not self.prompt.strip() and self.session is None:
            raise BadText("prompt", "is empty")
        check_text("prompt", self.prompt, longest=LONGEST_PROMPT)
        check_subtype(self.remote_task_type)
        check_text("command", self.command, longest=10_000)
        for key, value in self.metadata.items():
            check_text("metadata", key, longest=200, allow_empty=False)
            check_text(f"metadata {key}", value, longest=_LONGEST_METADATA)
        if self.name is not None:
            check_name("an agent", self.name)
        if self.session is not None:
            check_text("session", self.session, longest=1_000, allow_empty=False)
            if self.command:
                raise BadValue("command", self.command, "left out: the session is there, and does what it does")
        check_run(cwd=None, timeout=self.timeout, on_parent_exit=self.on_parent_exit)

    def _line(self) -> str:
        said = self.description or next(iter(self.prompt.strip().splitlines()), f"session {self.session}")
        return "".join(char if char.isprintable() else " " for char in said)[:200]
