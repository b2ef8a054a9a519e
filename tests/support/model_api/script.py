"""What a model does with one request: a test's script is a row of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.model_api.request import Request


@dataclass(frozen=True)
class Usage:
    """Tokens of one request: all that went in, what of it came from a cache, what came out."""

    input: int = 1000
    output: int = 50
    cached: int = 0


@dataclass(frozen=True)
class Say:
    """Answer with a text, and end the turn."""

    text: str
    usage: Usage = Usage()


class Call:
    """Call one tool: `Call("Bash", command="ls")`."""

    def __init__(self, tool: str, /, **given: Any) -> None:
        self.calls = (self,)
        self.tool = tool
        self.given = given
        self.text = ""
        self.usage = Usage()


class Calls:
    """Call several tools in one answer, with a text before them."""

    def __init__(self, *calls: Call, text: str = "", usage: Usage | None = None) -> None:
        self.calls = calls
        self.text = text
        self.usage = usage or Usage()


@dataclass(frozen=True)
class Fail:
    """Refuse by an HTTP status, worded as the provider does."""

    status: int
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Limit:
    """Refuse because the quota of the account is used up, for so many seconds more, worded as the provider does."""

    seconds: int


@dataclass(frozen=True)
class Cut:
    """Begin a text, then break the connection."""

    text: str = "I begin, and"


@dataclass(frozen=True)
class Hang:
    """Begin a text, then send nothing more, until the server ends."""

    text: str = "I think"


@dataclass(frozen=True)
class Choose:
    """Do what a function says of the request: for programs that ask at the same time."""

    step: Callable[[Request], Say | Call | Calls | Fail | Limit | Cut | Hang]


Step = Say | Call | Calls | Fail | Limit | Cut | Hang


@dataclass(frozen=True)
class Reply:
    """A step as HTTP: a status with a body, or a stream of server-sent events."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None  #: sent as JSON
    events: tuple[tuple[str, object], ...] = ()  #: name and data of each event; the name may be empty
    then: str = ""  #: "cut" or "hang" after the last event
