"""A provider of models on this machine: speaks OpenAI's chat completions, and answers from a list."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """One answer: a status with a body, or a stream of events."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: str = ""
    events: Sequence[str] = ()
    is_cut: bool = False  #: the connection breaks after the last event


def chunk(delta: Mapping[str, object], finish: str | None = None, usage: Mapping[str, int] | None = None) -> str:
    """One event of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    made: dict[str, object] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    made["choices"] = [] if usage else [choice]
    return json.dumps({**made, **({"usage": usage} if usage else {})})


def says(*pieces: str, finish: str | None = "stop") -> Reply:
    """A text, piece by piece."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
    ended = [chunk({}, finish), chunk({}, usage=usage)] if finish else []
    return Reply(events=[*(chunk({"role": "assistant", "content": piece}) for piece in pieces), *ended])


def calls(name: str, **given: object) -> Reply:
    """The use of a tool."""
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    return Reply(events=[chunk({"role": "assistant", "tool_calls": [call]}), chunk({}, "tool_calls")])


def refuses(status: int, message: str = "no", **headers: str) -> Reply:
    """An error, as OpenAI words it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, json.dumps({"error": {"message": message, "type": "x", "code": None}}))


class Provider:
    """What was asked, and what is answered next; the last answer again and again."""

    def __init__(self, url: str, replies: Sequence[Reply]) -> None:
        self.url = url
        self.replies = list(replies)
        self.requests: list[Any] = []

    def next(self, body: bytes) -> Reply:
        self.requests.append(json.loads(body))
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def provider(*replies: Reply) -> Iterator[Provider]:
    """A provider for the length of a `with` block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            reply = found.next(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if not reply.events:
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply.body.encode())))
                self.end_headers()
                self.wfile.write(reply.body.encode())
                return
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in [*reply.events, *([] if reply.is_cut else ["[DONE]"])]:
                data = f"data: {event}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            if not reply.is_cut:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Provider(f"http://127.0.0.1:{server.server_port}/v1", replies)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield found
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
