"""Hooks: user commands that may refuse a task change or are notified of events; format of Claude Code.

`load_hooks` reads the hooks in force from settings files, cached until a file changes (`HookCache` uses
inotify):

    user      $CLAUDE_CONFIG_DIR/settings.json       $XDG_CONFIG_HOME/taskyard/hooks.json
    project   <root>/.claude/settings.json           <root>/.taskyard/hooks.json
              <root>/.claude/settings.local.json

User hooks run before project hooks, and the same command is kept once. A problem in a file is reported with its
position and leaves the rest of the file in force: a typo in one hook must neither disable the others silently
nor stop the work.

`run_event` runs the hooks of one event in sequence. Exit code 0 agrees, exit code 2 refuses with stderr as the
reason, `{"decision": "block", "reason": …}` on stdout refuses too. Everything else (another code, a signal, a
timeout, an unreadable reply) is a failed hook: it is reported to the user and the work continues. Every started
hook is reported as ended exactly once. Settings, input and exit codes are Claude Code's, so one hook serves
both programs.

`run_hooks` runs the JobEnded hooks of a job; they are notified and decide nothing.
"""

from __future__ import annotations

import os
import time

from taskyard import config
from taskyard.config import claude_folder, config_folder
from taskyard.core.files import open_plain, read_open, storage_error
from taskyard.core.values import NamedTuple, cast, check_text, nearest
from taskyard.errors import (
    BadText,
    Cancelled,
    Damaged,
    HookRefused,
    StorageError,
    TaskyardError,
    quote_value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping

    from taskyard.core.subprocesses import CommandResult
    from taskyard.jobs.model import Job
    from taskyard.storage.inotify import Subscription, Watcher


if TYPE_CHECKING:
    Report = Callable[["HookRun"], None]

#: Events a hook can refuse. The others report what already happened.
REFUSABLE = ("TaskCreated", "TaskCompleted", "SubagentStop", "TeammateIdle")

_FACTS = {"task_id": "TASK_ID", "teammate_name": "TEAMMATE", "team_name": "TEAM", "agent_id": "AGENT_ID"}

#: Seconds to keep the spilled output of a hook that printed too much.
_SPILL_TTL = 7 * 86_400

#: Sets of untrusted project hooks already reported by this process.
_reported_untrusted: set[tuple[str, ...]] = set()


class HookRun(NamedTuple):
    """One hook at one event: reported at its start and, with the same first fields, at its exit."""

    event: str
    command: str
    source: str  #: the settings file that defines it
    outcome: str = "started"  #: then "ok", "blocked", "failed", "timeout" or "cancelled"; alone: "untrusted"
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""
    note: str = ""  #: what went wrong, in words

    @property
    def text(self) -> str:
        """The message for the user; empty if all went well."""
        if self.outcome in ("started", "ok"):
            return ""
        said = f"\n{self.stderr.strip()}" if self.stderr.strip() else ""
        return f"{self.event} hook [{self.command}] {self.note}{said}"


class HookResult(NamedTuple):
    """The result of running the hooks of an event."""

    runs: tuple[HookRun, ...] = ()
    untrusted: tuple[str, ...] = ()  #: skipped commands of the project

    @property
    def output(self) -> str:
        """The output of the hooks that agreed: at SubagentStart it goes to the sub-agent."""
        return "\n".join(run.stdout.strip() for run in self.runs if run.outcome == "ok" and run.stdout.strip())


def run_event(
    event: str,
    payload: Mapping[str, object],
    *,
    book: HookSet,
    cwd: str,
    timeout: float,
    report: Report,
    matcher: str | None = None,
    cancel: threading.Event | None = None,
    facts: Mapping[str, str] | None = None,
) -> HookResult:
    """Run the hooks of `event`, each for at most its own time limit or `timeout` seconds.

    `payload` goes to their stdin, `facts` to their environment. `matcher` is the value their matchers are
    applied to, such as the agent's type; without it every hook runs. A project's hooks run at the top of its
    checkout around `cwd`, so that a relative command is the project's and not that of a subfolder.

    Raises:
        HookRefused: a hook refused; those after it were not run.
        Cancelled: `cancel` was set; nothing may be concluded from the hooks.
    """
    hooks, untrusted = _select_hooks(event, book, matcher, report)
    if not hooks:
        return HookResult((), untrusted)
    runs: list[HookRun] = []
    line = _input(event, payload, cwd, book.env)
    env = _environment(event, payload, cwd, book) | dict(facts or {})
    top = _checkout(book, cwd)
    for hook in hooks:
        where = top if hook.of_project else cwd
        ended = _run_one(hook, line, env, cwd=where, timeout=timeout, report=report, cancel=cancel)
        if ended.outcome == "cancelled":
            raise Cancelled(f"The {event} hook [{hook.command}]")
        if ended.outcome == "blocked":
            raise HookRefused(event, hook.command, ended.exit_code, ended.stderr)
        runs.append(ended)
    return HookResult(tuple(runs), untrusted)


def _checkout(book: HookSet, cwd: str) -> str:
    """Return the top of the checkout around `cwd`, or the root of `book`'s project if it belongs to another."""
    project = config.project(cwd)
    return project.checkout if book.root is None or project.root == book.root else book.root


def _select_hooks(
    event: str, book: HookSet, matcher: str | None, report: Report
) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the hooks to run, and the commands skipped as untrusted."""
    hooks = book.hooks_for(event)
    strange = tuple(hook for hook in hooks if hook.of_project)
    untrusted: tuple[str, ...] = ()
    if strange and (why := _why_untrusted(book)):
        # Filtered before any part of them is used: even a regular expression can be written to hang the
        # process.
        hooks = tuple(hook for hook in hooks if not hook.of_project)
        untrusted = tuple(dict.fromkeys(hook.command for hook in strange))
        told = (book.root or "", event, *untrusted)
        if told not in _reported_untrusted:
            _reported_untrusted.add(told)
            report(HookRun(event, "; ".join(untrusted), strange[0].source, "untrusted", note=why))
    matched = {hook.command: hook for hook in reversed(hooks) if _matches(hook, matcher)}
    return tuple(hook for hook in hooks if matched.get(hook.command) is hook), untrusted


def _why_untrusted(book: HookSet) -> str:
    from taskyard.storage.trust import is_project_trusted

    how = "was skipped: it came with the project. Read it, then run `taskyard trust`."
    try:
        return "" if book.root and is_project_trusted(book.root, book.project_commands, env=book.env) else how
    except TaskyardError as error:
        return f"was skipped: {error}"


def _matches(hook: Hook, value: str | None) -> bool:
    if not hook.matcher or value is None:
        return True
    import re

    return re.fullmatch(hook.matcher, value) is not None


def _input(event: str, payload: Mapping[str, object], cwd: str, env: Mapping[str, str]) -> bytes:
    """Return one JSON line with its keys in Claude Code's order."""
    import json

    record: dict[str, object] = {
        "session_id": env.get("TASKYARD_SESSION") or env.get("CLAUDE_CODE_SESSION_ID") or "",
        "transcript_path": "",
        "cwd": cwd,
        "hook_event_name": event,
    }
    record.update((name, value) for name, value in payload.items() if value is not None)
    record["hook_event_name"] = event  # overrides the payload
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace") + b"\n"


def _environment(event: str, payload: Mapping[str, object], cwd: str, book: HookSet) -> dict[str, str]:
    """Return the caller's environment plus the facts a script can read without parsing JSON."""
    folder = book.root or cwd
    env = {**book.env, "TASKYARD_HOOK_EVENT": event, "TASKYARD_PROJECT_DIR": folder, "CLAUDE_PROJECT_DIR": folder}
    for field, name in _FACTS.items():
        value = payload.get(field)
        env.pop(f"TASKYARD_HOOK_{name}", None)  # set by an outer hook
        if isinstance(value, str) and value.isprintable() and len(value) <= 1000:
            env[f"TASKYARD_HOOK_{name}"] = value
    return env


def _run_one(
    hook: Hook,
    line: bytes,
    env: Mapping[str, str],
    *,
    cwd: str,
    timeout: float,
    report: Report,
    cancel: threading.Event | None,
) -> HookRun:
    """Start one hook, wait for its exit, and report both in every case."""
    from taskyard import config
    from taskyard.core.subprocesses import run_command
    from taskyard.storage.spill import Spill

    limit = timeout if hook.timeout is None else hook.timeout
    started = HookRun(hook.event, hook.command, hook.source)
    report(started)
    ended = started._replace(outcome="cancelled", note="was ended because the caller was interrupted.")
    try:
        with Spill(_spill_path(), cap=config.load_settings().job_output_cap) as spill:
            end = run_command(hook.command, cwd=cwd, env=env, stdin=line, timeout=limit, cancel=cancel, spill=spill)
        ended = _classify_end(started, end, limit)
    finally:
        report(ended)
    return ended


def _spill_path() -> str:
    """Return a file name for output that exceeds memory; delete such files older than a week."""
    import os
    import time

    folder = os.path.join(config.home(), "hook-output")
    try:
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if time.time() - os.lstat(path).st_mtime > _SPILL_TTL:
                os.unlink(path)
    except OSError:
        pass  # no folder yet, or another process does the same
    return os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}")


def _classify_end(started: HookRun, end: CommandResult, limit: float) -> HookRun:
    """Classify the exit of a hook."""
    from taskyard.core.subprocesses import KEPT_BYTES

    stderr = _with_notice(end, end.stderr[-KEPT_BYTES:])
    outcome, note = _outcome(started.event, end, limit)
    if end.cause == "exited" and end.exit_code == 0:
        reply = read_reply(end.stdout[:KEPT_BYTES], end.stdout_size)
        if reply.problem:
            outcome, note = "failed", reply.problem
        elif reply.blocks:
            outcome, note = _refusal(started.event)
            stderr = reply.reason
    return started._replace(
        outcome=outcome,
        exit_code=end.exit_code,
        signal=end.signal,
        seconds=end.seconds,
        stdout=_with_notice(end, end.stdout),
        stderr=stderr,
        note=note,
    )


def _with_notice(end: CommandResult, said: bytes) -> str:
    """Return a hook's output; if it was too long, the last lines below a line that states so."""
    from taskyard.core.subprocesses import decode_plain

    text = decode_plain(said)
    return f"{end.notice}\n{text}" if end.notice and text else text


def _outcome(event: str, end: CommandResult, limit: float) -> tuple[str, str]:
    if end.cause == "exited":
        if end.exit_code == 0:
            return "ok", ""
        if end.exit_code == 2:
            return _refusal(event)
        return "failed", f"ended with exit code {end.exit_code}. Only exit code 2 refuses; the work went on."
    if end.cause == "signal":
        return "failed", f"was killed by signal {end.signal}; the work went on."
    if end.cause == "timeout":
        return "timeout", f"was still running after {limit:g} s and was ended; the work went on."
    if end.cause == "cancelled":
        return "cancelled", "was ended because the caller gave up."
    how = "could not be started" if end.cause == "not_started" else "ended in an unknown way"
    return "failed", f"{how}: {end.why}; the work went on."


def _refusal(event: str) -> tuple[str, str]:
    if event in REFUSABLE:
        return "blocked", "refused."
    return "failed", f"refused, but {event} cannot be refused; the work went on."


class Reply(NamedTuple):
    """The reply of a hook that exited with code 0."""

    blocks: bool = False
    reason: str = ""
    problem: str = ""  #: it looks like a reply but is invalid: report it, do not obey


def read_reply(stdout: bytes, size: int) -> Reply:
    """Parse the reply in `stdout`, which had `size` bytes in total. Text that is not a JSON object is no reply."""
    if not stdout.lstrip().startswith(b"{"):
        return Reply()
    if size > len(stdout):
        return _ignored_reply(f"it is {size:,} bytes long")
    import json

    try:
        fields = cast("dict[str, object]", json.loads(stdout))
    except (ValueError, RecursionError) as error:
        return _ignored_reply(f"it is not JSON ({error})")
    decision, reason = fields.get("decision"), fields.get("reason")
    if decision is None or decision == "approve":
        return Reply()
    if decision != "block":
        return _ignored_reply(f"its decision is {quote_value(decision)}; only 'block' is one")
    if reason is not None and not isinstance(reason, str):
        return _ignored_reply("its reason is not text")
    from taskyard.core.subprocesses import decode_plain

    return Reply(blocks=True, reason=decode_plain((reason or "").encode("utf-8", "replace")))


def _ignored_reply(why: str) -> Reply:
    return Reply(problem=f"gave an invalid reply: {why}. It was ignored and the work went on.")


#: Events with hooks here. Claude Code's settings contain others, which only it runs.
EVENTS = ("TaskCreated", "TaskCompleted", "SubagentStart", "SubagentStop", "TeammateIdle", "JobEnded")

#: Events with a value to match: the type of the agent or of the job. At other events hooks always run.
MATCHED = ("SubagentStart", "SubagentStop", "JobEnded")

#: Longest time limit of a hook, in seconds: an hour is a test suite, more than a day is a typo.
MAX_TIMEOUT = 86_400.0


class Hook(NamedTuple):
    """One command to run at one event."""

    event: str
    command: str
    source: str  #: the file that defines it
    of_project: bool  #: defined by the project, so it needs trust
    matcher: str = ""  #: a regular expression; empty: always
    timeout: float | None = None  #: seconds; None: the default


class HookProblem(NamedTuple):
    """Something in a settings file that is not a valid hook."""

    file: str
    where: str  #: "line 3, column 7" or "hooks.TaskCreated[0].matcher"; empty: the file as a whole
    why: str

    @property
    def text(self) -> str:
        """The problem as one sentence."""
        return f"{self.file}{', ' + self.where if self.where else ''}: {self.why}."


def parse_settings(
    file: str, settings: object, *, of_project: bool, is_ours: bool
) -> tuple[tuple[Hook, ...], tuple[HookProblem, ...]]:
    """Return the hooks in `settings`, and its problems."""
    check = _SettingsParser(file, of_project)
    try:
        table = _table("", settings).get("hooks", {})
        groups = _table("hooks", table)
    except _InvalidSetting as wrong:
        return (), (HookProblem(file, wrong.where, wrong.why),)
    for event, entries in groups.items():
        if event in EVENTS:
            check.event(event, entries)
        elif is_ours:
            hint = f"; nearest: {', '.join(near)}" if (near := nearest(event, EVENTS)) else ""
            check.problem(f"hooks.{_event_name(event)}", f"there is no such event{hint}")
    return tuple(check.hooks), tuple(check.problems)


class _InvalidSetting(Exception):
    def __init__(self, where: str, why: str) -> None:
        super().__init__(where, why)
        self.where = where
        self.why = why


class _SettingsParser:
    """Collects the hooks and the problems of one file."""

    def __init__(self, file: str, of_project: bool) -> None:
        self.hooks: list[Hook] = []
        self.problems: list[HookProblem] = []
        self._file = file
        self._of_project = of_project

    def problem(self, where: str, why: str) -> None:
        self.problems.append(HookProblem(self._file, where, why))

    def event(self, event: str, entries: object) -> None:
        for where, entry in self._each(f"hooks.{event}", entries):
            try:
                group, matcher = _table(where, entry), ""
                if event in MATCHED:
                    matcher = _matcher(f"{where}.matcher", group.get("matcher"))
            except _InvalidSetting as wrong:
                self.problem(wrong.where, wrong.why)
                continue
            for place, hook in self._each(f"{where}.hooks", group.get("hooks")):
                self._hook(event, matcher, place, hook)

    def _each(self, where: str, entries: object) -> Iterator[tuple[str, object]]:
        if not isinstance(entries, list):
            self.problem(where, f"must be a list, not {_type_name(entries)}")
            return
        for index, entry in enumerate(cast("list[object]", entries)):
            yield f"{where}[{index}]", entry

    def _hook(self, event: str, matcher: str, where: str, entry: object) -> None:
        try:
            fields = _table(where, entry)
            if fields.get("type", "command") != "command":
                raise _InvalidSetting(
                    f"{where}.type", f"only hooks of type 'command' run here, not {quote_value(fields['type'])}"
                )
            command = _command(f"{where}.command", fields.get("command"))
        except _InvalidSetting as wrong:
            self.problem(wrong.where, wrong.why)
            return
        try:
            timeout = _timeout(f"{where}.timeout", fields.get("timeout"))
        except _InvalidSetting as wrong:
            self.problem(wrong.where, wrong.why)
            timeout = None  # the default limit; the hook itself is in force
        self.hooks.append(Hook(event, command, self._file, self._of_project, matcher, timeout))


def _table(where: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _InvalidSetting(where, f"must be an object, not {_type_name(value)}")
    return cast("dict[str, object]", value)


def _command(where: str, value: object) -> str:
    try:
        return check_text("command", value, allow_empty=False)
    except BadText as error:
        raise _InvalidSetting(where, error.why) from error


def _matcher(where: str, value: object) -> str:
    """Return a regular expression for the whole value; `""` for always."""
    if value is None or value in ("", "*"):
        return ""
    if not isinstance(value, str):
        raise _InvalidSetting(where, f"must be text, not {_type_name(value)}")
    import re

    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise _InvalidSetting(where, f"{quote_value(value)} is not a regular expression ({error})") from error
    return value


def _timeout(where: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MAX_TIMEOUT:
        raise _InvalidSetting(where, f"must be seconds from 0 to {MAX_TIMEOUT:,.0f}; the default limit is used")
    return float(value)


def _event_name(event: str) -> str:
    return event if event.isidentifier() and len(event) <= 60 else quote_value(event)


def _type_name(value: object) -> str:
    kinds: dict[type[object], str] = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return kinds.get(type(value), "a number")


#: Maximum bytes of a settings file; real ones have a few kilobytes.
MAX_SETTINGS = 1024 * 1024

#: Nanoseconds: a file modified this recently may change again with the same mtime, so it is not cached.
YOUNG_NS = 20_000_000


class HookSet:
    """The hooks of one user and project, as of the time they were loaded."""

    __slots__ = ("_by_event", "env", "problems", "root")

    def __init__(
        self, root: str | None, env: Mapping[str, str], hooks: tuple[Hook, ...], problems: tuple[HookProblem, ...]
    ) -> None:
        self.root = root
        self.env = env
        self.problems = problems
        self._by_event: dict[str, tuple[Hook, ...]] = {}
        for hook in hooks:
            self._by_event[hook.event] = (*self._by_event.get(hook.event, ()), hook)

    def any_for(self, event: str) -> bool:
        """Return whether `event` has a hook; without any, this check is the whole cost."""
        return event in self._by_event

    def hooks_for(self, event: str) -> tuple[Hook, ...]:
        """Return the hooks of `event`, in the order they run."""
        return self._by_event.get(event, ())

    @property
    def project_commands(self) -> tuple[str, ...]:
        """The commands defined by the project: what `taskyard trust` shows and allows."""
        hooks = (hook for found in self._by_event.values() for hook in found if hook.of_project)
        return tuple(sorted({hook.command for hook in hooks}))


class _Source(NamedTuple):
    path: str
    of_project: bool
    is_ours: bool  #: only Taskyard reads it: an unknown event is a typo there


class _FileHooks(NamedTuple):
    """The hooks in one version of a file."""

    version: tuple[int, ...]
    hooks: tuple[Hook, ...] = ()
    problems: tuple[HookProblem, ...] = ()


#: Cached projects per process; beyond this, paths are joined again.
MAX_PROJECTS = 64

_source_cache: dict[tuple[str | None, ...], list[_Source]] = {}
_file_cache: dict[_Source, _FileHooks] = {}
_reported: dict[_Source, tuple[HookProblem, ...]] = {}


def load_hooks(
    project_root: str | None,
    env: Mapping[str, str] | None = None,
    *,
    report: Callable[[HookProblem], None] | None = None,
) -> HookSet:
    """Return the hooks in force for the project at `project_root`.

    Unchanged files are not read again. `report` gets the problems of a file once, and again when they change;
    `HookSet.problems` always has them.
    """
    env = os.environ if env is None else env
    hooks: list[Hook] = []
    problems: list[HookProblem] = []
    seen: set[tuple[int, ...]] = set()
    for source in _sources(project_root, env):
        found = _load_source(source)
        if found is None or found.version in seen:
            continue  # the home folder as project: its settings are the user's own
        seen.add(found.version)
        hooks += found.hooks
        problems += found.problems
        if report is not None and _reported.get(source, ()) != found.problems:
            _reported[source] = found.problems
            for problem in found.problems:
                report(problem)
    # Resolved only if there are hooks: it costs as much as all the rest.
    root = os.path.realpath(project_root) if project_root is not None and hooks else project_root
    return HookSet(root, env, _deduplicate(hooks), tuple(problems))


def settings_paths(root: str | None, env: Mapping[str, str] | None = None) -> list[str]:
    """Return the files that may define hooks."""
    return [source.path for source in _sources(root, os.environ if env is None else env)]


def _sources(root: str | None, env: Mapping[str, str]) -> list[_Source]:
    """Return the files to read; cached, as every change of a task needs them."""
    key = (root, env.get("CLAUDE_CONFIG_DIR"), env.get("XDG_CONFIG_HOME"), env.get("HOME"))
    if (known := _source_cache.get(key)) is not None:
        return known
    sources = [
        _Source(os.path.join(claude_folder(env), "settings.json"), of_project=False, is_ours=False),
        _Source(os.path.join(config_folder(env), "hooks.json"), of_project=False, is_ours=True),
    ]
    if root is not None:
        sources += [
            _Source(os.path.join(root, ".claude", "settings.json"), of_project=True, is_ours=False),
            _Source(os.path.join(root, ".claude", "settings.local.json"), of_project=True, is_ours=False),
            _Source(os.path.join(root, ".taskyard", "hooks.json"), of_project=True, is_ours=True),
        ]
    if len(_source_cache) >= MAX_PROJECTS:
        _source_cache.clear()
    _source_cache[key] = sources
    return sources


def _deduplicate(hooks: list[Hook]) -> tuple[Hook, ...]:
    """Remove duplicates and keep the first: a command of both the user and the project counts as the user's."""
    kept: dict[tuple[str, str, str], Hook] = {}
    for hook in hooks:
        kept.setdefault((hook.event, hook.matcher, hook.command), hook)
    return tuple(kept.values())


def _load_source(source: _Source) -> _FileHooks | None:
    """Return the current hooks of `source`; None if there is no such file."""
    try:
        version = _version(os.stat(source.path))
        known = _file_cache.get(source)
        if known is not None and known.version == version:
            return known
        found = _read_source(source)
    except (FileNotFoundError, NotADirectoryError):
        _file_cache.pop(source, None)
        return None
    except OSError as error:
        return _FileHooks(
            (hash(source),), problems=(HookProblem(source.path, "", storage_error(source.path, error).why),)
        )
    except (Damaged, StorageError) as error:
        return _FileHooks((hash(source),), problems=(HookProblem(source.path, "", error.why),))
    if time.time_ns() - max(found.version[:2]) > YOUNG_NS:
        _file_cache[source] = found
    return found


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _read_source(source: _Source) -> _FileHooks:
    """Read one file. Symbolic links are followed: many users keep settings in a dotfiles repository."""
    fd = open_plain(source.path, follow=True)
    try:
        version = _version(os.fstat(fd))
        data = read_open(fd, source.path, most=MAX_SETTINGS)
    finally:
        os.close(fd)
    hooks, problems = _parse_source(source, data)
    return _FileHooks(version, hooks, problems)


def _parse_source(source: _Source, data: bytes) -> tuple[tuple[Hook, ...], tuple[HookProblem, ...]]:
    import json

    try:
        settings = cast("object", json.loads(data))
    except json.JSONDecodeError as error:
        return (), (HookProblem(source.path, f"line {error.lineno}, column {error.colno}", error.msg),)
    except UnicodeDecodeError as error:
        return (), (HookProblem(source.path, f"byte {error.start}", f"it is not {error.encoding.upper()}"),)
    except (ValueError, RecursionError) as error:
        return (), (HookProblem(source.path, "", str(error)),)
    return parse_settings(source.path, settings, of_project=source.of_project, is_ours=source.is_ours)


#: Hook caches of this process, by the files that may define hooks.
_hook_caches: dict[tuple[str, ...], HookCache] = {}

#: Cached projects per process; beyond this, files are checked again.
_MAX_CACHES = 16


def hook_cache(project: str | None) -> HookCache:
    """Return the hook cache of a project, shared within this process."""
    key = tuple(settings_paths(project))
    found = _hook_caches.get(key)
    if found is None:
        while len(_hook_caches) >= _MAX_CACHES:
            _hook_caches.pop(next(iter(_hook_caches))).close()
        found = _hook_caches[key] = HookCache(project)
    return found


class HookCache:
    """The hooks of one project.

    With none configured, the common case, one inotify read shows whether anything changed in the folders where
    settings would appear. Existing settings files are checked each time: they may be links whose targets change
    elsewhere.
    """

    def __init__(self, project: str | None) -> None:
        self._project = project
        self._book: HookSet | None = None
        self._feeds: list[Subscription] = []
        self._watcher: Watcher | None = None
        self._pid = os.getpid()

    def book(self, report: Callable[[HookProblem], None]) -> HookSet:
        """Return the current hooks; `report` gets the problems of their files, once."""
        if self._feeds and self._book is not None and self._watcher is not None and self._pid == os.getpid():
            self._watcher.drain()
            for feed in self._feeds:
                if feed.has_news:
                    break
            else:
                return self._book
        elif self._book is not None:
            self._follow()  # a process that asks twice will ask often
        for feed in self._feeds:
            feed.changed()
        self._book = load_hooks(self._project, report=report)
        if any(os.path.lexists(path) for path in settings_paths(self._project)):
            self._let_go()
        return self._book

    def _follow(self) -> None:
        from taskyard.storage.inotify import watcher

        self._let_go()
        self._pid, self._watcher = os.getpid(), watcher()
        folders = {os.path.dirname(path) for path in settings_paths(self._project)}
        feeds = [self._watcher.follow(folder) for folder in sorted(folders)]
        if all(feed.at is not None for feed in feeds):
            self._feeds = feeds

    def close(self) -> None:
        """Stop watching."""
        self._let_go()

    def _let_go(self) -> None:
        if self._pid == os.getpid():
            for feed in self._feeds:
                feed.close()
        self._feeds = []


EVENT = "JobEnded"


def run_hooks(home: str, job_id: str, *, timeout: float) -> tuple[HookRun, ...]:
    """Run the JobEnded hooks of a job in its folder; problems are logged in `<home>/hooks.log`.

    Raises:
        JobNotFound: there is no such job.
    """
    from taskyard.jobs.exit_record import read_json
    from taskyard.jobs.helper_process import HOOKS_LOG, append_log
    from taskyard.jobs.job_dir import JobPaths
    from taskyard.jobs.query import read_job

    job = read_job(home, job_id)
    folder = str((read_json(JobPaths(home, job_id).record) or {}).get("cwd") or "")
    cwd = folder if os.path.isdir(folder) else config.user_home()  # it may have been removed meanwhile

    def tell(text: str) -> None:
        if text:
            append_log(home, HOOKS_LOG, f"{job_id}: {text}")

    book = load_hooks(config.project(cwd).root, report=lambda problem: tell(problem.text))
    return run_event(
        EVENT,
        payload(job),
        book=book,
        cwd=cwd,
        timeout=timeout,
        matcher=job.type,
        report=lambda ended: tell(ended.text),
    ).runs


def payload(job: Job) -> dict[str, object]:
    """Return what a hook gets of a job, as JSON on its stdin."""
    facts: dict[str, object] = {
        "job_id": job.id,
        "job_type": job.type,
        "status": job.status.value,
        "description": job.description,
        "command": job.command or None,
        "output_file": job.output_file,
        "agent_name": job.agent_id,
        "parent_job_id": job.parent,
        "tool_use_id": job.tool_use_id,
    }
    if job.end is not None:
        facts |= {
            "cause": job.end.cause,
            "exit_code": job.end.exit_code,
            "signal": job.end.signal,
            "error": job.end.error or None,
            "duration_ms": job.end.duration_ms,
        }
    return facts
