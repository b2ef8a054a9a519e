"""
The news of a job: what its starter is told, once, signed so that no text can imitate it.

A notice is a JSON object: its id, the job, how it ended, a sentence, and a check value over all of it (`seal`).
"""

from __future__ import annotations

import json

from taskyard.clock import now_ms
from taskyard.disk.processes import process_alive
from taskyard.maildir import Box
from taskyard.message_ids import lone_id
from taskyard.runtime.folder import JobFolder, outbox
from taskyard.runtime.recipients import recipient_of
from taskyard.runtime.seal import signed
from taskyard.shapes import as_list, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import End


def of_end(folder: JobFolder, record: Mapping[str, object], end: End) -> dict[str, object] | None:
    """The notice of an end; None where nobody is to hear of it."""
    if is_nobodys(record):
        return None
    return signed(folder.home, words_of_end(folder, record, end))


def is_nobodys(record: Mapping[str, object]) -> bool:
    """Whether news of a job are for nobody: it is silent, or whoever watches it in the foreground sees all of it."""
    return bool(record.get("silent")) or (record.get("isBackgrounded") is False and _is_watched(record))


def words_of_end(folder: JobFolder, record: Mapping[str, object], end: End) -> dict[str, object]:
    """What there is to say of an end, not signed."""
    return {
        **about(folder, record),
        "priority": str(record.get("priority") or "later"),
        "status": str(end.status),
        "summary": summary(record, end, _own_words(folder, record, end)),
        "exitCode": end.exit_code,
        "at": end.at,
        **_added(folder, record),
    }


def _added(folder: JobFolder, record: Mapping[str, object]) -> dict[str, object]:
    """What the job's kind has to add."""
    if record.get("type") not in ("local_agent", "remote_agent"):
        return {}
    from taskyard.runtime import agent_news  # only keepers of agents need it

    return agent_news.added(folder)


def _is_watched(record: Mapping[str, object]) -> bool:
    """Whether the very process that watches a job in the foreground lives."""
    watcher = as_list(record.get("watcher"))
    if watcher is None or len(watcher) != 2:
        return True
    pid, start = watcher
    return isinstance(pid, int) and isinstance(start, int) and process_alive(pid, start)


def tell_stall(folder: JobFolder, record: Mapping[str, object], tail: str) -> None:
    """Say that the job seems to wait for an answer: news without a status, since nothing ended."""
    answerable = bool(record.get("takesInput"))
    hint = f"Answer with: taskyard send {folder.id} TEXT" if answerable else "It takes no input: stop it, or let it be."
    description = record.get("description")
    said = f'Background command "{description}" appears to be waiting for interactive input'
    news = {
        **about(folder, record),
        "priority": "later",
        "summary": said,
        "tail": tail,
        "hint": hint,
        "at": now_ms(),
    }
    notice = signed(folder.home, news)
    box = Box(folder.home, outbox(folder.home, str(notice["recipient"])))
    box.open()
    box.put(str(notice["id"]), json.dumps({"news": notice}).encode())


def about(folder: JobFolder, record: Mapping[str, object]) -> dict[str, object]:
    """What every notice says: its own id, for whom it is, and of which job."""
    return {
        "id": lone_id(folder.id),
        "recipient": recipient_of(record),
        "taskId": folder.id,
        "toolUseId": record.get("toolUseId"),
        "outputFile": folder.output,
    }


def summary(record: Mapping[str, object], end: End, own_words: str = "") -> str:
    """How a job ended, in a sentence; with what its kind says of it, if that has words of its own."""
    lost = f"; some of its output was lost ({end.output_lost})" if end.output_lost else ""
    return _how_it_ended(record, end) + (f": {own_words}" if own_words else "") + lost


def _own_words(folder: JobFolder, record: Mapping[str, object], end: End) -> str:
    """What a kind says of work that went well (the fact `notice`, of a dream `note`)."""
    names = {"remote_agent": "notice", "dream": "note"}
    name = names.get(str(record.get("type")))
    if name is None or end.status != "completed":
        return ""
    from taskyard.runtime.facts import shown

    return as_text(shown(folder).get(name))


#: What a job is called whose exit code is nobody's concern, by its kind, and how it is said that it went well.
_NOUNS = {
    "monitor_mcp": ("Monitor", "ended"),
    "remote_agent": ("Remote agent", "completed"),
    "local_workflow": ("Workflow", "completed"),
    "in_process_teammate": ("Teammate", "ended"),
    "dream": ("Dream", "completed"),
}


def noun(record: Mapping[str, object]) -> str:
    """What a job is called in a sentence, by its kind."""
    if record.get("type") == "local_agent":
        return "Agent"
    return _NOUNS.get(str(record.get("type")), ("Background command", ""))[0]


def _how_it_ended(record: Mapping[str, object], end: End) -> str:
    if record.get("type") == "local_agent":
        from taskyard.runtime import agent_news

        return agent_news.summary(record, end)
    noun, well = _NOUNS.get(str(record.get("type")), ("Background command", ""))
    what = f'{noun} "{record.get("description")}"'
    if end.cause == "exited" and end.exit_code == 0 and well:
        return f"{what} {well}"
    if end.cause == "exited":
        how = "completed (exit code 0)" if end.exit_code == 0 else f"failed with exit code {end.exit_code}"
        return f"{what} {how}"
    if end.cause == "timeout":
        return f"{what} was stopped after reaching its background time limit"
    if end.cause == "output_cap":
        return f"{what} was stopped since its output was larger than its cap"
    if end.cause == "stopped":
        return f"{what} was stopped"
    if end.cause == "signal":
        return f"{what} failed: killed by signal {end.signal}"
    if end.cause == "oom":
        return f"{what} failed: out of memory"
    return f"{what} failed: {end.error or 'Unknown error'}"
