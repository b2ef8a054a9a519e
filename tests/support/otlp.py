"""A collector of traces on loopback, as OTLP over HTTP has it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans


class Collector:
    """What arrived."""

    def __init__(self) -> None:
        self.url = ""
        self.raw: list[bytes] = []
        self.batches: list[ResourceSpans] = []

    @property
    def spans(self) -> list[Any]:
        return [span for batch in self.batches for scope in batch.scope_spans for span in scope.spans]

    @property
    def names(self) -> list[str]:
        return [str(span.name) for span in self.spans]

    @property
    def services(self) -> set[str]:
        found = (item for batch in self.batches for item in batch.resource.attributes)
        return {item.value.string_value for item in found if item.key == "service.name"}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector, for the length of a `with` block."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
            collector.raw.append(data)
            collector.batches += ExportTraceServiceRequest.FromString(data).resource_spans
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
