"""
Ask the hooks of one event, one after the other.

Exit 0 agrees, exit 2 refuses with stderr as the reason, `{"decision": "block", "reason": …}` on stdout
refuses too. Everything else (another code, a signal, a time-out, a reply nobody can read) is a hook that
failed: a person is told, the work goes on. Every hook that was started is reported as ended, exactly once.
"""

from __future__ import annotations

from taskyard import paths
from taskyard.errors import Cancelled, HookRefused, TaskyardError
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from taskyard.commands import CommandEnd
    from taskyard.hooks.book import HookBook
    from taskyard.hooks.check import Hook

    Report = Callable[["HookRun"], None]

#: Events a hook can say no to. The others tell what is already so.
REFUSABLE = ("TaskCreated", "TaskCompleted", "SubagentStop", "TeammateIdle")

_FACTS = {"task_id": "TASK_ID", "teammate_name": "TEAMMATE", "team_name": "TEAM", "agent_id": "AGENT_ID"}

#: Seconds for which the whole output of a hook that printed too much is kept.
_KEPT_FOR = 7 * 86_400

#: Sets of untrusted project hooks a person was told about by this process.
_told: set[tuple[str, ...]] = set()


class HookRun(NamedTuple):
    """One hook at one event: reported when it starts and, with the same first fields, when it ended."""

    event: str
    command: str
    source: str  #: the settings file it stands in
    outcome: str = "started"  #: then "ok", "blocked", "failed", "timeout" or "cancelled"; alone: "untrusted"
    exit_code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""
    note: str = ""  #: what was out of order, in words

    @property
    def text(self) -> str:
        """What a person should know of it; empty if all went well."""
        if self.outcome in ("started", "ok"):
            return ""
        said = f"\n{self.stderr.strip()}" if self.stderr.strip() else ""
        return f"{self.event} hook [{self.command}] {self.note}{said}"


class HookResult(NamedTuple):
    """What came of asking the hooks of an event."""

    runs: tuple[HookRun, ...] = ()
    untrusted: tuple[str, ...] = ()  #: commands of the project that were skipped

    @property
    def output(self) -> str:
        """What the hooks that agreed printed: at SubagentStart this goes to the sub-agent."""
        return "\n".join(run.stdout.strip() for run in self.runs if run.outcome == "ok" and run.stdout.strip())


def run(
    event: str,
    payload: Mapping[str, object],
    *,
    book: HookBook,
    cwd: str,
    timeout: float,
    report: Report,
    matcher: str | None = None,
    cancel: threading.Event | None = None,
    facts: Mapping[str, str] | None = None,
) -> HookResult:
    """Run the hooks of `event`, each for at most its own limit or `timeout` seconds.

    `payload` goes to their stdin, `facts` to their environment. `matcher` is what their matchers
    look at, such as the agent's type; without it every hook runs. A project's hooks run in its checkout around
    `cwd`, at the top, so that a relative command is the project's and not that of a folder inside it.

    Raises:
        HookRefused: a hook said no; those after it were not asked.
        Cancelled: `cancel` was set; nothing may be concluded from the hooks.
    """
    hooks, untrusted = _chosen(event, book, matcher, report)
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


def _checkout(book: HookBook, cwd: str) -> str:
    """The top of the checkout around `cwd` if it is one of the book's project; else the project's root."""
    project = paths.project(cwd)
    return project.checkout if book.root is None or project.root == book.root else book.root


def _chosen(
    event: str, book: HookBook, matcher: str | None, report: Report
) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """The hooks to run, and the commands left out because nobody allowed them."""
    hooks = book.hooks_for(event)
    strange = tuple(hook for hook in hooks if hook.of_project)
    untrusted: tuple[str, ...] = ()
    if strange and (why := _why_untrusted(book)):
        # Before anything of them is used: even a regular expression can be written to hang its reader.
        hooks = tuple(hook for hook in hooks if not hook.of_project)
        untrusted = tuple(dict.fromkeys(hook.command for hook in strange))
        told = (book.root or "", event, *untrusted)
        if told not in _told:
            _told.add(told)
            report(HookRun(event, "; ".join(untrusted), strange[0].source, "untrusted", note=why))
    matched = {hook.command: hook for hook in reversed(hooks) if _matches(hook, matcher)}
    return tuple(hook for hook in hooks if matched.get(hook.command) is hook), untrusted


def _why_untrusted(book: HookBook) -> str:
    from taskyard.trust import trusted_project

    how = "was skipped: it came with the project. Read it, then run `taskyard trust`."
    try:
        return "" if book.root and trusted_project(book.root, book.project_commands, env=book.env) else how
    except TaskyardError as error:
        return f"was skipped: {error}"


def _matches(hook: Hook, value: str | None) -> bool:
    if not hook.matcher or value is None:
        return True
    import re

    return re.fullmatch(hook.matcher, value) is not None


def _input(event: str, payload: Mapping[str, object], cwd: str, env: Mapping[str, str]) -> bytes:
    """One JSON line, its keys in Claude Code's order."""
    import json

    record: dict[str, object] = {
        "session_id": env.get("TASKYARD_SESSION") or env.get("CLAUDE_CODE_SESSION_ID") or "",
        "transcript_path": "",
        "cwd": cwd,
        "hook_event_name": event,
    }
    record.update((name, value) for name, value in payload.items() if value is not None)
    record["hook_event_name"] = event  # whatever the payload says
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace") + b"\n"


def _environment(event: str, payload: Mapping[str, object], cwd: str, book: HookBook) -> dict[str, str]:
    """The caller's environment, and what a script wants to know without parsing JSON."""
    folder = book.root or cwd
    env = {**book.env, "TASKYARD_HOOK_EVENT": event, "TASKYARD_PROJECT_DIR": folder, "CLAUDE_PROJECT_DIR": folder}
    for field, name in _FACTS.items():
        value = payload.get(field)
        env.pop(f"TASKYARD_HOOK_{name}", None)  # an outer hook's
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
    """Start one hook, wait for its end, and report both, whatever happens in between."""
    from taskyard import config
    from taskyard.commands import run_command
    from taskyard.disk.spill import Spill

    limit = timeout if hook.timeout is None else hook.timeout
    started = HookRun(hook.event, hook.command, hook.source)
    report(started)
    ended = started._replace(outcome="cancelled", note="was ended because the caller was interrupted.")
    try:
        with Spill(_spill_path(), cap=config.load().job_output_cap) as spill:
            end = run_command(hook.command, cwd=cwd, env=env, stdin=line, timeout=limit, cancel=cancel, spill=spill)
        ended = _judged(started, end, limit)
    finally:
        report(ended)
    return ended


def _spill_path() -> str:
    """A name for what one hook prints beyond what fits into memory; files of the week before go."""
    import os
    import time

    folder = os.path.join(paths.home(), "hook-output")
    try:
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if time.time() - os.lstat(path).st_mtime > _KEPT_FOR:
                os.unlink(path)
    except OSError:
        pass  # there is none yet, or another process does the same
    return os.path.join(folder, f"{os.getpid()}-{os.urandom(4).hex()}")


def _judged(started: HookRun, end: CommandEnd, limit: float) -> HookRun:
    """What the end of a hook means."""
    from taskyard.commands import KEPT_BYTES

    stderr = _with_notice(end, end.stderr[-KEPT_BYTES:])
    outcome, note = _outcome(started.event, end, limit)
    if end.cause == "exited" and end.exit_code == 0:
        from taskyard.hooks.reply import read_reply

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


def _with_notice(end: CommandEnd, said: bytes) -> str:
    """What a hook said on a stream; of one that said too much, the last lines below a line that says so."""
    from taskyard.commands import plain_text

    text = plain_text(said)
    return f"{end.notice}\n{text}" if end.notice and text else text


def _outcome(event: str, end: CommandEnd, limit: float) -> tuple[str, str]:
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
    how = "could not be started" if end.cause == "not_started" else "ended, nobody knows how"
    return "failed", f"{how}: {end.why}; the work went on."


def _refusal(event: str) -> tuple[str, str]:
    if event in REFUSABLE:
        return "blocked", "refused."
    return "failed", f"refused, but {event} cannot be refused; the work went on."
