"""Build job requests and start supervisors for them; the job exists when the call returns.

A command line starts one supervisor and exits. A long-lived program uses a server that forks supervisors, a
millisecond each; the jobs outlive the server and the program.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from _thread import allocate_lock

from taskyard import config
from taskyard.config import Settings, list_name
from taskyard.core.files import make_private_folder
from taskyard.core.system import now_ms, process_start, this_host
from taskyard.core.values import NamedTuple, as_object
from taskyard.errors import JobNotFound, StorageError, TooDeep
from taskyard.jobs import environment, query
from taskyard.jobs.environment import check_background, check_machine, parent_exit_policy
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.kind import letter_of
from taskyard.jobs.model import is_job_id, new_job_id
from taskyard.jobs.notice_payload import PEOPLE, box_name
from taskyard.jobs.query import with_resume_fields
from taskyard.jobs.supervisor.kernel import ALL_SIGNALS
from taskyard.jobs.supervisor.request import encode_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from taskyard.jobs.kind import LaunchSpec, Spec


_SUPERVISOR_MAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "supervisor", "__main__.py")

#: Seconds that a child with nothing left to do may take to exit.
_REAP_TIMEOUT = 2.0

#: Attempts to start a supervisor, if earlier ones were killed before they answered.
MAX_TRIES = 3

#: Variables that a supervisor must not inherit: they name the job in which it is started.
_DROPPED_VARS = ("TASKYARD_JOB", "TASKYARD_INSTANCE")


def request_file(request: Mapping[str, object]) -> int:
    """Return a memfd with the request, of any size; it has no path that another process could open."""
    fd = os.memfd_create("taskyard-request", os.MFD_CLOEXEC)
    data = encode_request(request)
    while data:
        data = data[os.write(fd, data) :]
    return fd


def start_supervisor(request: Mapping[str, object]) -> None:
    """Start a dedicated supervisor process for one job; the job exists when this returns.

    Raises:
        StorageError: it could not be created.
    """
    check_machine()
    for _ in range(MAX_TRIES):
        if is_created(request, _spawn_supervisor(request)):
            return
    check_reply(b"")


def _spawn_supervisor(request: Mapping[str, object]) -> bytes:
    wanted = request_file(request)
    answer, theirs = os.pipe2(os.O_CLOEXEC)
    try:
        child = _spawn("keep", wanted, stdout=theirs)
    finally:
        os.close(wanted)
        os.close(theirs)
    said = read_reply(answer)
    _reap(child)  # it has forked the detached supervisor and exited
    return said


class SupervisorServer:
    """A server that forks supervisors, for one process and its threads; started with the first job."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._owner = self._pid = 0
        self._mutex = allocate_lock()

    def start(self, request: Mapping[str, object]) -> None:
        """Fork a supervisor for one job; the job exists when this returns.

        Raises:
            StorageError: it could not be created.
        """
        check_machine()
        for _ in range(MAX_TRIES):
            if is_created(request, read_reply(self.ask(request))):
                return
        check_reply(b"")

    def ask(self, request: Mapping[str, object]) -> int:
        """Request a supervisor; return the descriptor from which to read its reply."""
        wanted = request_file(request)
        answer, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            with self._mutex:
                for first in (True, False):
                    try:
                        socket.send_fds(self._server(), [b"keep"], [wanted, theirs])
                        return answer
                    except OSError as error:
                        self._let_go()  # the server was killed: its supervisors still run, and a new server replaces it
                        if not first:
                            raise StorageError("the supervisor server", error.strerror or str(error)) from error
        finally:
            os.close(wanted)
            os.close(theirs)
        raise AssertionError  # the loop returns or raises

    def _server(self) -> socket.socket:
        if self._socket is None or self._owner != os.getpid():
            self._let_go()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._pid = _spawn("serve", theirs.fileno())
            self._socket, self._owner = ours, os.getpid()
        return self._socket

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()  # end-of-file makes the server exit
            self._socket = None
            if self._owner == os.getpid():
                _reap(self._pid)

    def close(self) -> None:
        """End the server; the supervisors it forked keep running."""
        with self._mutex:
            self._let_go()

    def __del__(self) -> None:
        """End the server also if `close` was not called."""
        if self._socket is not None:
            self._socket.close()


def _spawn(what: str, fd: int, stdout: int | None = None) -> int:
    """Start the supervisor program isolated: two descriptors, default signals, no variables that load code."""
    copy = os.dup(fd)  # inheritable for this one child, which closes every other descriptor
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    env = {name: value for name, value in os.environ.items() if name not in _DROPPED_VARS}
    if what == "serve":
        env["LD_BIND_NOW"] = "1"  # link libraries once here, not call by call in every supervisor
    try:
        # 0-2 are set; the copy has its own number, since a dup2 onto itself would stay close-on-exec.
        actions = [
            (os.POSIX_SPAWN_DUP2, null, 0),
            (os.POSIX_SPAWN_DUP2, null if stdout is None else stdout, 1),
            (os.POSIX_SPAWN_DUP2, null, 2),
        ]
        os.set_inheritable(copy, True)
        words = [sys.executable, "-I", "-S", _SUPERVISOR_MAIN, what, str(copy)]
        return os.posix_spawn(words[0], words, env, file_actions=actions, setsigmask=[], setsigdef=ALL_SIGNALS)
    finally:
        os.close(copy)
        os.close(null)


def _reap(pid: int) -> None:
    """Reap a child that is about to exit, so that it does not stay a zombie; give up after a timeout."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return  # another part of this program reaped it
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(_REAP_TIMEOUT * 1000)
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
    finally:
        os.close(fd)


def read_reply(answer: int) -> bytes:
    """Read a supervisor's reply and close the descriptor."""
    said = b""
    try:
        while data := os.read(answer, 65536):
            said += data
            if said.endswith(b"\n"):
                break
    finally:
        os.close(answer)
    return said


def is_created(request: Mapping[str, object], said: bytes) -> bool:
    """Return whether the job exists, by its supervisor's reply; False: killed on the way, retry.

    Raises:
        StorageError: the supervisor reports why it could not be created.
    """
    if said:
        check_reply(said)
        return True
    # The write end of the reply is closed everywhere: neither server nor supervisor is left to create it.
    folder = JobPaths(str(request["home"]), str(request["id"]))
    if os.path.lexists(folder.path):
        return True  # killed just after: the job exists, and is lost
    from taskyard.core import files
    from taskyard.jobs.gc import remove_folder

    remove_folder(folder.incomplete)
    files.remove(folder.living)
    return False


def check_reply(said: bytes) -> None:
    """Raise the error in a supervisor's reply, if there is one."""
    try:
        answer = json.loads(said)
    except ValueError:
        raise StorageError("the supervisor", "it exited before the job was created") from None
    if "error" in answer:
        raise StorageError(str(answer["path"]), str(answer["error"]), advice=str(answer["advice"]))


#: Command of a handler's process; `-P`: never import from the job's working folder.
_HANDLER_COMMAND = [sys.executable, "-P", "-m", "taskyard.yard.job_host"]


class RequestBuilder(NamedTuple):
    """Builder of job requests for one starter and its settings."""

    home: str
    agent: str | None
    instance: str
    settings: Settings
    hook_files: Callable[[str], Sequence[str]] | None
    alone: bool  #: a command line, which exits before its job

    def request(
        self,
        spec: Spec,
        *,
        backgrounded: bool,
        after: Sequence[str] = (),
        after_any: Sequence[str] = (),
        window: tuple[int, int] | None = None,
    ) -> dict[str, object]:
        """Return the request for a supervisor; the arguments are those of `Jobs.start`.

        Raises:
            UsageError: something in it is invalid.
            BackgroundDisabled: background jobs are disabled here.
            TooDeep: jobs may not be nested this deep.
        """
        if backgrounded:
            check_background()
        wanted = spec.wanted()
        make_private_folder(self.home)
        job_id = new_job_id(letter_of(spec))
        parent = named if is_job_id(named := os.environ.get("TASKYARD_JOB")) else None
        depth = _job_depth(self.home, parent, self.settings.job_depth)
        wish = wanted.on_parent_exit
        on_exit, starter = parent_exit_policy(self.home, self.agent, wish=wish, parent=parent, alone=self.alone)
        watcher = None if backgrounded else [os.getpid(), process_start()]
        around: dict[str, object] = {"watcher": watcher, "parent": parent, "depth": depth, "onParentExit": on_exit}
        around |= {"isBackgrounded": backgrounded, "terminal": _starter_terminal(self.home, parent)}
        task = _job_task(self.home, wanted, parent)
        around |= {"root": _root_job(self.home, parent), "task": task}
        if task is not None:
            query.record_task(self.home, task, job_id)
        request = {
            "id": job_id,
            "home": self.home,
            "plan": command_plan(
                self.home, wanted.env, job_id, argv=wanted.argv, cwd=wanted.cwd, task=task, **self._store()
            ),
            "record": {**self._record(spec, wanted, JobPaths(self.home, job_id)), **around},
            **self._limits(spec, wanted, depth),
            "after": list(after),
            "after_any": list(after_any),
            "window": window,
            "on_parent_exit": on_exit,
            "starter": starter if parent is not None else starter or watcher,
            "parent": parent,
            "arguments": None if wanted.argv else dict(wanted.arguments or {}),
        }
        return with_resume_fields(request, wanted.needs_env) if wanted.resumes else request

    def _store(self) -> dict[str, str]:
        """Return the database of the task lists, if processes of the job would not find it by themselves."""
        chosen = self.settings.store
        return {"store": chosen} if "://" in chosen and chosen != config.load_settings().store else {}

    def _limits(self, spec: Spec, wanted: LaunchSpec, depth: int) -> dict[str, object]:
        """Return how the job is run, and its limits."""
        slots = {} if wanted.needs_no_slot else {"jobs": self.settings.job_limit}
        if spec.type == "local_bash":
            slots[spec.type] = self.settings.shell_limit
        if wanted.provider:  # slots per depth: a job that waits for a child must not take its slot
            slots[f"{spec.type}.{depth}" if depth else spec.type] = self.settings.agent_limit
        return {
            "agents": self._agents(wanted) if wanted.provider else None,
            "grace": wanted.grace,
            "stdin": wanted.stdin,
            "pty": wanted.pty,
            "transcript": wanted.transcript,
            "leave_children": wanted.leave_children,
            "retries": wanted.retries,
            "retry_delay": wanted.retry_delay,
            "timeout": wanted.timeout,
            "output_cap": wanted.output_cap or self.settings.job_output_cap,
            "stall_after": self.settings.stall_after if wanted.argv else 0,  # a handler reports its questions itself
            "prompt_after": self.settings.prompt_after if wanted.argv else 0,
            "slots": slots,
            "starts_per_minute": self.settings.job_starts_per_minute,
            "event_segments": self.settings.event_segments,
        }

    def _agents(self, wanted: LaunchSpec) -> list[object]:
        """Return the limits of an agent's start (`supervisor.queue.AgentLimits`)."""
        settings = self.settings
        budget = [settings.agent_starts_per_minute, settings.agent_day_tokens, settings.agent_day_cost]
        on_limit = wanted.on_rate_limit or settings.on_rate_limit
        return [wanted.provider, *budget, on_limit, settings.rate_limit_wait]

    def _record(self, spec: Spec, wanted: LaunchSpec, folder: JobPaths) -> dict[str, object]:
        """Return the initial record of the job, without empty values."""
        cwd = environment.resolve_cwd(wanted.cwd)
        record: dict[str, object] = {
            "id": folder.id,
            "type": spec.type,
            "description": wanted.description,
            "command": wanted.text,
            "startTime": now_ms(),
            "outputFile": folder.output,
            "toolUseId": wanted.tool_use_id,
            "agentId": self.agent,
            "instance": self.instance or None,
            "recipient": PEOPLE if wanted.is_for_people else box_name(self.agent or "me"),
            "takesInput": wanted.stdin or wanted.pty,
            "grace": float(wanted.grace),
            "retries": wanted.retries,
            "host": this_host(),
            "cwd": cwd,
            "project": config.project_list(environment.resolve_cwd(None)),
            "hooks": None if self.hook_files is None else list(self.hook_files(cwd)),
            "hasFacts": not wanted.argv or None,
            "isInside": wanted.is_inside or None,
            "priority": wanted.priority if wanted.priority != "later" else None,
            "silent": wanted.is_silent or None,
            "asksElsewhere": wanted.asks_out_of_band or None,
            "facts": dict(wanted.facts) or None,
        }
        return {name: value for name, value in record.items() if value is not None}


def is_in_process(request: Mapping[str, object]) -> bool:
    """Return whether a job is to run inside the program that starts it."""
    record = as_object(request.get("record"))
    return record is not None and record.get("isInside") is True


def _job_depth(home: str, parent: str | None, most: int) -> int:
    """Return the nesting depth of a job inside `parent`.

    Raises:
        TooDeep: deeper than the settings allow.
    """
    if parent is None:
        return 0
    try:
        depth = query.read_job(home, parent).depth + 1
    except JobNotFound:
        depth = 1
    if depth >= most:
        raise TooDeep(parent, most)
    return depth


def _root_job(home: str, parent: str | None) -> str | None:
    """Return the outermost job around a job inside `parent`."""
    if parent is None:
        return None
    above = (read_json(JobPaths(home, parent).record) or {}).get("root")
    return above if is_job_id(above) else parent


def _starter_terminal(home: str, parent: str | None) -> object:
    """Return the starter's terminal; inside a job, the one that job was started from (its own has no user)."""
    return (
        environment.current_terminal()
        if parent is None
        else (read_json(JobPaths(home, parent).record) or {}).get("terminal")
    )


def _job_task(home: str, wanted: LaunchSpec, parent: str | None) -> str | None:
    """Return the task a job is for: from its spec, the starter's environment, or its parent job.

    Raises:
        BadValue: what is named is no task reference.
    """
    named = wanted.task or os.environ.get(query.TASK_VARIABLE)
    if named:
        return query.check_task(named if "/" in named else f"{list_name()}/{named}")
    above = (read_json(JobPaths(home, parent).record) or {}).get("task") if parent is not None else None
    return above if isinstance(above, str) else None


def command_plan(
    home: str,
    environ: Mapping[str, str] | None,
    job_id: str,
    *,
    argv: Sequence[str],
    cwd: str | None,
    task: str | None,
    store: str | None = None,
) -> dict[str, object]:
    """Return what to run and where; without `argv`, a handler's process. Never written to a file: it has secrets."""
    env = environment.current_env() if environ is None else dict(environ)
    env.update(TASKYARD_JOB=job_id, TASKYARD_INSTANCE=job_id, TASKYARD_HOME=home)
    if task is not None:
        env[query.TASK_VARIABLE] = task
    if store is not None:
        env["TASKYARD_STORE"] = store
    return {
        "argv": list(argv) or _HANDLER_COMMAND,
        "cwd": environment.resolve_cwd(cwd),
        "env": env,
        "umask": environment.read_umask(),
    }
