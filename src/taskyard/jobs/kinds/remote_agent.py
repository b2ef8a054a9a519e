"""
The job kind `remote_agent`: an agent that runs on a remote backend.

The work is submitted to a remote (`taskyard.jobs.remote`) under the id of our job. A process below the job's
supervisor polls the session and appends its output to the job's output (`remote_agent_run`). If any of these
processes is killed, the session continues; the next process that reads the job has it followed again, from
the position in its sidecar (`remote_agent_run.Sidecar`).
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.core.values import NamedTuple, check_name, check_text
from taskyard.errors import BadText, BadValue
from taskyard.jobs.kind import LaunchSpec, check_run
from taskyard.jobs.remote import create_backend
from taskyard.jobs.remote.backend import poll_interval
from taskyard.jobs.remote.completion import check_reference, check_subtype, checker_reference
from taskyard.jobs.remote.remotes import find_remote, read_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from taskyard.jobs.context import JobContext
    from taskyard.jobs.kind import Outcome

#: Characters of a prompt, and of the metadata: remotes accept no more.
LONGEST_PROMPT, _LONGEST_METADATA = 200_000, 16_000

#: Seconds a remote has to stop a session: some send its program SIGTERM first and wait. The whole stop takes at
#: most 5 s.
STOP_GRACE = 4.5

#: Seconds before a killed process is restarted; doubled each further time (backoff).
_RESTART_DELAY = 0.2


class RemoteAgent(NamedTuple):
    """An agent to run on a remote."""

    prompt: str
    remote: str  #: name of the remote in config.toml
    remote_task_type: str = "remote-agent"  #: subtype of the work: selects the completion checker
    metadata: Mapping[str, str] = {}  #: stored with the session and passed to completion checkers; not for secrets
    command: str = ""  #: program to run, where the remote runs programs; the remote's own if empty
    session: str | None = None  #: follow this existing session, and send it the prompt, if there is one
    name: str | None = None  #: name to address it by
    description: str | None = None  #: one line for display; the prompt's first line if not given
    timeout: float | None = None  #: seconds until it is stopped
    on_parent_exit: str | None = None  #: "kill" or "keep"; "keep" if not given, because its work is on another host
    tool_use_id: str | None = None
    task: str | None = None  #: the task it works on, `list/id`
    checker: str = ""  #: `module:function` or `file.py:function` that detects completion; as registered if empty
    resumes: str | None = None  #: the job whose session it continues; see `resume`

    @property
    def type(self) -> str:
        """The kind's name in job records."""
        return "remote_agent"

    @property
    def letter(self) -> str:
        """Prefix of its job ids."""
        return "r"

    @classmethod
    def resume(cls, job_id: str, prompt: str = "", *, home: str | None = None) -> Self:
        """Return the spec that follows the session of a finished job again; a non-empty `prompt` is sent to it.

        Raises:
            JobNotFound: There is no such job.
            Conflict: It is not a remote agent, or not over, or never had a session.
        """
        from taskyard.jobs.kinds.remote_agent_run import resume_fields

        return cls(**resume_fields(home or config.home(), job_id, prompt))  # type: ignore[arg-type]  # fields of an earlier one

    def wanted(self) -> LaunchSpec:
        """Return the launch spec for the supervisor.

        Raises:
            RemoteNotFound: The remote is not configured.
            RemoteRefused: Its token is missing.
            BadValue, BadText, BadName: A field is invalid.
            MissingExtra: The backend needs a package that is not installed.
        """
        self._check()
        place = find_remote(self.remote)
        poll_interval(place)
        create_backend(place, read_token(place))
        if self.checker:
            checker = check_reference("checker", self.checker, folder=os.getcwd())
        else:
            checker = checker_reference(self.remote_task_type)
        known = {"remote": self.remote, "remoteTaskType": self.remote_task_type}
        return LaunchSpec(
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
            grace=STOP_GRACE,
            retry_delay=_RESTART_DELAY,
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
        """Restore the record from `wanted().arguments`."""
        return cls(**arguments)  # type: ignore[arg-type]  # made by `wanted`

    async def run(self, context: JobContext) -> Outcome:
        """Follow the session until it ends."""
        from taskyard.jobs.kinds.remote_agent_run import follow_session

        return await follow_session(self, context)

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
