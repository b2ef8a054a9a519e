"""Export of spans to a collector, without error messages. Loaded only when traces are enabled."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Thread

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status

from taskyard import __version__

#: Most characters of a name: Taskyard's are shorter, others come from outside.
_LONGEST = 80

#: Seconds for the last spans to be sent when the server exits.
_SHUTDOWN_SECONDS = 3.0


class RedactingExporter(SpanExporter):
    """Passes spans on, without error messages."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export redacted spans."""
        return self._inner.export([_redact(span) for span in spans])

    def shutdown(self) -> None:
        """Shut down the inner exporter."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the inner exporter."""
        return self._inner.force_flush(timeout_millis)


def _redact(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        name=span.name[:_LONGEST],
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=span.attributes,
        links=span.links,
        kind=span.kind,
        instrumentation_scope=span.instrumentation_scope,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
    )


def provider_for(exporter: SpanExporter) -> TracerProvider:
    """Return a tracer provider that exports its spans."""
    resource = Resource.create({SERVICE_NAME: "taskyard", SERVICE_VERSION: __version__})
    provider = TracerProvider(
        resource=resource, span_limits=SpanLimits(max_attribute_length=_LONGEST), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(RedactingExporter(exporter)))
    return provider


@contextmanager
def export_spans() -> Generator[None]:
    """Export spans until the end of the block."""
    provider = provider_for(OTLPSpanExporter())
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        last = Thread(target=provider.shutdown, daemon=True)  # a collector that does not answer must not delay the exit
        last.start()
        last.join(_SHUTDOWN_SECONDS)
