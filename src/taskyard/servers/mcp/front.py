"""Answers the MCP handshake on stdio before the SDK is loaded.

Clients wait about a second for a server's tools, and importing the SDK takes longer than that on a busy machine. So
`initialize`, `server/discover`, `ping` and the lists of tools, prompts and resources are answered here, and
`subscriptions/listen` is acknowledged, while the SDK is loaded in a thread. Then the whole connection is handed over:

    HandshakeServer.run()  ->  Handover: bytes that the SDK reads first (what it needs to know, and what waits for an
                               answer), and the ids of the requests among them that are answered or acknowledged

Only a plain request is answered here. Whatever is malformed, unusual or of another method waits for the SDK, which
answers it as if this module did not exist.
"""

from __future__ import annotations

import json
import os
import select

from taskyard import __version__
from taskyard.core.values import NamedTuple, as_object
from taskyard.servers.mcp.manifest import DESCRIPTION, NAME, TITLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from taskyard.servers.mcp.manifest import Manifest

#: Seconds without a message after which the SDK is loaded, though nothing needs it yet: a call may come.
_IDLE_SECONDS = 0.5

_READ_SIZE = 65_536

_INFO = {"name": NAME, "title": TITLE, "version": __version__, "description": DESCRIPTION}

#: Integers up to this size are exact in every JSON reader.
_LARGEST_ID = 1 << 53

#: Reserved keys of a request's `_meta` from protocol version 2026-07-28 on.
_RESERVED = "io.modelcontextprotocol/"
_VERSION, _CLIENT, _CAPABILITIES = (
    f"{_RESERVED}{key}" for key in ("protocolVersion", "clientInfo", "clientCapabilities")
)


#: Subscriptions that name no resource.
_LISTS = frozenset({"toolsListChanged", "promptsListChanged", "resourcesListChanged"})
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Handover(NamedTuple):
    """What the SDK continues with."""

    first: bytes  #: to be read before what is still in the pipe
    answered: frozenset[str | int]  #: ids of requests in it that are answered already
    acknowledged: frozenset[str | int] = frozenset()  #: ids of subscriptions in it that are acknowledged already


class HandshakeAnswers:
    """The answers to a handshake, from the first message on."""

    def __init__(self, manifest: Manifest, resources: Callable[[], list[dict[str, str]] | None]) -> None:
        """Set up. `resources`: returns what can be read now, or None if only the SDK can determine it."""
        self._manifest = manifest
        self._resources = resources
        self._era: str | None = None  # "handshake" or "modern" by the client's first request; "sdk": left to the SDK
        self.kept: list[bytes] = []  #: lines for the SDK, in the order they came
        self.answered: set[str | int] = set()
        self.acknowledged: set[str | int] = set()
        self.is_over = False  #: the client has the tools: its next request needs the SDK
        self.is_waiting = False  #: a message needs the SDK now

    def take(self, line: bytes) -> bytes | None:
        """Return the answer to a line; None if the SDK must handle it."""
        message = _parse_message(line)
        if message is None or "method" not in message:
            self.kept.append(line)
            if line.strip():
                self.is_waiting = True
                self._era = self._era or "sdk"
            return None
        if "id" not in message:
            self.kept.append(line)
            return None
        if (listening := self._listening(message)) is not None:
            self.kept.append(line)
            self.acknowledged.add(message["id"])
            return _encode_line({"jsonrpc": "2.0", "method": _ACKNOWLEDGED, "params": listening})
        result = self._result(message)
        if result is None:
            self.kept.append(line)
            self.is_waiting = True
            self._era = self._era or "sdk"
            return None
        return _encode_line({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _listening(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return the acknowledgement of a subscription to the lists; None if it is another request, or for more."""
        params = as_object(message.get("params")) if message["method"] == "subscriptions/listen" else None
        if self._era != "modern" or params is None or set(message) != {"jsonrpc", "id", "method", "params"}:
            return None
        wanted = as_object(params.get("notifications"))
        rest = {key: value for key, value in params.items() if key != "notifications"}
        if wanted is None or not _is_enveloped(rest, self._manifest.modern["versions"]):
            return None
        if set(wanted) - _LISTS or not all(value is True for value in wanted.values()):
            return None
        return {"_meta": {f"{_RESERVED}subscriptionId": message["id"]}, "notifications": wanted}

    def _result(self, message: dict[str, Any]) -> dict[str, Any] | None:
        method, params = message["method"], as_object(message.get("params", {}))
        if set(message) - {"jsonrpc", "id", "method", "params"} or params is None:
            return None
        if method == "initialize":
            return self._initialized(message, params)
        if self._era == "handshake" and _is_plain(params):
            return {} if method == "ping" else self._list(method)
        if self._era in (None, "modern") and _is_enveloped(params, self._manifest.modern["versions"]):
            return self._modern(message)
        return None

    def _initialized(self, message: dict[str, Any], params: dict[str, Any]) -> dict[str, Any] | None:
        if self._era is not None or not _is_client(params):
            return None
        versions = self._manifest.handshake["versions"]
        version = params["protocolVersion"] if params["protocolVersion"] in versions else versions[-1]
        # The SDK gets the version that was agreed on: another release of it may know others.
        self._keep({**message, "params": {**params, "protocolVersion": version}})
        self._era = "handshake"
        return {
            "protocolVersion": version,
            "capabilities": self._manifest.handshake["capabilities"],
            "serverInfo": _INFO,
            "instructions": self._manifest.instructions,
        }

    def _modern(self, message: dict[str, Any]) -> dict[str, Any] | None:
        modern = self._manifest.modern
        meta = {f"{_RESERVED}serverInfo": _INFO}
        if message["method"] == "server/discover":
            result = {
                **modern["server/discover"],
                "capabilities": modern["capabilities"],
                "instructions": self._manifest.instructions,
                "supportedVersions": modern["versions"],
                "_meta": meta,
            }
        elif (listed := self._list(message["method"])) is not None:
            result = {**modern[message["method"]], **listed, "_meta": meta}
        else:
            return None
        if self._era is None:
            self._keep(message)  # the first request decides by which rules the SDK serves the rest
            self._era = "modern"
        return result

    def _list(self, method: str) -> dict[str, Any] | None:
        """Return one of the lists that a client requests before it uses a server."""
        if method == "tools/list":
            self.is_over = True
            return {"tools": self._manifest.tools}
        if method == "prompts/list":
            return {"prompts": self._manifest.prompts}
        if method == "resources/list" and (found := self._resources()) is not None:
            return {"resources": found}
        return None

    def _keep(self, message: dict[str, Any]) -> None:
        self.kept.append(json.dumps(message).encode() + b"\n")
        self.answered.add(message["id"])


class HandshakeServer:
    """Serves stdin and stdout until the SDK is loaded."""

    def __init__(
        self, answers: HandshakeAnswers, load: Callable[[], object], *, source: int = 0, sink: int = 1
    ) -> None:
        """Set up. `load`: loads the SDK; called in a thread."""
        self._answers = answers
        self._load = load
        self._source, self._sink = source, sink
        self._buffer = b""
        self._failure: BaseException | None = None
        self._loaded: int | None = None  # readable once the SDK is loaded, or failed to

    def run(self) -> Handover | None:
        """Answer what can be answered, until the SDK is loaded; None: the client is gone and expects no answer.

        Raises:
            BaseException: What `load` raised.
        """
        poll = select.poll()
        poll.register(self._source, select.POLLIN)
        is_open = True
        while is_open or self._answers.is_waiting:
            if self._loaded is None and (self._answers.is_waiting or self._answers.is_over):
                poll.register(self._begin_loading(), select.POLLIN)
            ready = dict(poll.poll(_IDLE_SECONDS * 1000 if self._loaded is None else None))
            if not ready:
                poll.register(self._begin_loading(), select.POLLIN)
            elif self._loaded in ready:
                return self._handover()
            elif not self._read():
                poll.unregister(self._source)
                is_open = False
        return None

    @property
    def is_loading(self) -> bool:
        """Whether the thread that loads the SDK was started."""
        return self._loaded is not None

    def _read(self) -> bool:
        """Read what is in the pipe; return False at end of file."""
        try:
            found = os.read(self._source, _READ_SIZE)
        except BlockingIOError:
            return True
        *lines, self._buffer = (self._buffer + found).split(b"\n")
        for line in lines:
            if (answer := self._answers.take(line + b"\n")) is not None:
                self._write(answer)
        if not found and self._buffer.strip():  # an unterminated last line
            self._answers.is_waiting = True
        return bool(found)

    def _write(self, answer: bytes) -> None:
        left = memoryview(answer)
        while left:
            try:
                left = left[os.write(self._sink, left) :]
            except BlockingIOError:
                writable = select.poll()
                writable.register(self._sink, select.POLLOUT)
                writable.poll()

    def _begin_loading(self) -> int:
        from threading import Thread

        self._loaded, done = os.pipe2(os.O_CLOEXEC)

        def load() -> None:
            try:
                self._load()
            except BaseException as error:  # raised again by `_handover`
                self._failure = error
            os.close(done)

        Thread(target=load, name="mcp-sdk").start()
        return self._loaded

    def _handover(self) -> Handover:
        assert self._loaded is not None
        os.close(self._loaded)
        if self._failure is not None:
            raise self._failure
        answers = self._answers
        return Handover(
            b"".join(answers.kept) + self._buffer, frozenset(answers.answered), frozenset(answers.acknowledged)
        )


def _encode_line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _parse_message(line: bytes) -> dict[str, Any] | None:
    """Parse a line as a plain request or notification; None if it is anything else."""
    if b"\\ud" in line.lower():
        return None  # possibly an unpaired surrogate: left to the SDK
    try:
        found = as_object(
            json.loads(line.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
        )
    except (ValueError, RecursionError):
        return None
    if found is None or found.get("jsonrpc") != "2.0" or not isinstance(found.get("method", ""), str):
        return None
    return found if _is_id(found.get("id", 0)) else None


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_ID


def _refuse_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _is_plain(params: Mapping[str, Any]) -> bool:
    """Return whether a request has no parameters; a progress token is allowed."""
    return not set(params) - {"_meta"} and _is_meta(params.get("_meta", {}))


def _is_meta(value: object) -> bool:
    meta = as_object(value)
    if meta is None or any(key.startswith(_RESERVED) for key in meta):
        return False
    return _is_id(meta.get("progressToken", ""))


def _is_enveloped(params: Mapping[str, Any], versions: list[str]) -> bool:
    """Return whether a request has no parameters but the client's identity, for a protocol version that is served."""
    meta = as_object(params.get("_meta"))
    return (
        meta is not None
        and not set(params) - {"_meta"}
        and meta.get(_VERSION) in versions
        and _is_implementation(meta.get(_CLIENT))
        and _is_capable(meta.get(_CAPABILITIES))
        and _is_meta({key: value for key, value in meta.items() if key not in (_VERSION, _CLIENT, _CAPABILITIES)})
    )


def _is_client(params: Mapping[str, Any]) -> bool:
    return (
        not set(params) - {"protocolVersion", "capabilities", "clientInfo", "_meta"}
        and isinstance(params.get("protocolVersion"), str)
        and _is_implementation(params.get("clientInfo"))
        and _is_capable(params.get("capabilities"))
        and _is_meta(params.get("_meta", {}))
    )


def _is_implementation(value: object) -> bool:
    """Return whether it is a name, a version, and optional descriptions."""
    found = as_object(value)
    if found is None or not {"name", "version"} <= set(found):
        return False
    known = {"name", "version", "title", "description", "websiteUrl"}
    return not set(found) - known and all(isinstance(each, str) for each in found.values())


def _is_capable(value: object) -> bool:
    """Return whether it has the shape of capabilities: objects of objects of objects; the one flag is a boolean."""
    found = as_object(value)
    if found is None:
        return False
    for name, each in found.items():
        capability = as_object(each)
        if capability is None:
            return False
        for key, inner in capability.items():
            if name == "roots" and key == "listChanged":
                if not isinstance(inner, bool):
                    return False
            elif not _is_capable(inner) if name == "tasks" else as_object(inner) is None:
                return False
    return True
