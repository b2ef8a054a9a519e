"""
Traces of calls, for those who collect them: only when asked for, and never what was said.

The SDK makes a span for each message with `opentelemetry-api`, which does nothing until somebody provides more. Here
that is an exporter over OTLP/HTTP, if `OTEL_EXPORTER_OTLP_ENDPOINT` or `TASKYARD_OTEL=1` is set. Its own settings
(`OTEL_…`) are the standard's. What leaves: method, tool, time, and the kind of error; no words of errors, which may
repeat an argument.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from taskyard.errors import MissingExtra

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_YES = ("1", "true", "yes", "on")


def is_wanted(env: Mapping[str, str] | None = None) -> bool:
    """Whether anybody asked for traces."""
    env = os.environ if env is None else env
    return any(env.get(name) for name in _ENDPOINTS) or env.get("TASKYARD_OTEL", "").lower() in _YES


def check() -> None:
    """Refuse to trace without the packages for it.

    Raises:
        MissingExtra: they are not installed.
    """
    if not is_wanted():
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
def started() -> Generator[None]:
    """Trace until the end of the block, if anybody asked for it.

    Raises:
        MissingExtra: the packages for it are not installed.
    """
    if not is_wanted():
        yield
        return
    try:
        from taskyard.mcp_server import traces
    except ModuleNotFoundError as error:
        raise MissingExtra("OpenTelemetry", "otel", error.name or "") from error
    with traces.exported():
        yield
