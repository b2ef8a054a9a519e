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
from taskyard.errors import BackgroundDisabled, BadValue, JobNotFound, TooDeep, UsageError
from taskyard.names import folder_name
from taskyard.runtime import looking, steering, waiting
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.gc import maybe_collect
from taskyard.runtime.ids import is_job_id, new_id
from taskyard.runtime.registry import Registry
from taskyard.runtime.starting import Forker, start_alone
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from taskyard.runtime.kind import Spec, Wanted
    from taskyard.runtime.model import Job
    from taskyard.runtime.task_output import TaskOutput


#: Settings that say that nothing may run in the background.
_DISABLED = ("TASKYARD_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")


#: So many jobs in mind are no burden; with more it is time to see which of them ended.
_MANY = 64

#: The process in which a handler works; `-P`: what lies in the job's folder is not ours to import.
_HOST = [sys.executable, "-P", "-m", "taskyard.kinds.host"]


class Jobs:
    """Background jobs, for programs that wait in line; `AsyncJobs` is the same for those that do not."""

    def __init__(
        self,
        home: str,
        *,
        agent: str | None = None,
        instance: str = "",
        settings: Settings | None = None,
        hook_files: Callable[[str], Sequence[str]] | None = None,
        alone: bool = False,
    ) -> None:
        """Nothing is made or read yet.

        Args:
            home: `$TASKYARD_HOME`.
            agent: In whose name jobs are started; it hears of their ends.
            instance: The living instance of that name: once it is dead and nobody has its name, the person hears.
            settings: Limits and caps.
            hook_files: The files that may name JobEnded hooks, for a job in a folder.
            alone: Each job gets a keeper started for it, as for a command that ends right away.
        """
        self.home = home
        self.agent = agent
        self._instance = instance
        self._settings = settings if settings is not None else Settings()
        self._alone = alone
        self._hook_files = hook_files
        self._forker = Forker()
        self._sweep_at = _MANY
        self.known = Registry()  #: what this program started or looks at, for views to hang on

    def start(self, spec: Spec, *, backgrounded: bool = True, after: Sequence[str] = ()) -> Job:
        """Start a job; when this returns it is there for everybody.

        Raises:
            UsageError: something in it cannot be.
            BackgroundDisabled: nothing may run in the background here.
        """
        request = self.request(spec, backgrounded=backgrounded, after=[self.get(other).id for other in after])
        if is_inside(request):
            raise UsageError(f"A {spec.type} lives inside a program with an event loop: use `taskyard.open_async`.")
        if self._alone:
            start_alone(request)
        else:
            self._forker.start(request)
        maybe_collect(self.home, self._settings)
        return self.keep_in_mind(looking.look(self.home, str(request["id"])))

    def keep_in_mind(self, job: Job) -> Job:
        """Have a job in `known`; of those there that nobody asked about again, what has ended is let go."""
        self.known.register(job)
        if len(self.known) >= self._sweep_at:
            for known in self.known:
                self.known.see(looking.look(self.home, known.job.id))
            self._sweep_at = max(_MANY, 2 * len(self.known))
        return job

    def _seen(self, job: Job) -> Job:
        self.known.see(job)
        return job

    def run(self, spec: Spec, *, timeout: float | None = None) -> Job:
        """Start a job and wait for its end."""
        return self.wait(self.start(spec, backgrounded=False).id, timeout=timeout)

    def get(self, job_id: str) -> Job:
        """One job as it is now.

        Raises:
            JobNotFound: there never was one of this id.
        """
        return self._seen(looking.look(self.home, job_id))

    def list(self, *, ended: bool = False) -> list[Job]:
        """Every job that lives, oldest first; with `ended` also those that are over."""
        return [self._seen(job) for job in looking.everything(self.home, ended=ended)]

    def wait(self, job_id: str, *, timeout: float | None = None) -> Job:
        """The job at its end, or as it is after `timeout` seconds."""
        return self._seen(waiting.wait(self.home, job_id, timeout))

    def wait_all(self, job_ids: Sequence[str], *, timeout: float | None = None) -> Sequence[Job]:
        """All jobs at their ends, or as they are after `timeout` seconds."""
        return [self._seen(job) for job in waiting.wait_all(self.home, job_ids, timeout)]

    def output(
        self, job_id: str, *, timeout: float = 0.0, limit: int | None = None, transcript: bool = False
    ) -> TaskOutput:
        """A job with what it printed, at its end or after `timeout` seconds. An end that is seen so needs no notice."""
        from taskyard.runtime.task_output import task_output

        job = self.wait(job_id, timeout=timeout)
        return task_output(self.home, job, reader=self.agent, limit=limit, transcript=transcript)

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
        steering.check_text(text)
        done = steering.tell(self.home, job_id, {"do": "answer", "text": text}) if text else True
        return steering.tell(self.home, job_id, {"do": "close_input"}) and done if close else done

    def ask(self, request: Mapping[str, object]) -> int:
        """Have a keeper made for a request; the descriptor its answer will come from."""
        return self._forker.ask(request)

    def to_background(self, job_id: str) -> bool:
        """Say that nobody watches a job in the foreground any more: its end will be told by a notice."""
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
        for setting in _DISABLED:
            if backgrounded and os.environ.get(setting, "").lower() in ("1", "true", "yes"):
                raise BackgroundDisabled(setting)
        wanted = spec.wanted()
        make_private_folder(self.home)
        job_id = new_id(spec.letter)
        parent = os.environ.get("TASKYARD_JOB")
        parent = parent if is_job_id(parent) else None
        depth = self._depth(parent)
        on_exit = wanted.on_parent_exit or ("kill" if self.agent or parent else "keep")
        inside = {"parent": parent, "depth": depth, "onParentExit": on_exit}
        return {
            "id": job_id,
            "home": self.home,
            "plan": self._plan(wanted, job_id),
            "record": {**self._record(spec, wanted, JobFolder(self.home, job_id), backgrounded), **inside},
            "timeout": wanted.timeout,
            "output_cap": wanted.output_cap or self._settings.job_output_cap,
            "stall_after": self._settings.stall_after if wanted.argv else 0,  # a handler asks in its own words
            "slots": self._slots(spec),
            "after": list(after),
            "grace": wanted.grace,
            "stdin": wanted.stdin,
            "pty": wanted.pty,
            "leave_children": wanted.leave_children,
            "retries": wanted.retries,
            "on_parent_exit": on_exit,
            "starter": [os.getpid(), process_start()] if on_exit == "kill" and parent is None else None,
            "parent": parent,
            "arguments": None if wanted.argv else dict(wanted.arguments or {}),
        }

    def _slots(self, spec: Spec) -> dict[str, int]:
        """How many may run at once: in all, and of its kind."""
        slots = {"jobs": self._settings.job_limit}
        if spec.type == "local_bash":
            slots[spec.type] = self._settings.shell_limit
        return slots

    def _plan(self, wanted: Wanted, job_id: str) -> dict[str, object]:
        """What is run, and where."""
        env = dict(os.environ if wanted.env is None else wanted.env)
        env.update(TASKYARD_JOB=job_id, TASKYARD_INSTANCE=job_id, TASKYARD_HOME=self.home)
        argv = list(wanted.argv) or _HOST
        return {"argv": argv, "cwd": _cwd(wanted), "env": env, "umask": _umask()}

    def _record(self, spec: Spec, wanted: Wanted, folder: JobFolder, backgrounded: bool) -> dict[str, object]:
        """What the job's record says from the start."""
        record: dict[str, object] = {
            "id": folder.id,
            "type": spec.type,
            "description": wanted.description,
            "command": wanted.text,
            "startTime": now_ms(),
            "outputFile": folder.output,
            "isBackgrounded": backgrounded,
            "toolUseId": wanted.tool_use_id,
            "agentId": self.agent,
            "recipient": folder_name("an agent", self.agent or "me"),
            "takesInput": wanted.stdin or wanted.pty,
            "host": this_host(),
            "cwd": (cwd := _cwd(wanted)),
        }
        if not wanted.argv:
            record["hasFacts"] = True
        if wanted.is_inside:
            record["isInside"] = True
        if self._instance:
            record["instance"] = self._instance
        if self._hook_files is not None:
            record["hooks"] = list(self._hook_files(cwd))
        if wanted.priority != "later":
            record["priority"] = wanted.priority
        if wanted.is_silent:
            record["silent"] = True
        return record


def _cwd(wanted: Wanted) -> str:
    try:
        return os.path.abspath(wanted.cwd or os.getcwd())
    except FileNotFoundError:
        raise BadValue("cwd", ".", "a folder that exists: the current one was removed") from None


def is_inside(request: Mapping[str, object]) -> bool:
    """Whether a job is to live inside the program that starts it."""
    record = as_object(request.get("record"))
    return record is not None and record.get("isInside") is True


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
