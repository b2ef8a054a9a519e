"""OpenTelemetry traces of calls: only when enabled, and without contents.

The SDK creates a span for each message with `opentelemetry-api`, which does nothing without a provider. This adds an
exporter over OTLP/HTTP if `OTEL_EXPORTER_OTLP_ENDPOINT` or `TASKYARD_OTEL=1` is set; its other settings (`OTEL_…`) are
standard. Exported: method, tool, time and the kind of error; no error messages, which may repeat an argument.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from taskyard.errors import MissingExtra

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_YES = ("1", "true", "yes", "on")


def is_enabled(env: Mapping[str, str] | None = None) -> bool:
    """Return whether traces are enabled."""
    env = os.environ if env is None else env
    return any(env.get(name) for name in _ENDPOINTS) or env.get("TASKYARD_OTEL", "").lower() in _YES


def check_installed() -> None:
    """Check that the packages for traces are installed, if traces are enabled.

    Raises:
        MissingExtra: They are not installed.
    """
    if not is_enabled():
        return
    from importlib.util import find_spec

    for name in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise MissingExtra("OpenTelemetry", "otel", name)


@contextmanager
def export_traces() -> Generator[None]:
    """Export traces until the end of the block, if enabled.

    Raises:
        MissingExtra: The packages for it are not installed.
    """
    if not is_enabled():
        yield
        return
    try:
        from taskyard.servers.mcp import traces
    except ModuleNotFoundError as error:
        raise MissingExtra("OpenTelemetry", "otel", error.name or "") from error
    with traces.export_spans():
        yield
