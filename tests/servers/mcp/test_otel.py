"""Traces: to a collector that was named, of what was called and how it went, and never of what was said."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from support.mcp_http import HttpServer, together
from support.mcp_server import Model, over_stdio
from support.otlp import collecting
from support.python import run_python
from taskyard.core.installation import extra_install_command
from taskyard.servers.mcp.traces import provider_for

SECRET = "what-only-the-model-may-know"


async def speak(model: Model) -> None:
    await model.call("TaskCreate", subject=SECRET, description=SECRET)
    await model.refused("TaskUpdate", taskId="7", subject=SECRET)
    await model.refused("TaskUpdate", taskId="1", status=SECRET)
    await model.refused("Bash", command=f"echo {SECRET}; exit 3")


@pytest.mark.req("T-05")
def test_calls_over_http_are_traced_without_what_was_said() -> None:
    with collecting() as collector:
        with HttpServer(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as server:
            server.talk(speak)
            assert server.stop() == 0  # what is on its way leaves before the end
        assert collector.services == {"taskyard"}
        assert {"tools/call TaskCreate", "tools/call TaskUpdate", "tools/call Bash"} <= set(collector.names)
        assert all(SECRET.encode() not in data for data in collector.raw)
        errors = [span.status.code for span in collector.spans if span.name == "tools/call Bash"]
        assert errors == [2]


@pytest.mark.req("T-05")
def test_calls_over_stdio_are_traced_without_what_was_said() -> None:
    async def body() -> None:
        async with over_stdio(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) as model:
            await speak(model)

    with collecting() as collector:
        together(body)
        assert "tools/call TaskCreate" in collector.names
        assert all(SECRET.encode() not in data for data in collector.raw)


@pytest.mark.req("T-05")
def test_the_words_of_errors_stay_here_as_they_may_repeat_an_argument() -> None:
    kept = InMemorySpanExporter()
    provider = provider_for(kept)
    with provider.get_tracer("t").start_as_current_span(f"tools/call {'x' * 500}") as span:
        span.record_exception(ValueError(SECRET))
        span.set_status(StatusCode.ERROR, SECRET)
        span.set_attribute("gen_ai.tool.name", "y" * 500)
    provider.shutdown()
    (found,) = kept.get_finished_spans()
    assert SECRET not in found.to_json()
    assert (found.status.status_code, found.status.description) == (StatusCode.ERROR, None)
    assert len(found.name) < 100
    assert len(str((found.attributes or {})["gen_ai.tool.name"])) < 100
    assert found.resource.attributes["service.name"] == "taskyard"


@pytest.mark.req("T-05")
def test_a_collector_that_is_gone_neither_disturbs_nor_keeps_it() -> None:
    with collecting() as collector:
        url = collector.url
    with HttpServer(OTEL_EXPORTER_OTLP_ENDPOINT=url) as server:
        server.talk(speak)
        assert server.stop() == 0


@pytest.mark.req("T-05")
def test_nothing_of_it_is_loaded_unless_it_is_wanted() -> None:
    loaded = run_python("""
        import sys
        from taskyard.servers.mcp import telemetry
        from taskyard.servers.mcp import http as serving
        with telemetry.export_traces():
            print([name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))])
    """)
    assert loaded.strip() == "[]"


@pytest.mark.req("T-05")
@pytest.mark.parametrize("how", [(), ("--http", "0")])
def test_where_it_is_not_installed_that_is_said(how: tuple[str, ...]) -> None:
    code = """
        import sys
        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter")):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.meta_path.insert(0, Missing())
        from taskyard.cli.main import main
        sys.exit(main(["mcp", *sys.argv[1:]]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *how],
        env={**os.environ, "TASKYARD_OTEL": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert extra_install_command("otel") in done.stderr
