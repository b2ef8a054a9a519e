"""Plans that a lead approves before a teammate begins: what is asked, and what an answer means. Pure."""

from __future__ import annotations

import os

from taskyard.clock import iso
from taskyard.shapes import as_text
from taskyard.tasklist.message import MESSAGE
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.message import Message

#: Plans for one task before it is given back: a lead that likes none must not keep it for ever.
MOST_PLANS = 5

#: Characters of a plan that a lead is mailed: more than anybody reads.
LONGEST_PLAN = 100_000

REQUEST, ANSWER = "plan_approval_request", "plan_approval_response"


#: What a person says who agrees.
YES = ("approve", "approved", "yes", "ok")


class Verdict(NamedTuple):
    """What a lead said of a plan."""

    approved: bool
    feedback: str = ""


def new_request() -> str:
    """What tells one plan that is asked about from every other."""
    return f"plan-{os.urandom(8).hex()}"


def request(name: str, plan: str, *, request_id: str, task_id: str, at: int) -> dict[str, object]:
    """What the lead is mailed."""
    return {
        "from": name,
        "timestamp": iso(at),
        "planContent": plan[:LONGEST_PLAN],
        "requestId": request_id,
        "taskId": task_id,
    }


def verdict(message: Message, request_id: str) -> Verdict | None:
    """What a message says of the plan that was asked about; None: nothing.

    A lead that is a person may answer in plain words: "approved" is a yes, anything else is feedback.
    """
    if message.type == ANSWER:
        asked = message.data.get("requestId")
        if asked not in (None, "", request_id):
            return None  # about an earlier plan
        said = as_text(message.data.get("feedback")) or message.text
        return Verdict(message.data.get("approved") is True, said)
    if message.type == MESSAGE:
        return in_words(message.text)
    return None


def in_words(text: str) -> Verdict:
    """What somebody says in plain words."""
    return Verdict(text.strip().rstrip(".!").lower() in YES, text)
