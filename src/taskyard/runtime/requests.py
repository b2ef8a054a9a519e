"""From a wish to a request: what a keeper is asked for, checked, with everything it must know of its starter."""

from __future__ import annotations

import os
import sys

from taskyard import config, paths
from taskyard.clock import now_ms
from taskyard.config import Settings
from taskyard.disk.files import make_private_folder
from taskyard.disk.processes import process_start, this_host
from taskyard.errors import JobNotFound, TooDeep
from taskyard.paths import list_name
from taskyard.runtime import families, here, looking
from taskyard.runtime.background import check_background
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id, new_id
from taskyard.runtime.kind import letter_of
from taskyard.runtime.lifeline import lifeline
from taskyard.runtime.recipients import PEOPLE, box_name
from taskyard.runtime.resuming import with_means
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from taskyard.runtime.kind import Spec, Wanted

#: The process in which a handler works; `-P`: what lies in the job's folder is not ours to import.
_HOST = [sys.executable, "-P", "-m", "taskyard.kinds.host"]


class Starter(NamedTuple):
    """Who starts jobs, and by which rules."""

    home: str
    agent: str | None
    instance: str
    settings: Settings
    hook_files: Callable[[str], Sequence[str]] | None
    alone: bool  #: it is a command line, gone before its job is

    def request(
        self,
        spec: Spec,
        *,
        backgrounded: bool,
        after: Sequence[str] = (),
        after_any: Sequence[str] = (),
        window: tuple[int, int] | None = None,
    ) -> dict[str, object]:
        """What a keeper is asked for; the arguments are those of `Jobs.start`.

        Raises:
            UsageError: something in it cannot be.
            BackgroundDisabled: nothing may run in the background here.
            TooDeep: jobs may not start jobs as deep as this.
        """
        if backgrounded:
            check_background()
        wanted = spec.wanted()
        make_private_folder(self.home)
        job_id = new_id(letter_of(spec))
        parent = named if is_job_id(named := os.environ.get("TASKYARD_JOB")) else None
        depth = _depth(self.home, parent, self.settings.job_depth)
        wish = wanted.on_parent_exit
        on_exit, starter = lifeline(self.home, self.agent, wish=wish, parent=parent, alone=self.alone)
        watcher = None if backgrounded else [os.getpid(), process_start()]
        around: dict[str, object] = {"watcher": watcher, "parent": parent, "depth": depth, "onParentExit": on_exit}
        around |= {"isBackgrounded": backgrounded, "terminal": _terminal(self.home, parent)}
        task = _task(self.home, wanted, parent)
        around |= {"root": _root(self.home, parent), "task": task}
        if task is not None:
            families.note_task(self.home, task, job_id)
        request = {
            "id": job_id,
            "home": self.home,
            "plan": plan(self.home, wanted.env, job_id, argv=wanted.argv, cwd=wanted.cwd, task=task, **self._store()),
            "record": {**self._record(spec, wanted, JobFolder(self.home, job_id)), **around},
            **self._limits(spec, wanted, depth),
            "after": list(after),
            "after_any": list(after_any),
            "window": window,
            "on_parent_exit": on_exit,
            "starter": starter if parent is not None else starter or watcher,
            "parent": parent,
            "arguments": None if wanted.argv else dict(wanted.arguments or {}),
        }
        return with_means(request, wanted.needs_env) if wanted.resumes else request

    def _store(self) -> dict[str, str]:
        """The database that lists are in, for what runs in the job, if it would not find it by itself."""
        chosen = self.settings.store
        return {"store": chosen} if "://" in chosen and chosen != config.load().store else {}

    def _limits(self, spec: Spec, wanted: Wanted, depth: int) -> dict[str, object]:
        """How it is to be run, and how far it may go."""
        slots = {} if wanted.is_light else {"jobs": self.settings.job_limit}
        if spec.type == "local_bash":
            slots[spec.type] = self.settings.shell_limit
        if wanted.provider:  # each depth has slots of its own: who waits for one below itself must not keep it from one
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
            "stall_after": self.settings.stall_after if wanted.argv else 0,  # a handler asks in its own words
            "prompt_after": self.settings.prompt_after if wanted.argv else 0,
            "slots": slots,
            "starts_per_minute": self.settings.job_starts_per_minute,
            "event_segments": self.settings.event_segments,
        }

    def _agents(self, wanted: Wanted) -> list[object]:
        """What an agent's start goes by (`keeper.agents.Rules`)."""
        settings = self.settings
        budget = [settings.agent_starts_per_minute, settings.agent_day_tokens, settings.agent_day_cost]
        on_limit = wanted.on_rate_limit or settings.on_rate_limit
        return [wanted.provider, *budget, on_limit, settings.rate_limit_wait]

    def _record(self, spec: Spec, wanted: Wanted, folder: JobFolder) -> dict[str, object]:
        """What the job's record says from the start; what says nothing is left out."""
        cwd = here.folder(wanted.cwd)
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
            "project": paths.project_list(here.folder(None)),
            "hooks": None if self.hook_files is None else list(self.hook_files(cwd)),
            "hasFacts": not wanted.argv or None,
            "isInside": wanted.is_inside or None,
            "priority": wanted.priority if wanted.priority != "later" else None,
            "silent": wanted.is_silent or None,
            "asksElsewhere": wanted.asks_elsewhere or None,
            "facts": dict(wanted.facts) or None,
        }
        return {name: value for name, value in record.items() if value is not None}


def is_inside(request: Mapping[str, object]) -> bool:
    """Whether a job is to live inside the program that starts it."""
    record = as_object(request.get("record"))
    return record is not None and record.get("isInside") is True


def _depth(home: str, parent: str | None, most: int) -> int:
    """How deep a job inside `parent` would be.

    Raises:
        TooDeep: deeper than the settings allow.
    """
    if parent is None:
        return 0
    try:
        depth = looking.look(home, parent).depth + 1
    except JobNotFound:
        depth = 1
    if depth >= most:
        raise TooDeep(parent, most)
    return depth


def _root(home: str, parent: str | None) -> str | None:
    """The outermost job that a job inside `parent` is inside of."""
    if parent is None:
        return None
    above = (read(JobFolder(home, parent).record) or {}).get("root")
    return above if is_job_id(above) else parent


def _terminal(home: str, parent: str | None) -> object:
    """The terminal of whoever starts a job; inside another, the one that was started from: its own is no person's."""
    return here.terminal() if parent is None else (read(JobFolder(home, parent).record) or {}).get("terminal")


def _task(home: str, wanted: Wanted, parent: str | None) -> str | None:
    """The task a job is for: as it says, as its starter's environment does, or that of the job around it.

    Raises:
        BadValue: what is named is no task.
    """
    named = wanted.task or os.environ.get(families.VARIABLE)
    if named:
        return families.checked(named if "/" in named else f"{list_name()}/{named}")
    above = (read(JobFolder(home, parent).record) or {}).get("task") if parent is not None else None
    return above if isinstance(above, str) else None


def plan(
    home: str,
    environ: Mapping[str, str] | None,
    job_id: str,
    *,
    argv: Sequence[str],
    cwd: str | None,
    task: str | None,
    store: str | None = None,
) -> dict[str, object]:
    """What is run, and where; a handler's process if no words are given. It is in no file, nor is a password in it."""
    env = here.environment() if environ is None else dict(environ)
    env.update(TASKYARD_JOB=job_id, TASKYARD_INSTANCE=job_id, TASKYARD_HOME=home)
    if task is not None:
        env[families.VARIABLE] = task
    if store is not None:
        env["TASKYARD_STORE"] = store
    return {"argv": list(argv) or _HOST, "cwd": here.folder(cwd), "env": env, "umask": here.umask()}
