"""How a team's work went, for people and programs."""

from __future__ import annotations

from taskyard.crew.news import why_open
from taskyard.tasklist.nudge import note_for_person
from taskyard.view.text import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.crew.outcome import Outcome


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """The summary, in sentences."""
    done = len(outcome.tasks) - len(outcome.open)
    shares = ", ".join(f"{safe(name)} {count}" for name, count in outcome.done_by.items())
    yield ""
    took = f"{outcome.seconds:.1f} s" if outcome.seconds < 60 else duration(outcome.seconds)
    yield f"{done} of {len(outcome.tasks)} tasks done in {took}{f': {shares}' if shares else ''}."
    if outcome.died:
        yield f"{_many(outcome.died, 'member')} died, {outcome.replaced} replaced."
    if outcome.tokens or outcome.cost_usd is not None:
        cost = f", ${outcome.cost_usd:,.2f}" if outcome.cost_usd is not None else ""
        yield f"{outcome.tokens:,} tokens, {_many(outcome.tools, 'tool call')}{cost}."
    by_id = {task.id: task for task in outcome.tasks}
    for task in outcome.open:
        yield f"Not done: {why_open(task, by_id, outcome.team)}"
    for fault in outcome.faults:
        yield f"Fault: {safe(fault)}."
    if outcome.nudge:
        yield note_for_person(outcome.nudge)


def outcome_json(outcome: Outcome) -> dict[str, object]:
    """The same as plain values."""
    return {
        "team": outcome.team,
        "tasks": {"total": len(outcome.tasks), "done": len(outcome.tasks) - len(outcome.open)},
        "open": [task.id for task in outcome.open],
        "done_by": dict(outcome.done_by),
        "seconds": round(outcome.seconds, 2),
        "jobs": list(outcome.jobs),
        "died": outcome.died,
        "replaced": outcome.replaced,
        "tokens": outcome.tokens,
        "tool_uses": outcome.tools,
        "cost_usd": outcome.cost_usd,
        "nudge": outcome.nudge,
        "faults": list(outcome.faults),
    }


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
