"""Metrics of the web server, in Prometheus' text format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Upper bounds in seconds: instant, noticeable, too slow.
BUCKETS = (0.005, 0.025, 0.1, 0.5, 2.5)

_PREFIX = "taskyard_"


class MetricFamily(NamedTuple):
    """The samples of one metric name."""

    name: str
    type: str  #: gauge, counter or histogram
    help: str
    samples: Iterable[tuple[str, Mapping[str, str], float]]  #: name suffix, labels, value


class Metrics:
    """Counters of one server; used in the event loop only."""

    def __init__(self) -> None:
        self.streams = 0  #: open now
        self.whole = 0  #: whole snapshots sent to clients that were new or too far behind
        self._started = time.time()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._times: dict[str, list[float]] = {}

    def note(self, route: str, status: int, seconds: float | None) -> None:
        """Count an answered request; `seconds`: its duration, None for a stream. Routes are those of the table: few."""
        self._requests[route, str(status)] += 1
        if seconds is None:
            return
        times = self._times.setdefault(route, [0.0] * (len(BUCKETS) + 2))
        for index, bound in enumerate(BUCKETS):
            times[index] += seconds <= bound
        times[-2] += 1
        times[-1] += seconds

    def families(self) -> Iterator[MetricFamily]:
        """Yield all metrics."""
        yield MetricFamily("up_since_seconds", "gauge", "When this server was started.", [("", {}, self._started)])
        yield MetricFamily("web_streams", "gauge", "Streams that are open.", [("", {}, self.streams)])
        yield MetricFamily(
            "web_snapshots_total", "counter", "Whole snapshots sent to listeners.", [("", {}, self.whole)]
        )
        requests = [("", {"route": route, "status": code}, n) for (route, code), n in sorted(self._requests.items())]
        yield MetricFamily("web_requests_total", "counter", "Requests that were answered.", requests)
        yield MetricFamily(
            "web_request_seconds", "histogram", "How long answers took, but for streams.", self._histograms()
        )

    def _histograms(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for route, times in sorted(self._times.items()):
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), times):
                yield "_bucket", {"route": route, "le": bound}, count
            yield "_sum", {"route": route}, times[-1]
            yield "_count", {"route": route}, times[-2]


def render_metrics(families: Iterable[MetricFamily]) -> str:
    """Render metrics in Prometheus' text format."""
    return "".join(line + "\n" for family in families for line in _lines(family))


def _lines(family: MetricFamily) -> Iterator[str]:
    name = _PREFIX + family.name
    yield f"# HELP {name} {family.help}"
    yield f"# TYPE {name} {family.type}"
    for suffix, labels, number in family.samples:
        inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
        yield f"{name}{suffix}{{{inside}}} {_number(number)}" if inside else f"{name}{suffix} {_number(number)}"


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(float(number))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
