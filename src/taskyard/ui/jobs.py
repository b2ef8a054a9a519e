"""Jobs as every screen shows them: scope, order, wording, state steps and the status summary. Pure.

`JobScope` selects the jobs: those of this project that are not dismissed, unless more is asked for.
`job_views` orders them. `status_summary` is one short line about what runs in the background:

    1 shell · 3 shells, 2 monitors · 2 teams · dreaming · ◇ 2 cloud sessions · 4 background tasks

`background_key` is the key that moves an attached run to the background.
"""

from __future__ import annotations

import os

from taskyard.core.text import JOB_GLYPHS, cut, escape_control
from taskyard.core.values import NamedTuple, as_object, as_text
from taskyard.jobs.agent_reports import agent_line
from taskyard.jobs.job_text import (
    JobUsage,
    disconnect_reason,
    state_text,
    status_look,
    subtree_usage,
    walk_tree,
)
from taskyard.jobs.model import JobStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from taskyard.jobs.model import Job


class JobScope(NamedTuple):
    """Which jobs a view shows."""

    project: str = ""  #: only jobs started in this project; "": of every project
    dismissed: bool = False  #: also show ended jobs that the user dismissed

    def of(self, jobs: Iterable[Job]) -> ScopedJobs:
        """Return the jobs in scope with their child jobs, and how many of other projects are left out.

        A job on another host is always in scope: there the project has another path, and so another name.
        """
        seen = [job for job in jobs if self.dismissed or not job.is_dismissed]
        if not self.project:
            return ScopedJobs(seen, 0)
        ours = {job.id for job in seen if job.project in ("", self.project) or job.is_on_other_host}
        size = -1
        while size != len(ours):
            size = len(ours)
            ours |= {job.id for job in seen if job.parent in ours}
        return ScopedJobs([job for job in seen if job.id in ours], len(seen) - len(ours))


class ScopedJobs(NamedTuple):
    """The jobs that a view shows."""

    jobs: Sequence[Job]
    elsewhere: int  #: number of jobs of other projects that are left out


class Key(NamedTuple):
    """A key: the byte a terminal sends, and its display name."""

    byte: bytes
    name: str


def background_key(setting: str, env: Mapping[str, str] | None = None) -> Key | None:
    r"""Return the key of the setting `background_key`; inside tmux, which uses Ctrl+B itself, the default is Ctrl+].

    >>> background_key("", {}), background_key("", {"TMUX": "/tmp/x"}), background_key("ctrl+g", {})
    (Key(byte=b'\x02', name='Ctrl+B'), Key(byte=b'\x1d', name='Ctrl+]'), Key(byte=b'\x07', name='Ctrl+G'))
    """
    if setting == "off":
        return None
    env = os.environ if env is None else env
    letter = setting.rpartition("+")[2].upper() or ("]" if env.get("TMUX") else "B")
    return Key(bytes([ord(letter) & 0x1F]), f"Ctrl+{letter}")


#: How long the summary shows that a job ended, in milliseconds.
FLASH_MS = 5_000

#: Singular and plural name of each kind of job.
_KIND_NAMES = {
    "local_bash": ("shell", "shells"),
    "monitor_mcp": ("monitor", "monitors"),
    "local_agent": ("agent", "agents"),
    "local_workflow": ("workflow", "workflows"),
    "in_process_teammate": ("team", "teams"),
    "remote_agent": ("cloud session", "cloud sessions"),
}

#: Most columns of a description in the summary.
_LONGEST_DESCRIPTION = 30


class StatusSummary(NamedTuple):
    """The status summary; it is hidden if all fields are empty."""

    text: str = ""  #: "2 shells"
    hint: str = ""  #: " · ↓ to view": only where the user must look; ↓ stands for the key that opens the list
    waits: str = ""  #: "! 1 waits"
    flash: str = ""  #: "✗ make lint": a job that ended a moment ago
    flash_token: str = "default"  # noqa: S105  (a colour)
    running: int = 0  #: number of running jobs it counts

    def in_words(self) -> str:
        """Return everything on one line, without the hint."""
        return "   ".join(part for part in (self.text, self.waits, self.flash) if part)

    def hint_with(self, key: str) -> str:
        """Return the hint with the key that opens the list here; "" if there is no hint."""
        return self.hint.replace("↓", key)


def status_summary(
    jobs: Sequence[Job], *, now: int, in_tree: Collection[str] = (), seen: frozenset[str] = frozenset()
) -> StatusSummary:
    """Summarise `jobs`.

    Args:
        jobs: All known jobs; of the ended ones, only the latest within `FLASH_MS` is mentioned.
        now: Epoch ms.
        in_tree: Jobs of teammates that have a row elsewhere: if no other job runs, the text is empty.
        seen: Jobs whose end the user has looked at.
    """
    running = [job for job in jobs if not job.is_final and job.is_backgrounded]
    waiting = sum(job.needs_input for job in running)
    ended = [job for job in jobs if _just_ended(job, now) and job.is_backgrounded and job.id not in seen]
    last = max(ended, key=lambda job: job.end_time or 0, default=None)
    text, hint = "", ""
    if not all(job.type == "in_process_teammate" and job.id in in_tree for job in running):
        text, hint = running_label(running)
    return StatusSummary(
        text,
        hint,
        f"! {waiting} waits" if waiting == 1 else f"! {waiting} wait" if waiting else "",
        f"{JOB_GLYPHS[last.status.value].glyph} {cut(escape_control(last.description), _LONGEST_DESCRIPTION)}"
        if last
        else "",
        JOB_GLYPHS[last.status.value].token if last else "default",
        len(running),
    )


def running_label(running: Sequence[Job]) -> tuple[str, str]:
    """Return the label of running jobs, and a hint if one of them needs the user."""
    kinds = set(map(display_type, running))
    if not running:
        return "", ""
    if kinds <= {"local_bash", "monitor_mcp"}:
        both = (_kind_count_label(running, kind) for kind in ("local_bash", "monitor_mcp"))
        return ", ".join(part for part in both if part), ""
    if kinds == {"in_process_teammate"}:
        return _count_label(len({_team_name(job) for job in running}), "in_process_teammate"), ""
    if kinds == {"dream"}:
        return "dreaming", ""
    if kinds == {"remote_agent"}:
        return _remote_label(running)
    if len(kinds) == 1 and (kind := next(iter(kinds))) in _KIND_NAMES:
        return _kind_count_label(running, kind), ""
    return f"{len(running)} background {'task' if len(running) == 1 else 'tasks'}", ""


def next_summary_change(jobs: Sequence[Job], now: int) -> int | None:
    """Return when the summary changes by time alone (epoch ms); None if it does not."""
    return min(((job.end_time or 0) + FLASH_MS for job in jobs if _just_ended(job, now)), default=None)


def _just_ended(job: Job, now: int) -> bool:
    return job.is_final and job.end_time is not None and now - job.end_time < FLASH_MS


def _remote_label(running: Sequence[Job]) -> tuple[str, str]:
    facts = running[0].facts
    if len(running) == 1 and facts.get("remoteTaskType") == "ultraplan":
        if facts.get("ultraplanPhase") == "needs_input" or running[0].needs_input:
            return "◇ ultraplan needs your input", " · ↓ to view"
        if facts.get("ultraplanPhase") == "plan_ready":
            return "◆ ultraplan ready", " · ↓ to view"
    return f"◇ {_count_label(len(running), 'remote_agent')}", ""


def _kind_count_label(running: Sequence[Job], kind: str) -> str:
    number = sum(display_type(job) == kind for job in running)
    return _count_label(number, kind) if number else ""


def _count_label(number: int, kind: str) -> str:
    return f"{number} {_KIND_NAMES[kind][number != 1]}"


def _team_name(job: Job) -> str:
    identity = as_object(job.facts.get("identity")) or {}
    return as_text(identity.get("teamName")) or job.id


def kind_name(job: Job) -> str:
    """Return the display name of the job's kind."""
    return (
        "teammate"
        if job.type == "in_process_teammate"
        else _KIND_NAMES.get(display_type(job), (escape_control(job.type), ""))[0]
    )


def display_type(job: Job) -> str:
    """Return the type a job is counted as: a shell command that only watches something is a monitor."""
    return "monitor_mcp" if job.type == "local_bash" and job.facts.get("kind") == "monitor" else job.type


#: How long a failure the user has not looked at stays flagged: one day, in milliseconds.
UNSEEN_MS = 86_400_000

#: Most characters of a job's last output line, and of its question.
_LONGEST_LINE, _LONGEST_QUESTION = 300, 2_000


class Step(NamedTuple):
    """A state a job went through: `pending ─▶ running ─▶ failed (exit 2)`."""

    word: str
    glyph: str
    token: str
    at: int | None = None  #: epoch ms, where known


class JobView(NamedTuple):
    """One job, ready to be shown."""

    id: str
    type: str
    kind: str  #: shell, agent, teammate, workflow, monitor, dream, cloud session
    description: str
    state: str  #: pending, running, waits, completed, failed or killed
    glyph: str
    ascii: str
    word: str  #: "running", "needs input", "exit 2"
    token: str
    command: str = ""
    depth: int = 0  #: nesting depth below other listed jobs
    parent: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    paused_ms: int = 0
    last_line: str = ""  #: its last output line, or current activity
    question: str = ""  #: what it asks the user; "" if nothing
    needs_input: bool = False
    takes_input: bool = False
    is_paused: bool = False
    is_disconnected: bool = False  #: its work goes on elsewhere, unreachable; `last_line` has the reason and since when
    is_foreground: bool = False
    is_unseen: bool = False  #: it failed, and the user has not looked at it
    notified: bool = False  #: a notice of its end was delivered
    task: str | None = None  #: the task it was started for, such as release/7
    agent: str | None = None  #: the agent that started it
    pid: int | None = None
    output: str = ""  #: path of its output file
    total: JobUsage = JobUsage()  #: usage including all jobs started inside it
    steps: tuple[Step, ...] = ()

    @property
    def is_progressing(self) -> bool:
        """Whether progress of the job, if it runs, can be seen."""
        return not self.is_paused and not self.is_disconnected

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return self.state in ("completed", "failed", "killed")


def job_views(
    jobs: Iterable[Job], *, now: int, last_lines: Mapping[str, str], seen: frozenset[str] = frozenset()
) -> tuple[JobView, ...]:
    """Return jobs in display order, child jobs below their parent.

    Order: waiting for an answer, running (latest start first), failed unseen, ended (latest end first).
    """
    jobs = list(jobs)
    totals = subtree_usage(jobs, 0)  # now=0 adds no running time: else every refresh would be a change
    ordered = sorted(jobs, key=lambda job: _sort_key(job, now, seen))
    return tuple(
        _job_view(job, depth, last_lines.get(job.id, ""), totals[job.id], is_unseen(job, now, seen))
        for depth, job in walk_tree(ordered)
    )


def is_unseen(job: Job, now: int, seen: frozenset[str]) -> bool:
    """Whether a job failed within the last day and the user has not looked at it."""
    return job.status is JobStatus.FAILED and job.id not in seen and now - (job.end_time or 0) < UNSEEN_MS


def _sort_key(job: Job, now: int, seen: frozenset[str]) -> tuple[int, int, str]:
    if job.is_final:
        return (2 if is_unseen(job, now, seen) else 3, -(job.end_time or 0), job.id)
    return (0 if job.needs_input else 1, -job.start_time, job.id)


def _job_view(job: Job, depth: int, last_line: str, total: JobUsage, unseen: bool) -> JobView:
    seen = status_look(job)
    said = agent_line(job)
    question = as_text(job.facts.get("question")) if job.needs_input else ""
    return JobView(
        job.id,
        escape_control(job.type),
        kind_name(job),
        escape_control(job.description),
        _state(job),
        seen.glyph,
        seen.ascii,
        state_text(job),
        seen.token,
        command=escape_control(job.command, lines=True),
        depth=depth,
        parent=job.parent,
        started_at=job.start_time or None,
        ended_at=job.end_time,
        paused_ms=job.total_paused_ms,
        last_line=(_wait_reason(job) or disconnect_reason(job) or (last_line if said is None else said))[
            :_LONGEST_LINE
        ],
        question=escape_control(question, lines=True)[:_LONGEST_QUESTION],
        needs_input=job.needs_input,
        takes_input=job.takes_input and not job.is_final,
        is_paused=job.is_paused,
        is_disconnected=job.is_disconnected,
        is_foreground=not job.is_backgrounded and not job.is_final,
        is_unseen=unseen,
        notified=job.notified,
        task=job.task,
        agent=escape_control(job.agent_id) if job.agent_id else None,
        pid=job.pid,
        output=job.output_file,
        total=total,
        steps=steps(job),
    )


def _state(job: Job) -> str:
    if job.rate_limited is not None:
        return "pending"
    return "waits" if job.needs_input and not job.is_final else job.status.value


def steps(job: Job) -> tuple[Step, ...]:
    """Return the states a job went through."""
    pending, running = JOB_GLYPHS["pending"], JOB_GLYPHS["running"]
    found = [Step("pending", pending.glyph, "muted")]
    if job.status is JobStatus.PENDING:
        return (Step("pending", pending.glyph, pending.token, job.start_time or None),)
    is_last = not (job.is_final or job.needs_input or job.is_paused or job.is_disconnected)
    found.append(Step("running", running.glyph, running.token if is_last else "muted", job.start_time or None))
    if not is_last:
        last = status_look(job)
        found.append(Step(_last_step_name(job), last.glyph, last.token, job.end_time))
    return tuple(found)


def _last_step_name(job: Job) -> str:
    word, shown = status_look(job).word, state_text(job)
    if job.is_disconnected:
        return shown
    return word if word == shown or not job.is_final else f"{word} ({shown})"


def _wait_reason(job: Job) -> str:
    if (limit := job.rate_limited) is not None:
        return limit.words()
    if job.status is not JobStatus.PENDING or not job.waits_for:
        return ""
    return f"waits for {escape_control(job.waits_for)}"
