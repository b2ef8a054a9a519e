"""The command line on one machine, about jobs on another."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from support.hosts import Machine, Machines
from support.postgres import Server
from support.wait import until
from taskyard.jobs.kinds.shell import Shell

pytestmark = pytest.mark.req("X-01", "B-07")


def test_ps_names_the_machine_of_each_job_where_there_are_several(forge: Machine, desk: Machine) -> None:
    far = forge.jobs().start(Shell("sleep 60", name="a far one"))
    until(lambda: [job["host"] for job in desk.run("ps", "--json").data] == ["forge"])
    assert "forge" not in forge.run("ps").out, "nobody need be told of their own"
    assert " forge " in desk.run("ps").out

    near = desk.jobs().start(Shell("sleep 60", name="a near one"))

    rows = {line.split()[1]: line.split()[2] for line in desk.run("ps").lines}
    assert rows == {far.id: "forge", near.id: "desk"}
    assert desk.run("ps", "--host", "forge", "-q").lines == [far.id]
    shown = {job["id"]: (job["host"], job["disconnected"]) for job in desk.run("ps", "--json").data}
    assert shown == {far.id: ("forge", False), near.id: ("desk", False)}


def test_where_the_database_is_away_ps_soon_shows_what_runs_here_and_says_so(machines: Machines) -> None:
    alone = machines("alone", store="postgresql://postgres@/yard?host=/nowhere/at/all")
    job_id = alone.run("run", "-d", "--", "sleep", "60").out.strip()
    began = time.monotonic()

    shown = alone.run("ps")

    assert time.monotonic() - began < alone.settings.database_patience / 2
    assert job_id in shown.out
    assert "cannot be reached" in shown.err and "taskyard db status" in shown.err
    found = json.loads(alone.run("ps", "--json").out)
    assert [job["id"] for job in found["data"]] == [job_id]
    assert "cannot be reached" in str(found["warnings"])
    assert alone.run("stop", job_id).code == 0


def test_where_the_database_refuses_ps_shows_what_runs_here_and_why(machines: Machines, postgres: Server) -> None:
    alone = machines("alone", store=postgres.address("nowhere"))
    job_id = alone.run("run", "-d", "--", "sleep", "60").out.strip()

    shown = alone.run("ps")

    assert job_id in shown.out
    assert '"nowhere" does not exist' in shown.err and "createdb" in shown.err
    assert alone.run("stop", job_id).code == 0


def test_what_a_job_elsewhere_prints_is_read_and_followed_to_its_end(forge: Machine, desk: Machine) -> None:
    jobs = forge.jobs()
    job = jobs.start(Shell("echo one; echo two; read x; echo three $x; exit 4", stdin=True))
    until(lambda: desk.run("logs", job.id).out == "one\ntwo\n")
    assert desk.run("logs", job.id, "--tail", "1").out == "two\n"
    assert desk.run("logs", job.id, "--from", "4", "--grep", "w").out == "two\n"
    follower = subprocess.Popen(
        [sys.executable, "-m", "taskyard", "logs", "-f", "--json", job.id], stdout=subprocess.PIPE, text=True
    )
    assert follower.stdout is not None
    first = json.loads(follower.stdout.readline())["data"]
    assert (first["text"], first["next_offset"]) == ("one\ntwo\n", 8)

    assert desk.run("send", job.id, "x").code == 0

    rest, _ = follower.communicate(timeout=20)
    answers = [json.loads(line)["data"] for line in rest.splitlines()]
    assert "".join(answer["text"] for answer in answers) == "three x\n"
    assert (answers[-1]["ended"]["exit_code"], answers[-1]["ended"]["host"]) == (4, "forge")
    whole = desk.run("logs", job.id, "--json").data
    assert (whole["text"], whole["ended"]["exit_code"]) == ("one\ntwo\nthree x\n", 4)


def test_an_output_larger_than_one_answer_is_read_whole(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().run(Shell("yes 123456789 | head -c 700000"), timeout=20)
    until(lambda: desk.run("ps", "--all", "-q").lines == [job.id])

    assert desk.run("logs", job.id).out == forge.run("logs", job.id).out
    assert len(desk.run("logs", job.id).out) == 700_000


def test_a_job_elsewhere_is_steered_by_the_same_words(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("sleep 60"))
    until(lambda: desk.run("ps", "-q").lines == [job.id])

    assert "is paused" in desk.run("pause", job.id).out
    assert "was already paused" in desk.run("pause", job.id).out
    assert "is resumed" in desk.run("resume", job.id).out
    assert desk.run("wait", job.id, "--timeout", "0.05").code == 124
    assert desk.run("send", job.id, "y", "--json").error["code"] == "no_input"
    stopped = desk.run("stop", "--all", "--grace", "0", "--json").data
    assert [(one["id"], one["outcome"], one["host"]) for one in stopped] == [(job.id, "stopped", "forge")]
    assert desk.run("wait", job.id).code == 128 + signal.SIGTERM


def test_of_a_machine_that_is_away_the_error_says_which_and_what_to_do(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().start(Shell("sleep 60"))
    until(lambda: desk.run("ps", "-q").lines == [job.id])
    forge.kill_relay()
    forge.database.ask("UPDATE host SET until = now(), heard = now() - interval '95 seconds'")

    assert "disconnected" in desk.run("ps").out
    refused = desk.run("stop", job.id)
    assert refused.code == 75
    assert "'forge', which has not responded for 95 s. Nothing was done." in refused.err
    assert "`taskyard relay` over there" in refused.err
    assert desk.run("logs", job.id, "--json").error["code"] == "host_away"
    own = desk.jobs().start(Shell("sleep 60"))
    both = desk.run("stop", "--all", "--grace", "0")
    assert (both.code, "not stopped: forge does not respond" in both.out) == (1, True)
    assert desk.jobs().get(own.id).is_final, "one that is away keeps nobody else from being stopped"


def test_notices_are_taken_acknowledged_and_verified_from_another_machine(forge: Machine, desk: Machine) -> None:
    forge.jobs("ada").run(Shell("sleep 0.01"), timeout=20)
    job = forge.jobs("ada").start(Shell("echo hello"))
    taken = desk.run("notices", "take", "--by", "ada", "--wait", "10s", "--json")
    (notice,) = taken.data
    assert (notice["task_id"], notice["recipient"]) == (job.id, "ada")

    assert desk.run("notices", "verify", stdin=taken.out.encode()).code == 0
    changed = taken.out.replace("completed", "failed")
    assert desk.run("notices", "verify", "--json", stdin=changed.encode()).error["code"] == "not_genuine"
    assert desk.run("notices", "ack", notice["id"], "--json").data[0]["state"] == "acknowledged"
    assert desk.run("notices", "ack", notice["id"], "--json").data[0]["state"] == "already_acknowledged"


@pytest.mark.req("N-07")
def test_a_notice_that_nobody_can_vouch_for_is_not_called_genuine(forge: Machine, desk: Machine) -> None:
    forge.jobs("ada").start(Shell("echo hello"))
    taken = desk.run("notices", "take", "--by", "ada", "--wait", "10s", "--json").out.encode()
    forged = "UPDATE notice SET body = replace(body, 'completed', 'failed')"
    assert forge.run("notices", "verify", stdin=taken).code == 0

    forge.kill_relay()
    forge.database.ask("UPDATE host SET until = now()")
    assert desk.run("notices", "verify", "--json", stdin=taken).error["code"] == "host_away"
    assert forge.run("notices", "verify", stdin=taken).code == 0, "its own machine has the key"

    forge.database.ask(forged)
    changed = taken.replace(b"completed", b"failed")
    assert forge.run("notices", "verify", "--json", stdin=changed).error["code"] == "not_genuine"
    forge.jobs().ensure_relay()
    until(lambda: forge.database.ask("SELECT until > now() FROM host WHERE name = 'forge'") == [(True,)])
    assert desk.run("notices", "verify", "--json", stdin=changed).error["code"] == "not_genuine"


def test_events_are_told_by_id_from_another_machine(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().run(Shell("true"), timeout=20)
    until(lambda: len(desk.run("events", "--json").data) == 2)

    assert [event["subtype"] for event in desk.run("events", "--json").data] == ["task_started", "task_notification"]
    assert [event["id"] for event in desk.run("events", "--since", "1", "--job", job.id, "--json").data] == [2]
    assert desk.run("events", "--since", "7", "--json").error["code"] == "events_gone"


def test_a_hold_is_put_on_and_released_for_all_machines(forge: Machine, desk: Machine) -> None:
    assert desk.run("stop", "--all", "--hold").code == 0
    assert "on hold" in forge.run("notices").err
    assert forge.run("release", "--json").data == {"released": True}
    assert "on hold" not in desk.run("notices", "take", "--force").err
    assert desk.run("release", "--json").data == {"released": True}, "its own"


def test_a_relay_can_be_kept_as_a_service(forge: Machine, desk: Machine) -> None:
    job = forge.jobs().run(Shell("echo hello"), timeout=20)
    forge.kill_relay()
    forge.run("ps")
    service = subprocess.Popen([sys.executable, "-m", "taskyard", "relay"], stdout=subprocess.DEVNULL)
    try:
        until(lambda: desk.run("logs", job.id).out == "hello\n", timeout=20)
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(20) == 0
    assert desk.run("logs", job.id).code == 75


def test_without_a_database_there_is_nobody_to_relay_for(monkeypatch: pytest.MonkeyPatch, forge: Machine) -> None:
    forge.run("ps")
    monkeypatch.setenv("TASKYARD_STORE", "files")

    done = subprocess.run(
        [sys.executable, "-m", "taskyard", "relay"], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, "No database is configured" in done.stderr) == (2, True)
