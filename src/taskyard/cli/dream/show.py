"""`taskyard dream status`, `history` and `undo`: what became of a memory, and how it was before."""

from __future__ import annotations

import time

from taskyard import config
from taskyard.cli.command import Command
from taskyard.cli.dream.run import where
from taskyard.cli.output import answer, say
from taskyard.dreaming import applying, gate, lock, standing
from taskyard.dreaming.side import Side
from taskyard.kinds.dream import Dream
from taskyard.shapes import as_text
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.dreaming.applying import Copy
    from taskyard.dreaming.gate import Gate


def _status(args: Args) -> int:
    settings = config.load()
    dream = Dream(args.memory, args.sources)
    memory = dream.place(settings)
    side = Side(memory)
    found = standing.stands(memory, dream.names(settings), dream.project(), settings)
    claim = lock.read_claim(side) if lock.is_running(side) else None
    job = as_text((claim or {}).get("job")) or None
    copies = applying.copies(side)
    return answer(
        args,
        lambda: {
            "memory": memory,
            "last_done": round(found.last_done * 1000) or None,
            "sessions": found.sessions,
            "sessions_needed": found.sessions_needed,
            "gate": "open" if found.is_open else "shut",
            "held_by": list(found.held_by),
            "opens_at": None if found.opens_at is None else round(found.opens_at * 1000),
            "job": job,
            "copies": len(copies),
        },
        lambda: _status_lines(memory, found, job, len(copies)),
        ids=["open" if found.is_open else "shut"],
    )


def _status_lines(memory: str, found: Gate, job: str | None, copies: int) -> Iterator[str]:
    yield f"memory     {safe(memory)}"
    yield f"last done  {_when(found.last_done) if found.last_done else 'never'}"
    yield f"sessions   {found.sessions} since then ({found.sessions_needed} are needed)"
    why = gate.words(found, now=time.time())
    yield f"gate       {'open: `taskyard dream` begins one' if found.is_open else 'shut: ' + why}"
    if job:
        yield f"at work    {safe(job)}"
    yield f"history    {copies} earlier state{'' if copies == 1 else 's'}"


def _history(args: Args) -> int:
    side = Side(Dream(args.memory).place(config.load()))
    copies = applying.copies(side)
    return answer(
        args,
        lambda: [{"name": copy.name, "until": copy.at * 1000, "by": copy.job, "path": copy.path} for copy in copies],
        lambda: [_line(copy) for copy in copies] or [f"There are no earlier states of {safe(side.memory)}."],
        ids=[copy.name for copy in copies],
    )


def _line(copy: Copy) -> str:
    return f"{safe(copy.name)}  as it was until {_when(copy.at)}, replaced by {safe(copy.job)}"


def _undo_arguments(parser: Parser) -> None:
    parser.add("copy", nargs="?", metavar="COPY", help="Which state, as `history` names it; the last if not given.")
    parser.add("--memory", default="", metavar="DIR", help="The folder, or `claude` or `taskyard` for theirs.")


def _undo(args: Args) -> int:
    side = Side(Dream(args.memory).place(config.load()))
    back = applying.undo(side, args.copy)
    applying.prune(side, config.load().dream_copies)
    say(args, f"{side.memory} is as it was until {_when(back.at)}. `taskyard dream undo` takes that back.")
    return answer(args, lambda: {"memory": side.memory, "name": back.name, "until": back.at * 1000}, list)


def _history_arguments(parser: Parser) -> None:
    parser.add("--memory", default="", metavar="DIR", help="The folder, or `claude` or `taskyard` for theirs.")


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


STATUS = Command(
    _status,
    where,
    "Which memory folder is meant, when it was last dreamt of, how many sessions there were since, and what the next\n"
    "dream waits for.",
    examples=("taskyard dream status", "taskyard dream status --memory claude --json"),
)
HISTORY = Command(
    _history,
    _history_arguments,
    "The memory folder as it was before each dream, the newest first. The setting dream_copies says how many are kept.",
    examples=("taskyard dream history",),
)
UNDO = Command(
    _undo,
    _undo_arguments,
    "Put the memory folder back to how it was before the last dream, or to any state that `history` names. What is\n"
    "there now becomes an earlier state itself.",
    examples=("taskyard dream undo", "taskyard dream undo --memory claude"),
    exits=("4  there is no such state", "5  a dream is at work"),
)
