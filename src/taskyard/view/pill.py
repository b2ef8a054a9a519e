"""
The pill: one short sentence about what runs in the background. Pure: nothing is counted but the jobs given.

    1 shell · 3 shells, 2 monitors · 2 teams · dreaming · ◇ 2 cloud sessions · 4 background tasks
"""

from __future__ import annotations

from taskyard.shapes import as_object, as_text
from taskyard.typed import NamedTuple
from taskyard.view.glyphs import JOB_LOOKS
from taskyard.view.text import cut, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from taskyard.runtime.model import Job

#: How long an end is told in the pill, in milliseconds.
FLASH_MS = 5_000

#: What one job of a kind is called, and several.
_WORDS = {
    "local_bash": ("shell", "shells"),
    "monitor_mcp": ("monitor", "monitors"),
    "local_agent": ("agent", "agents"),
    "local_workflow": ("workflow", "workflows"),
    "in_process_teammate": ("team", "teams"),
    "remote_agent": ("cloud session", "cloud sessions"),
}

#: Columns of a description in the pill.
_LONGEST = 30


class Pill(NamedTuple):
    """What the pill says; all empty: it is hidden."""

    text: str = ""  #: "2 shells"
    hint: str = ""  #: " · ↓ to view": only where a person must look; ↓ stands for the key that opens the list
    waits: str = ""  #: "! 1 waits"
    flash: str = ""  #: "✗ make lint": what ended a moment ago
    flash_token: str = "default"  # noqa: S105  (a colour)
    running: int = 0  #: how many it counts

    def in_words(self) -> str:
        """All of it on one line, where no key opens the list."""
        return "   ".join(part for part in (self.text, self.waits, self.flash) if part)

    def hint_with(self, key: str) -> str:
        """The hint, with the key that really opens the list here; "" where there is no hint."""
        return self.hint.replace("↓", key)


def pill(jobs: Sequence[Job], *, now: int, in_tree: Collection[str] = (), seen: frozenset[str] = frozenset()) -> Pill:
    """What to say about `jobs`.

    Args:
        jobs: All that are known; of those that are over, what ended just now is told.
        now: Epoch ms.
        in_tree: Jobs of teammates that have a row elsewhere: if no other job runs, the pill hides.
        seen: Jobs whose end somebody has looked at.
    """
    running = [job for job in jobs if not job.is_final and job.is_backgrounded]
    waiting = sum(job.needs_input for job in running)
    ended = [job for job in jobs if _just_ended(job, now) and job.is_backgrounded and job.id not in seen]
    last = max(ended, key=lambda job: job.end_time or 0, default=None)
    text, hint = "", ""
    if not all(job.type == "in_process_teammate" and job.id in in_tree for job in running):
        text, hint = label(running)
    return Pill(
        text,
        hint,
        f"! {waiting} waits" if waiting == 1 else f"! {waiting} wait" if waiting else "",
        f"{JOB_LOOKS[last.status.value].glyph} {cut(safe(last.description), _LONGEST)}" if last else "",
        JOB_LOOKS[last.status.value].token if last else "default",
        len(running),
    )


def label(running: Sequence[Job]) -> tuple[str, str]:
    """What to call jobs that run, and what to add where one of them needs a look."""
    kinds = set(map(shown_type, running))
    if not running:
        return "", ""
    if kinds <= {"local_bash", "monitor_mcp"}:
        both = (_several(running, kind) for kind in ("local_bash", "monitor_mcp"))
        return ", ".join(part for part in both if part), ""
    if kinds == {"in_process_teammate"}:
        return _count(len({_team(job) for job in running}), "in_process_teammate"), ""
    if kinds == {"dream"}:
        return "dreaming", ""
    if kinds == {"remote_agent"}:
        return _remote(running)
    if len(kinds) == 1 and (kind := next(iter(kinds))) in _WORDS:
        return _several(running, kind), ""
    return f"{len(running)} background {'task' if len(running) == 1 else 'tasks'}", ""


def next_change(jobs: Sequence[Job], now: int) -> int | None:
    """When what it says changes by time alone; None: not by itself."""
    return min(((job.end_time or 0) + FLASH_MS for job in jobs if _just_ended(job, now)), default=None)


def _just_ended(job: Job, now: int) -> bool:
    return job.is_final and job.end_time is not None and now - job.end_time < FLASH_MS


def _remote(running: Sequence[Job]) -> tuple[str, str]:
    facts = running[0].facts
    if len(running) == 1 and facts.get("remoteTaskType") == "ultraplan":
        if facts.get("ultraplanPhase") == "needs_input" or running[0].needs_input:
            return "◇ ultraplan needs your input", " · ↓ to view"
        if facts.get("ultraplanPhase") == "plan_ready":
            return "◆ ultraplan ready", " · ↓ to view"
    return f"◇ {_count(len(running), 'remote_agent')}", ""


def _several(running: Sequence[Job], kind: str) -> str:
    number = sum(shown_type(job) == kind for job in running)
    return _count(number, kind) if number else ""


def _count(number: int, kind: str) -> str:
    return f"{number} {_WORDS[kind][number != 1]}"


def _team(job: Job) -> str:
    identity = as_object(job.facts.get("identity")) or {}
    return as_text(identity.get("teamName")) or job.id


def kind_word(job: Job) -> str:
    """What a job of this kind is called."""
    return "teammate" if job.type == "in_process_teammate" else _WORDS.get(shown_type(job), (safe(job.type), ""))[0]


def shown_type(job: Job) -> str:
    """The type a job is counted as: a shell command that only watches something is a monitor."""
    return "monitor_mcp" if job.type == "local_bash" and job.facts.get("kind") == "monitor" else job.type
