"""Going on with the work of an agent that is over: as another job, by the same engine, knowing what was said."""

from __future__ import annotations

import os

from taskyard.errors import Conflict
from taskyard.kinds.agent_lines import is_session
from taskyard.kinds.agent_messages import Received
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.looking import look
from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: What the next agent has of the one before.
_SAME = ("engine", "command", "agent_type", "name", "description", "model", "max_tokens", "max_cost", "on_rate_limit")


def earlier(home: str, job_id: str, prompt: str) -> dict[str, object]:
    """The fields of an agent that goes on with `job_id`.

    Raises:
        JobNotFound: there is no such job.
        Conflict: it is no agent, or not over, or gone with all it said.
    """
    job = look(home, job_id)
    if job.type != "local_agent":
        raise Conflict(f"{job.id} is no agent: it is a {job.type}.")
    if not job.is_final:
        raise Conflict(f"Agent {job.id} is still at work: `taskyard send {job.id} TEXT` tells it something.")
    folder = JobFolder(home, job.id)
    arguments = as_object((read(folder.arguments) or {}).get("arguments"))
    if arguments is None or not os.path.lexists(folder.transcript):
        raise Conflict(f"What agent {job.id} was asked and said is no longer known: `taskyard gc` took it.")
    fields: dict[str, object] = {name: arguments.get(name) for name in _SAME}
    fields |= {"command": tuple(arguments.get("command") or ()), "cwd": _cwd(folder), "resumes": job.id}  # type: ignore[arg-type]  # words, by `wanted`
    fields["permissions"] = arguments.get("permissions") or ""  # jobs of earlier versions have none
    fields["description"] = fields["description"] or next(iter(prompt.strip().splitlines()), None)
    prompt = "\n\n".join([*_queued(job.facts), prompt]) if prompt.strip() else prompt
    session = job.facts.get("session")
    if isinstance(session, str) and is_session(session):  # its engine keeps conversations, or it would name none
        return {**fields, "prompt": prompt, "session": session}
    return {**fields, "prompt": f"{prompt}\n\nYou go on with earlier work; its transcript is in {folder.transcript}."}


def _queued(facts: Mapping[str, object]) -> list[str]:
    """What was sent to the earlier agent and never reached it, as the record has it."""
    found: list[str] = []
    for raw in as_list(facts.get("messages")) or []:
        message = as_object(raw) or {}
        if message.get("queued") is True and (text := as_text(message.get("text"))):
            found.append(str(Received(text, as_text(message.get("from")))))
    return found


def _cwd(folder: JobFolder) -> str | None:
    cwd = (read(folder.record) or {}).get("cwd")
    return cwd if isinstance(cwd, str) and os.path.isdir(cwd) else None
