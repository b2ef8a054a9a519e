"""
What becomes of a notice when one receiver at a time is there: the model that deliveries are checked against.

    take(id)       answers "fresh", or "again" after the death of one who had it
    ack(id)        answers whether it is filed by this call; it is, by the one who has it, once
    died(id, who)  the kernel's word
    state(id)      answers "read" when it is filed
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from support.linearizable import Event

NEW, BACK, READ = "new", "back", "read"


class NoticeModel:
    """One notice: `args[0]` is its id. A state is where it is; in somebody's hands, that one's name."""

    def part(self, event: Event) -> Hashable:
        return event.args[0]

    def start(self) -> str:
        return NEW

    def only_looks(self, event: Event) -> bool:
        return event.op == "state"

    def step(self, state: str, event: Event) -> Sequence[str]:
        match event.op:
            case "take":
                where = {"fresh": (NEW,), "again": (BACK,), None: (NEW, BACK)}[_answer(event)]
                return [event.process] if state in where else []
            case "ack":
                return [READ] if state == event.process and event.result is not False else []
            case "died":
                return [BACK] if state == event.args[1] else [state]
            case "state":
                return [state] if state == event.result else []
            case _:
                raise ValueError(f"no such operation on a notice: {event.op!r}")


def deliveries(journals: Iterable[Event], deaths: Iterable[Event], ids: Sequence[str]) -> Iterator[Event]:
    """What receivers noted, by notice: a take that never returned may have been of any.

    In a journal a take answers ((id, "fresh"), …) and an ack has the id as argument.
    """
    touched: dict[str, set[str]] = {}
    for event in journals:
        if event.op == "ack":
            yield event
            continue
        taken = dict.fromkeys(ids) if event.t1 is None else dict(event.result)  # type: ignore[call-overload]  # as above
        touched.setdefault(event.process, set()).update(taken)
        for notice_id, how in taken.items():
            yield event._replace(args=(notice_id,), result=how)
    for death in deaths:
        who = str(death.args[0])
        for notice_id in touched.get(who, ()):
            yield death._replace(args=(notice_id, who))


def _answer(event: Event) -> str | None:
    return None if event.t1 is None else str(event.result)
