"""
The jobs of one user, for one caller: started, looked at, waited for, steered.

Everything here works on files and the kernel's word, so any process can do it to any job, also after whoever started
it is gone.
"""

from __future__ import annotations

import os
import sys

from taskyard.clock import now_ms
from taskyard.config import Settings
from taskyard.disk.files import make_private_folder
from taskyard.disk.processes import process_start, this_host
from taskyard.errors import BackgroundDisabled, JobNotFound, TooDeep
from taskyard.names import folder_name
from taskyard.runtime import looking, steering, waiting
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.gc import maybe_collect
from taskyard.runtime.ids import is_job_id, new_id
from taskyard.runtime.lifeline import lifeline
from taskyard.runtime.starting import Forker, start_alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from taskyard.runtime.model import Job

    class Spec(Protocol):
        """What a kind asks a keeper to run."""

        @property
        def type(self) -> str: ...
        @property
        def letter(self) -> str: ...
        @property
        def argv(self) -> list[str]: ...
        @property
        def text(self) -> str: ...
        @property
        def description(self) -> str: ...
        @property
        def cwd(self) -> str | None: ...
        @property
        def env(self) -> Mapping[str, str] | None: ...
        @property
        def timeout(self) -> float | None: ...
        @property
        def output_cap(self) -> int | None: ...
        @property
        def on_parent_exit(self) -> str | None: ...
        @property
        def stdin(self) -> bool: ...
        @property
        def pty(self) -> bool: ...
        @property
        def grace(self) -> float: ...
        @property
        def leave_children(self) -> bool: ...
        @property
        def retries(self) -> int: ...
        @property
        def retry_delay(self) -> float: ...
        @property
        def tool_use_id(self) -> str | None: ...


#: Settings that say that nothing may run in the background.
_DISABLED = ("TASKYARD_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")


class Jobs:
    """Background jobs, for programs that wait in line; `AsyncJobs` is the same for those that do not."""

    def __init__(
        self,
        home: str,
        *,
        agent: str | None = None,
        instance: str | None = None,
        settings: Settings | None = None,
        alone: bool = False,
    ) -> None:
        """For one caller.

        Args:
            home: `$TASKYARD_HOME`.
            agent: The name it acts under; the person if not given.
            instance: The living instance behind that name: once it is gone, news of its jobs go to the person.
            settings: Limits and the like.
            alone: Each job gets a keeper started for it, as for a command that ends right away.
        """
        self.home = home
        self.agent = agent
        self._instance = instance
        self._settings = settings if settings is not None else Settings()
        self._alone = alone
        self._forker = Forker()

    def start(
        self,
        spec: Spec,
        *,
        backgrounded: bool = True,
        after: Sequence[str] = (),
        after_any: Sequence[str] = (),
        window: tuple[int, int] | None = None,
    ) -> Job:
        """Start a job; when this returns it is there for everybody.

        Args:
            spec: What shall run.
            backgrounded: Its end is told by a notice; else whoever starts it watches it.
            after: Jobs that must have completed; it does not run if one of them ends otherwise.
            after_any: Jobs that must be over, however they ended.
            window: Rows and columns of its terminal, if it has one.

        Raises:
            UsageError: something in it cannot be.
            BackgroundDisabled: nothing may run in the background here.
        """
        request = self.request(spec, backgrounded=backgrounded, after=[self.get(other).id for other in after])
        request["after_any"] = [self.get(other).id for other in after_any]
        request["window"] = window
        if self._alone:
            start_alone(request)
        else:
            self._forker.start(request)
        maybe_collect(self.home, self._settings)
        return looking.look(self.home, str(request["id"]))

    def run(self, spec: Spec, *, timeout: float | None = None) -> Job:
        """Start a job and wait for its end."""
        return self.wait(self.start(spec, backgrounded=False).id, timeout=timeout)

    def get(self, job_id: str) -> Job:
        """One job as it is now.

        Raises:
            JobNotFound: there never was one of this id.
        """
        return looking.look(self.home, job_id)

    def list(self, *, ended: bool = False) -> list[Job]:
        """Every job that lives, oldest first; with `ended` also those that are over."""
        return looking.everything(self.home, ended=ended)

    def wait(self, job_id: str, *, timeout: float | None = None) -> Job:
        """The job at its end, or as it is after `timeout` seconds."""
        return waiting.wait(self.home, job_id, timeout)

    def wait_all(self, job_ids: Sequence[str], *, timeout: float | None = None) -> Sequence[Job]:
        """All jobs at their ends, or as they are after `timeout` seconds."""
        return waiting.wait_all(self.home, job_ids, timeout)

    def stop(self, *job_ids: str, grace: float | None = None) -> Sequence[steering.Stopped]:
        """End jobs with everything they started, and answer with proof."""
        return steering.stop(self.home, job_ids, by=self.agent or "", grace=grace)

    def pause(self, job_id: str) -> bool:
        """Stop the clock and every process of a job; False if it was paused."""
        return steering.tell(self.home, job_id, {"do": "pause"})

    def resume(self, job_id: str) -> bool:
        """Let a paused job go on; False if it was not paused."""
        return steering.tell(self.home, job_id, {"do": "resume"})

    def send(self, job_id: str, text: str, *, close: bool = False) -> bool:
        """Type into a job; False if it takes no input."""
        done = steering.type_in(self.home, job_id, text)
        return steering.tell(self.home, job_id, {"do": "close_input"}) and done if close else done

    def ask(self, request: Mapping[str, object]) -> int:
        """Have a keeper made for a request; the descriptor its answer will come from."""
        return self._forker.ask(request)

    def to_background(self, job_id: str) -> bool:
        """Say that nobody watches a job in the foreground any more: its end will be told by a notice.

        Raises:
            BackgroundDisabled: nothing may run in the background here.
        """
        check_background()
        return steering.tell(self.home, job_id, {"do": "background"})

    def close(self) -> None:
        """Let go of the server; the jobs go on."""
        self._forker.close()

    def _depth(self, parent: str | None) -> int:
        """How deep a job inside `parent` would be.

        Raises:
            TooDeep: deeper than the settings allow.
        """
        if parent is None:
            return 0
        try:
            depth = self.get(parent).depth + 1
        except JobNotFound:
            depth = 1
        if depth >= self._settings.job_depth:
            raise TooDeep(parent, self._settings.job_depth)
        return depth

    def request(self, spec: Spec, *, backgrounded: bool = True, after: Sequence[str] = ()) -> dict[str, object]:
        """What a keeper is asked for."""
        if backgrounded:
            check_background()
        make_private_folder(self.home)
        job_id = new_id(spec.letter)
        folder = JobFolder(self.home, job_id)
        parent = os.environ.get("TASKYARD_JOB")
        parent = parent if is_job_id(parent) else None
        depth = self._depth(parent)
        on_exit, starter = lifeline(self.home, self.agent, wish=spec.on_parent_exit, parent=parent, alone=self._alone)
        env = dict(os.environ if spec.env is None else spec.env)
        env.update(TASKYARD_JOB=job_id, TASKYARD_INSTANCE=job_id, TASKYARD_HOME=self.home)
        return {
            "id": job_id,
            "home": self.home,
            "plan": {"argv": spec.argv, "cwd": os.path.abspath(spec.cwd or os.getcwd()), "env": env, "umask": _umask()},
            "record": {
                **self._record(spec, folder, backgrounded),
                "parent": parent,
                "depth": depth,
                "onParentExit": on_exit,
            },
            "timeout": spec.timeout,
            "output_cap": spec.output_cap or self._settings.job_output_cap,
            "stall_after": self._settings.stall_after,
            "slots": {"jobs": self._settings.job_limit, spec.type: self._settings.shell_limit},
            "starts_per_minute": self._settings.job_starts_per_minute,
            "after": list(after),
            "grace": spec.grace,
            "stdin": spec.stdin,
            "pty": spec.pty,
            "leave_children": spec.leave_children,
            "retries": spec.retries,
            "retry_delay": spec.retry_delay,
            "on_parent_exit": on_exit,
            "starter": starter,
            "parent": parent,
        }

    def _record(self, spec: Spec, folder: JobFolder, backgrounded: bool) -> dict[str, object]:
        """What the job's record says from the start."""
        return {
            "id": folder.id,
            "type": spec.type,
            "description": spec.description,
            "command": spec.text,
            "startTime": now_ms(),
            "outputFile": folder.output,
            "isBackgrounded": backgrounded,
            "watcher": None if backgrounded else [os.getpid(), process_start()],
            "toolUseId": spec.tool_use_id,
            "agentId": self.agent,
            "instance": self._instance,
            "recipient": folder_name("an agent", self.agent or "me"),
            "takesInput": spec.stdin or spec.pty,
            "grace": float(spec.grace),
            "retries": spec.retries,
            "host": this_host(),
        }


def check_background() -> None:
    """Let nothing go to the background where that is switched off.

    Raises:
        BackgroundDisabled: it is.
    """
    for setting in _DISABLED:
        if os.environ.get(setting, "").strip().lower() in ("1", "true", "yes", "on"):
            raise BackgroundDisabled(setting)


def _umask() -> int:
    """The umask of this process, as the kernel tells it: setting it to see it would be seen by other threads."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("Umask:"):
                    return int(line.split()[1], 8)
    except OSError:
        pass
    return 0o077 if sys.platform == "linux" else 0o022
