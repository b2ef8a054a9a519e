"""
What Ray answers, recorded from a real one and kept in `tests/jobs/remote/ray/answers.json`.

    PYTHONPATH=tests:src .venv/bin/python -m support.ray_answers      # record it anew: a minute

`tests/remote/ray/test_real.py` compares the record with the Ray that is installed.
"""

from __future__ import annotations

import json
import re
import time

import httpx

from support.ray_cluster import RAY, Cluster, cluster
from support.repo import TESTS
from taskyard.core.values import NamedTuple

FILE = TESTS / "jobs" / "remote" / "ray" / "answers.json"

_SLOW = "for i in $(seq 600); do echo tick $i; sleep 0.1; done"


class Recorded(NamedTuple):
    """One answer."""

    status: int
    type: str
    body: str


def recorded() -> dict[str, Recorded]:
    """Each answer, by the name of what was asked."""
    return {name: Recorded(**each) for name, each in json.loads(FILE.read_bytes()).items()}


def record() -> dict[str, Recorded]:
    """Ask a real Ray all of it."""
    answers: dict[str, Recorded] = {}
    with cluster(2) as ray, ray.client.entered(), httpx.Client(base_url=ray.url, timeout=30, trust_env=False) as client:
        _record_one_node(ray, client, answers)
        _record_a_death(ray, client, answers)
    with cluster(token="a-token-of-the-cluster") as ray, ray.client.entered():
        for name, headers in {"unauthorized": {}, "forbidden": {"authorization": "Bearer wrong"}}.items():
            asked = httpx.get(f"{ray.url}/api/version", headers=headers, timeout=30, trust_env=False)
            answers[name] = _recorded(asked)
    return answers


def _record_one_node(ray: Cluster, client: httpx.Client, answers: dict[str, Recorded]) -> None:
    def keep(name: str, method: str, path: str, **asked: object) -> httpx.Response:
        answer = client.request(method, path, **asked)  # type: ignore[arg-type]  # as httpx takes them
        answers[name] = _recorded(answer)
        return answer

    keep("version", "GET", "/api/version")
    keep("submitted", "POST", "/api/jobs/", json={"entrypoint": "echo hello", "submission_id": "good"})
    keep("exists", "POST", "/api/jobs/", json={"entrypoint": "echo hello", "submission_id": "good"})
    keep("bad metadata", "POST", "/api/jobs/", json={"entrypoint": "true", "metadata": {"n": 1}})
    keep("bad json", "POST", "/api/jobs/", content=b"{not json")
    _until(client, "good", "SUCCEEDED")
    node = keep("succeeded", "GET", "/api/jobs/good").json()["driver_node_id"]
    keep("log", "GET", "/api/v0/logs/file", params={"node_id": node, "filename": "job-driver-good.log", "lines": "-1"})
    keep("no file", "GET", "/api/v0/logs/file", params={"node_id": node, "filename": "job-driver-x.log", "lines": "-1"})
    keep("stopped too late", "POST", "/api/jobs/good/stop")
    client.post("/api/jobs/", json={"entrypoint": "exit 3", "submission_id": "bad"})
    _until(client, "bad", "FAILED")
    keep("failed", "GET", "/api/jobs/bad")
    wanted = {"entrypoint": "true", "submission_id": "waits", "entrypoint_num_cpus": 99}
    client.post("/api/jobs/", json=wanted)
    keep("pending", "GET", "/api/jobs/waits")
    client.post("/api/jobs/", json={"entrypoint": _SLOW, "submission_id": "slow"})
    _until(client, "slow", "RUNNING")
    keep("running", "GET", "/api/jobs/slow")
    keep("stop taken", "POST", "/api/jobs/slow/stop")
    _until(client, "slow", "STOPPED")
    keep("stopped", "GET", "/api/jobs/slow")
    keep("unknown", "GET", "/api/jobs/nobody")
    keep("stop of unknown", "POST", "/api/jobs/nobody/stop")
    keep("no route", "GET", "/api/nothing")
    keep("page", "GET", "/")


def _record_a_death(ray: Cluster, client: httpx.Client, answers: dict[str, Recorded]) -> None:
    there = {"entrypoint_resources": {f"node:{ray.nodes[1].address}": 0.01}}
    client.post("/api/jobs/", json={"entrypoint": _SLOW, "submission_id": "there", **there})
    _until(client, "there", "RUNNING")
    node = client.get("/api/jobs/there").json()["driver_node_id"]
    log = {"node_id": node, "filename": "job-driver-there.log", "lines": "-1"}
    nodes = {"filter_keys": "node_id", "filter_predicates": "=", "filter_values": node}
    answers["node alive"] = _recorded(client.get("/api/v0/nodes", params=nodes))
    ray.nodes[1].power_off()
    answers["node away"] = _recorded(client.get("/api/v0/logs/file", params=log))
    _until(client, "there", "FAILED")
    answers["died with its node"] = _recorded(client.get("/api/jobs/there"))
    answers["no agent"] = _recorded(client.get("/api/v0/logs/file", params=log))
    answers["node dead"] = _recorded(client.get("/api/v0/nodes", params=nodes))


def _recorded(answer: httpx.Response) -> Recorded:
    """An answer without what is particular to this machine."""
    body = re.sub(r"/tmp/ray-\w+", "/tmp/ray", answer.text.replace(str(RAY.parents[1]), "/opt/ray"))
    return Recorded(
        answer.status_code,
        answer.headers.get("content-type", ""),
        re.sub(r"/root/\.pyenv[^\s\"]*/lib", "/usr/lib", body),
    )


def _until(client: httpx.Client, job: str, status: str) -> None:
    deadline = time.monotonic() + 60
    while client.get(f"/api/jobs/{job}").json()["status"] != status:
        assert time.monotonic() < deadline, f"{job} is not {status}"
        time.sleep(0.1)


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: each._asdict() for name, each in record().items()}, indent=1) + "\n", "utf-8")
