"""Start team members, confirm that each joined its team, and stop them.

A member runs in one of three places:

    process   a job with a supervisor of its own
    tmux      a window that runs `taskyard __member`, which starts such a job and prints its output
    inside    a job that runs `taskyard __members`, which hosts all members in one process

Hosting members in one process costs little more than their work; if that process hangs, its supervisor
terminates it like any other. Each start is confirmed: the member joins its team within a bounded time, or it
is reported as failed and everything it started is removed.

A program that hosts members reads its request from a private file and writes its response to another file
beside it. A command line is not suitable: every user of the machine can read it, and tmux interprets some
words.

tmux is run by direct exec: no keys are typed and no shell is involved. Text that tmux would interpret
(formats in names and folders, a `;` at the end of a word) never comes from outside: names are reduced to
plain characters, and everything else a member needs is in the private file.

Processes are terminated by PID and start time through a pidfd, so no other process is ever signalled.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from taskyard.core import files
from taskyard.core.system import process_alive, process_start, stat_fields
from taskyard.core.values import NamedTuple, as_list, as_number, as_object, as_text, check_name, folder_name
from taskyard.errors import (
    BadName,
    Damaged,
    JobNotFound,
    MemberNotStarted,
    NotFound,
    StorageError,
    TaskyardError,
    UsageError,
)
from taskyard.jobs.agent_reports import format_entry
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus
from taskyard.jobs.output import Output, follow_output
from taskyard.jobs.wait import supervisor_pidfd
from taskyard.storage import process_registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from taskyard.agents.teammate.kind import Teammate
    from taskyard.agents.teams import Team
    from taskyard.jobs.kind import LaunchSpec
    from taskyard.jobs.model import Job
    from taskyard.yard import Yard
    from taskyard.yard.async_yard import AsyncYard


def run_member(yard: Yard, spec: Teammate, *, started: Callable[[str], None], show: Callable[[str], None]) -> Job:
    """Run one member in the foreground until it is done; on return or error nothing of it is left.

    The member is a regular job, so other processes can inspect, answer and stop it. It is killed if this
    process exits.

    Args:
        yard: Starts the job.
        spec: The member.
        started: Called with the job id.
        show: Called with the member's output, one or more lines at a time.
    """
    job = yard.jobs.start(spec._replace(on_parent_exit="kill"), backgrounded=False)
    try:
        started(job.id)
        rest = ""
        for part in follow_output(Output(JobPaths(yard.home, job.id))):
            *lines, rest = (rest + part.text.decode("utf-8", "replace")).split("\n")
            for line in lines:
                if said := format_line(line):
                    show(said)
        return yard.jobs.wait(job.id, timeout=_EXIT_TIMEOUT)
    finally:
        yard.jobs.stop(job.id)
        clean_up_member(yard, spec.team, spec.name)


def clean_up_member(yard: Yard, team: str, name: str) -> None:
    """Release the tasks and the team membership of a member whose job has ended.

    If a member of that name is alive, it is a different one (two started at once and one was refused) and
    stays.
    """
    yard.tasks.list(internal=True)  # listing also completes the trackers of dead jobs
    try:
        if all(seen.liveness not in _LIVE_STATES for seen in yard.teams.members(team) if seen.member.name == name):
            yard.teams.leave(team, name)
    except (NotFound, Damaged):
        pass  # it left by itself, or the record cannot be read


_LIVE_STATES = ("alive", "idle", "stalled")


#: Seconds between the last output line of a member and the end of its job.
_EXIT_TIMEOUT = 10.0


def format_line(line: str) -> str:
    """Return a transcript line formatted for people; empty if there is nothing to show."""
    try:
        entry = as_object(json.loads(line)) if line.strip() else None
    except (ValueError, RecursionError):
        return ""
    return "" if entry is None else format_entry(entry)


async def host_members(
    yard: AsyncYard, wish: MemberSpec, names: Sequence[str], *, started: Callable[[dict[str, str]], None]
) -> int:
    """Run members in this process until all have ended; return how many failed.

    `started` is called with the ids of their jobs.
    """
    jobs = {name: (await yard.jobs.start(wish.spec(name, is_inside=True))).id for name in names}
    started(jobs)
    ended = await yard.jobs.wait_all(list(jobs.values()))
    return sum(job.status.value != "completed" for job in ended)


#: Default member names: short and easy to distinguish.
DEFAULT_NAMES = (
    "ada",
    "ben",
    "cleo",
    "dan",
    "eva",
    "finn",
    "gus",
    "hana",
    "ivo",
    "june",
    "kai",
    "lena",
    "max",
    "nora",
    "otto",
)

#: Where members run.
PLACES = ("process", "tmux", "inside")


class MemberSpec(NamedTuple):
    """Options shared by all members of a team."""

    team: str
    prompt: str = ""  #: prompt given to each member before its tasks
    engine: str = ""
    command: tuple[str, ...] = ()
    model: str | None = None
    plan_first: bool = False
    until: str = "done"
    can: tuple[str, ...] = ()  #: capabilities, for tasks that require some
    on_rate_limit: str | None = None  #: "wait" or "stop"; None: the setting of that name
    on_parent_exit: str | None = None  #: what happens to members whose lead is killed: "kill" or "keep"

    def spec(self, name: str, *, is_inside: bool = False) -> Teammate:
        """Return the job spec of the member `name`."""
        from taskyard.agents.teammate.kind import Teammate

        return Teammate(
            name,
            self.team,
            prompt=self.prompt,
            engine=self.engine,
            command=self.command,
            model=self.model,
            plan_first=self.plan_first,
            is_inside=is_inside,
            until=self.until,
            capabilities=self.can,
            on_rate_limit=self.on_rate_limit,
            on_parent_exit=self.on_parent_exit,
        )

    @classmethod
    def from_json(cls, record: Mapping[str, object]) -> Self:
        """Restore a spec from its `_asdict` form."""
        known: dict[str, object] = {name: record[name] for name in cls._fields if name in record}
        for name in ("command", "can"):
            known[name] = tuple(str(word) for word in as_list(known.get(name)) or ())
        return cls(**known)  # type: ignore[arg-type]  # written by us


def free_names(home: str, team: str, taken: Iterable[str], *, wanted: Iterable[str] = ()) -> Iterator[str]:
    """Yield names not in use by a live agent nor in `taken`.

    First those in `wanted`, then the defaults, then the defaults with numbers.
    """
    used = {folder_name("an agent", name) for name in taken}
    used |= {folder_name("an agent", record.name) for record in process_registry.live_instances(home)}
    for name in _candidates(team, wanted):
        if folder_name("an agent", name) not in used:
            used.add(folder_name("an agent", name))
            yield name


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return valid, distinct member names.

    Raises:
        BadName: one is not a valid name, or occurs twice.
    """
    found = tuple(check_name("an agent", name) for name in names)
    folders = [folder_name("an agent", name) for name in found]
    for name, folder in zip(found, folders, strict=True):
        if folders.count(folder) > 1:
            raise BadName("a member", name, "another member has it")
    return found


def _candidates(team: str, wanted: Iterable[str]) -> Iterator[str]:
    yield from wanted
    yield from DEFAULT_NAMES
    number = 1
    while True:
        number += 1
        yield from (f"{name}-{number}" for name in DEFAULT_NAMES)


#: Taken from the member's own terminal, not from the process that started it.
_TERMINAL_VARIABLES = ("TERM", "TMUX", "TMUX_PANE", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")

#: Taskyard identity of a process; a member in its own window must not inherit it.
_IDENTITY_VARIABLES = ("TASKYARD_JOB", "TASKYARD_INSTANCE", "TASKYARD_AGENT")

#: Seconds after which an unread request file is stale and removed.
_STALE_AFTER = 3600.0


class MembersRequest(NamedTuple):
    """A request read by a program that hosts members."""

    wish: MemberSpec
    names: tuple[str, ...]
    said: str  #: path of the response file


def write_request(home: str, wish: MemberSpec, names: Sequence[str], *, place: Mapping[str, str]) -> str:
    """Write a request with our environment and the lists' `place` to a private file.

    `take_request` removes it.
    """
    folder = f"{home}/starting"
    files.make_private_folder(home)
    files.make_private_folder(folder)
    _remove_stale(folder)
    path = f"{folder}/{os.urandom(8).hex()}.json"
    env = {key: value for key, value in os.environ.items() if key not in (*_TERMINAL_VARIABLES, *_IDENTITY_VARIABLES)}
    env |= {"TASKYARD_HOME": home, **place}
    request = {"wish": wish._asdict(), "names": list(names), "env": env, "cwd": os.getcwd()}
    files.create(path, json.dumps(request).encode("ascii"))
    return path


def take_request(path: str, *, surroundings: bool) -> MembersRequest:
    """Read and remove a request; with `surroundings`, adopt its working directory and environment.

    Raises:
        Damaged, StorageError: the file is not a valid request.
    """
    found = read_json(path) or {}
    wish, env, cwd = as_object(found.get("wish")), as_object(found.get("env")), as_text(found.get("cwd"))
    names = tuple(as_text(name) for name in as_list(found.get("names")) or ())
    if wish is None or env is None or not cwd or not names:
        raise Damaged(path, "it is not a request for members")
    os.unlink(path)
    if surroundings:
        kept = {key: os.environ[key] for key in _TERMINAL_VARIABLES if key in os.environ}
        os.environ.clear()
        os.environ.update({key: as_text(value) for key, value in env.items()} | kept)
        os.chdir(cwd)
    return MembersRequest(MemberSpec.from_json(wish), names, f"{path}.said")


def write_response(said: str, **word: object) -> None:
    """Write the response to a request; only the first response counts."""
    try:
        files.create(said, json.dumps(word).encode("ascii"))
    except (TaskyardError, FileExistsError):
        pass  # already answered, or no process waits for it


def read_response(path: str) -> Mapping[str, object] | None:
    """Return the response to the request `path`, if there is one."""
    return read_json(f"{path}.said")


def remove_request(path: str) -> None:
    """Remove a request and its response: no process waits for it any more."""
    for file in (path, f"{path}.said"):
        try:
            os.unlink(file)
        except FileNotFoundError:
            pass


def _remove_stale(folder: str) -> None:
    """Remove request files left by killed processes: they may contain secrets."""
    with os.scandir(folder) as entries:
        old = [
            entry.path for entry in entries if time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE_AFTER
        ]
    for path in old:
        try:
            os.unlink(path)
        except OSError:
            pass  # another process removed it


#: Timeout of a tmux command in seconds; tmux normally answers within milliseconds.
_TMUX_TIMEOUT = 10.0

#: Maximum characters of a window name: more do not fit into a status line.
_LONGEST_TITLE = 40

#: Output format for new windows; contains no outside text.
_WINDOW_FORMAT = "#{pane_id} #{pane_pid} #{session_name}"


class Window(NamedTuple):
    """A tmux window and the process in it."""

    pane: str  #: the tmux pane id, such as "%5"
    pid: int
    start: int  #: start time of `pid`; 0 if it exited at once
    session: str


def tmux_path() -> str:
    """Return the path of tmux.

    Raises:
        UsageError: tmux is not installed.
    """
    import shutil

    found = shutil.which("tmux")
    if found is None:
        raise UsageError("There is no tmux on PATH. Install it, or have members as plain processes: `--in process`.")
    return os.path.abspath(found)


def open_window(team: str, title: str, argv: Sequence[str]) -> Window:
    """Open a window that runs `argv`, in the current tmux session, else in one created for the team.

    Raises:
        UsageError: there is no tmux, or it refused; nothing was started.
    """
    tmux = tmux_path()
    name = folder_name("an agent", title)[:_LONGEST_TITLE]
    for word in argv:
        if word.endswith(";"):
            raise UsageError(f"tmux cannot be given the word {word!r}: it ends with a semicolon.")
    if os.environ.get("TMUX"):
        around = _tmux_output(tmux, "display-message", "-p", *_current_pane(), "#{session_id}")
        return _create_window(tmux, "new-window", "-d", "-t", f"{around}:", "-n", name, argv=argv)
    session = f"taskyard-{folder_name('a team', team)}"
    if _tmux_succeeds(tmux, "has-session", "-t", f"={session}"):
        return _create_window(tmux, "new-window", "-d", "-t", f"={session}:", "-n", name, argv=argv)
    return _create_window(tmux, "new-session", "-d", "-s", session, "-n", name, argv=argv)


def _current_pane() -> tuple[str, ...]:
    pane = os.environ.get("TMUX_PANE", "")
    return ("-t", pane) if pane.startswith("%") and pane[1:].isdigit() else ()


def _create_window(tmux: str, *words: str, argv: Sequence[str]) -> Window:
    pane, pid, session = _tmux_output(tmux, *words, "-P", "-F", _WINDOW_FORMAT, *argv).split(" ", 2)
    _tmux_succeeds(tmux, "set-option", "-p", "-t", pane, "remain-on-exit", "off")  # closes with its program
    return Window(pane, int(pid), process_start(int(pid)), session)


def _tmux_output(tmux: str, *words: str) -> str:
    code, said, error = _run_tmux(tmux, *words)
    if code:
        raise UsageError(f"tmux refused ({words[0]}): {error.strip() or f'exit code {code}'}")
    return said.strip()


def _tmux_succeeds(tmux: str, *words: str) -> bool:
    return _run_tmux(tmux, *words)[0] == 0


def _run_tmux(tmux: str, *words: str) -> tuple[int, str, str]:
    import subprocess

    around = os.environ.get("TMUX", "").split(",")[0]
    socket = ("-S", around) if around else ()
    # A tmux server started by the first window outlives this process: it must not inherit our job's
    # variables.
    env = {name: value for name, value in os.environ.items() if not name.startswith("TASKYARD_")}
    try:
        ran = subprocess.run(
            [tmux, *socket, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TMUX_TIMEOUT,
            env=env,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"tmux did not answer within {_TMUX_TIMEOUT:.0f} s.") from None
    except OSError as error:
        raise StorageError(tmux, error.strerror or str(error)) from error
    return ran.returncode, ran.stdout, ran.stderr


#: Seconds a process may take to disappear after SIGKILL; only the kernel is involved.
_KILL_TIMEOUT = 5.0


def end_process(pid: int, start: int, *, patience: float = 0.0, grace: float = 3.0) -> bool:
    """Terminate the process with this PID and start time; return True if it is gone.

    Sends SIGCONT (in case it is stopped) and waits `patience` seconds for a voluntary exit, then sends
    SIGTERM and waits `grace` seconds, then sends SIGKILL.

    This process and its ancestors are never signalled.
    """
    if not pid or not start or pid in _ancestors():
        return False
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        if not process_alive(pid, start):
            return True  # the PID is free or was reused by another process
        for number, seconds in ((signal.SIGCONT, patience), (signal.SIGTERM, grace), (signal.SIGKILL, _KILL_TIMEOUT)):
            signal.pidfd_send_signal(fd, number)
            if select.select([fd], [], [], seconds)[0]:
                return True
        return False
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        os.close(fd)


def continue_job(folder: JobPaths) -> None:
    """Send SIGCONT to a job's supervisor and command, so that both can shut down cleanly if they were stopped."""
    if (fd := supervisor_pidfd(folder)) is not None:
        _continue(fd)
    pid, start = _command(folder)
    if pid and process_alive(pid, start):
        try:
            _continue(os.pidfd_open(pid))
        except OSError:
            pass  # it exited meanwhile


def _continue(fd: int) -> None:
    try:
        signal.pidfd_send_signal(fd, signal.SIGCONT)
    except OSError:
        pass  # it exited meanwhile
    finally:
        os.close(fd)


def end_command(folder: JobPaths, *, grace: float = 3.0) -> bool:
    """Terminate the command of a job, identified by the job record; return True if it is gone.

    A supervisor never signals a program that hosts jobs: it asks the program to stop and waits for those
    jobs. A hung program would therefore stay.
    """
    pid, start = _command(folder)
    return not pid or end_process(pid, start, grace=grace)


def _command(folder: JobPaths) -> tuple[int, int]:
    record = read_json(folder.record) or {}
    return as_number(record.get("pid")), as_number(record.get("pidStart"))


def _ancestors() -> set[int]:
    """Return our PID and those of all ancestors."""
    found = {os.getpid()}
    pid = os.getppid()
    while pid > 1 and pid not in found:
        found.add(pid)
        fields = stat_fields(str(pid))
        pid = int(fields[1]) if fields is not None else 0
    return found


#: Timeout in seconds from starting a member to its joining: an interpreter, a few modules, a few files.
JOIN_TIMEOUT = 30.0

#: Seconds between checks whether a member has joined.
_POLL_INTERVAL = 0.05

#: Subcommand of the program that hosts members.
HOST_COMMAND = "__members"


class MemberHandle(NamedTuple):
    """A member that was started."""

    name: str
    job_id: str
    pane: Window | None = None
    host: str = ""  #: id of the job that hosts it


def start(yard: Yard, wish: MemberSpec, names: Sequence[str], *, place: str) -> Iterator[MemberHandle]:
    """Start members one after the other; call `confirm` for each to check that it joined.

    Raises:
        UsageError: an option is invalid.
        MemberNotStarted: the host program started but the member did not; nothing of either is left.
    """
    if place == "inside":
        yield from _start_inside(yard, wish, names)
        return
    for name in names:
        if place == "tmux":
            yield _start_in_window(yard, wish, name)
        else:
            yield MemberHandle(name, yard.jobs.start(wish.spec(name)).id)


def confirm(yard: Yard, team: str, hand: MemberHandle, *, patience: float = JOIN_TIMEOUT) -> None:
    """Return when the member has joined its team, or is done already.

    Raises:
        MemberNotStarted: it did not join in time, or ended before; nothing of it is left.
    """
    began = time.monotonic()
    while not has_joined(yard, team, hand, yard.jobs.get(hand.job_id), began=began, patience=patience):
        time.sleep(_POLL_INTERVAL)


def has_joined(
    yard: Yard, team: str, hand: MemberHandle, job: Job, *, began: float, patience: float = JOIN_TIMEOUT
) -> bool:
    """Return whether a member started at `began` (monotonic) has joined its team, or is done already.

    The job's own facts decide: a team member of the same name may be a different process.

    Raises:
        MemberNotStarted: it did not join in time, or ended before; nothing of it is left.
    """
    if instance := as_text(job.facts.get("instance")):
        if hand.pane is not None:
            _note_window(yard, team, instance)
        return True
    if job.is_final:
        if job.status is JobStatus.COMPLETED:
            return True
        why = (job.end.error if job.end is not None else "") or "it ended before it had joined"
    elif time.monotonic() - began > patience:
        waits = f"; it waits for {job.waits_for}" if job.waits_for else ""
        why = f"it did not join within {patience:.0f} s{waits}"
    else:
        return False
    stop_member(yard, hand)
    raise MemberNotStarted(hand.name, team, why)


def stop_member(yard: Yard, hand: MemberHandle, *, grace: float | None = None) -> bool:
    """Stop a member and everything it started; return True if nothing of it still runs."""
    is_gone = _stop_job(yard, hand.job_id, grace)
    if not is_gone and hand.host:
        is_gone = stop_host(yard, hand.host)
    if hand.pane is not None:
        is_gone = _close_window(hand.pane) and is_gone
    return is_gone


def stop_host(yard: Yard, job_id: str) -> bool:
    """Stop the process that hosts members; return True if it is gone."""
    return _stop_job(yard, job_id, None) or end_command(JobPaths(yard.home, job_id))


def _stop_job(yard: Yard, job_id: str, grace: float | None) -> bool:
    try:
        return yard.jobs.stop(job_id, grace=grace)[0].is_done
    except JobNotFound:
        return True


# -- in a window -------------------------------------------------------------------------------


def _start_in_window(yard: Yard, wish: MemberSpec, name: str) -> MemberHandle:
    request = write_request(yard.home, wish, [name], place=yard.lists.environ())
    try:
        window = open_window(wish.team, name, _argv("__member", request))
        try:
            lives: Callable[[], bool] = lambda: process_alive(window.pid, window.start)  # noqa: E731
            return MemberHandle(name, _wait_for_jobs(request, lives, wish.team, name)[name], window)
        except BaseException:
            _close_window(window)
            raise
    finally:
        remove_request(request)


def _close_window(window: Window) -> bool:
    """Give the program in a window 2 seconds to exit after its job, then terminate it."""
    return end_process(window.pid, window.start, patience=2.0, grace=2.0)


def _note_window(yard: Yard, team: str, instance: str) -> None:
    """Record in the team that a member runs in a tmux window."""

    def noted(was: Team | None) -> Team | None:
        if was is None:
            return None
        members = (m._replace(kind="tmux") if m.instance == instance else m for m in was.members)
        return was._replace(members=tuple(members))

    yard.teams.change(team, noted)


# -- inside one process ------------------------------------------------------------------------


class _Host(NamedTuple):
    """The process that hosts members; like theirs, its end sends no notice."""

    argv: Sequence[str]
    name: str

    @property
    def type(self) -> str:
        return "local_bash"

    @property
    def letter(self) -> str:
        return "b"

    def wanted(self) -> LaunchSpec:
        return Shell(self.argv, name=self.name, cwd=os.getcwd()).wanted()._replace(is_silent=True)


def _start_inside(yard: Yard, wish: MemberSpec, names: Sequence[str]) -> Iterator[MemberHandle]:
    request = write_request(yard.home, wish, names, place=yard.lists.environ())
    try:
        host = yard.jobs.start(_Host(_argv(HOST_COMMAND, request), f"members of team {wish.team}"))
        try:
            lives: Callable[[], bool] = lambda: not yard.jobs.get(host.id).is_final  # noqa: E731
            jobs = _wait_for_jobs(request, lives, wish.team, names[0])
        except BaseException:
            yard.jobs.stop(host.id)
            raise
    finally:
        remove_request(request)
    for name in names:
        yield MemberHandle(name, jobs[name], host=host.id)


def _argv(command: str, request: str) -> list[str]:
    return [sys.executable, "-P", "-m", "taskyard", command, request]


def _wait_for_jobs(request: str, lives: Callable[[], bool], team: str, name: str) -> Mapping[str, str]:
    """Return the job ids reported by the program that took a request, by member name."""
    deadline = time.monotonic() + JOIN_TIMEOUT
    while True:
        is_over = not lives()
        answer = read_response(request)
        if answer is not None:
            if jobs := as_object(answer.get("jobs")):
                return {member: as_text(job) for member, job in jobs.items()}
            raise MemberNotStarted(name, team, as_text(answer.get("error")) or "it gave no reason")
        if is_over:
            raise MemberNotStarted(name, team, "its host process exited at once")
        if time.monotonic() > deadline:
            raise MemberNotStarted(name, team, f"its host process did not respond for {JOIN_TIMEOUT:.0f} s")
        time.sleep(_POLL_INTERVAL)
