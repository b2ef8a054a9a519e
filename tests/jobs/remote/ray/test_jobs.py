"""
Jobs of the kind `remote_agent` on a real Ray, by the command line, from a machine that loses power again and again.

A machine that is switched off takes with it the keeper and whoever follows the session, without a word.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.ray_cluster import Cluster, cluster
from support.wait import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

TOKEN = "a-token-of-the-cluster"
TICKS = "i=0; while [ $i -lt {} ]; do i=$((i+1)); echo tick $i; sleep {}; done"


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with cluster(token=TOKEN) as found:
        config = Path(os.environ["XDG_CONFIG_HOME"], "taskyard", "config.toml")
        config.parent.mkdir(parents=True)
        config.write_text(
            f'[remotes.cluster]\nbackend = "ray"\nurl = "{found.url}"\ntoken_env = "RAY_TOKEN"\n', "utf-8"
        )
        monkeypatch.setenv("RAY_TOKEN", TOKEN)
        yield found


def taskyard(ray: Cluster, *words: str, code: int | None = 0) -> Any:
    """What a command answers that is run on the machine beside the cluster."""
    done = ray.client.run([sys.executable, "-m", "taskyard", *words, "--json"], timeout=90)
    assert code is None or done.returncode == code, done
    body = json.loads(done.stdout)
    return body.get("data", body.get("error"))


def started(ray: Cluster, command: str) -> str:
    return str(taskyard(ray, "agent", "-d", "Go.", "--remote", "cluster", "--command", command)["id"])


def job(ray: Cluster, job_id: str) -> dict[str, Any]:
    (found,) = [row for row in taskyard(ray, "ps", "--all") if row["id"] == job_id]
    return dict(found)


def said(ray: Cluster, job_id: str) -> list[str]:
    return Path(job(ray, job_id)["output"]).read_text("utf-8").splitlines()


@pytest.mark.req("X-02", "K-03")
def test_a_machine_that_loses_power_goes_on_with_its_jobs_without_a_line_lost_or_doubled(ray: Cluster) -> None:
    job_id = started(ray, TICKS.format(600, 0.05))
    losses, lengths = 0, [0]
    while losses < 8:
        until(lambda: len(said(ray, job_id)) > lengths[-1], timeout=60, what="it is followed again")
        ray.client.power_off()
        losses += 1
        lengths.append(len(said(ray, job_id)))
    end = taskyard(ray, "wait", job_id, "--timeout", "80s")
    print(f"{losses} losses of power, at lines {lengths[1:]}")

    assert end["status"] == "completed", end
    assert said(ray, job_id) == [f"tick {number}" for number in range(1, 601)]


@pytest.mark.req("X-02", "B-09")
def test_a_stop_is_carried_out_on_the_cluster_and_confirmed(ray: Cluster) -> None:
    job_id = started(ray, "trap 'echo ending; exit 0' TERM; echo begun; while :; do sleep 0.1; done")
    until(lambda: "begun" in said(ray, job_id), timeout=60)
    began = time.monotonic()
    stopped = taskyard(ray, "stop", job_id)
    print(f"stopped in {time.monotonic() - began:.1f} s")

    assert stopped["outcome"] == "stopped"
    assert ray.ask(f"/api/jobs/{job_id}").json()["status"] == "STOPPED"
    lines = said(ray, job_id)  # a shell says that what it waited for was terminated, too
    assert (lines[0], lines[-1]) == ("begun", "ending")


@pytest.mark.req("X-02")
def test_a_head_that_is_restarted_ends_the_job_with_a_plain_word(ray: Cluster) -> None:
    job_id = started(ray, TICKS.format(6000, 0.05))
    until(lambda: len(said(ray, job_id)) > 20, timeout=60)
    ray.nodes[0].power_off()
    until(lambda: job(ray, job_id).get("disconnected"), timeout=60, what="it is shown as disconnected")
    ray.start_head()
    end = taskyard(ray, "wait", job_id, "--timeout", "80s", code=None)
    print(end["error"])

    assert end["status"] == "failed"
    assert "its head was restarted" in end["error"]
    assert said(ray, job_id)[:20] == [f"tick {number}" for number in range(1, 21)], "what was copied stays"


def test_a_check_tells_what_is_wrong(ray: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    (well,) = taskyard(ray, "remote", "check")
    monkeypatch.setenv("RAY_TOKEN", "wrong")
    (wrong,) = taskyard(ray, "remote", "check", code=1)
    ray.nodes[0].power_off()
    (away,) = taskyard(ray, "remote", "check", code=75)
    print(well, wrong, away, sep="\n")

    assert "Ray 2." in str(well)
    assert "rejects the token" in str(wrong) and "RAY_AUTH_MODE=token" in str(wrong)
    assert away["problem"] == "connection_refused"
