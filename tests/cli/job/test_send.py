"""`taskyard send`: typing into a job from any process."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import LONGEST, taskyard
from support.job_cli import ended, is_running, job, prints, started
from support.wait import until


@pytest.mark.req("B-07", "O-08")
@pytest.mark.parametrize("how", ["--stdin", "--pty"])
def test_a_text_is_sent_as_a_line(how: str) -> None:
    asks = started(how, "--", "read -r line; echo got $line")

    ran = taskyard("send", asks, "hello you", "--json")

    assert (ran.code, ran.data["id"], ran.data["sent"]) == (0, asks, 10)
    assert ended(asks)["status"] == "completed"
    assert "got hello you" in taskyard("logs", asks).out


@pytest.mark.req("O-08")
def test_standard_input_is_sent_as_it_is_whatever_its_size() -> None:
    data = bytes(range(256)) * 300
    copies = started("--stdin", "--", "cat")

    ran = subprocess.run(
        [sys.executable, "-m", "taskyard", "send", copies, "--eof"], input=data, capture_output=True, timeout=LONGEST
    )

    assert (ran.returncode, ran.stdout) == (0, f"{copies} got {len(data):,} bytes and the end.\n".encode())
    assert ended(copies)["status"] == "completed"
    logs = [sys.executable, "-m", "taskyard", "logs", copies, "--raw"]
    assert subprocess.run(logs, capture_output=True, timeout=LONGEST, check=True).stdout == data


def test_without_a_newline_the_text_is_all_that_is_sent() -> None:
    copies = started("--stdin", "--", "cat")

    assert taskyard("send", copies, "a", "-n").out == f"{copies} got 1 byte.\n"
    assert taskyard("send", copies, "b", "--no-newline", "--eof").code == 0
    ended(copies)

    assert taskyard("logs", copies).out == "ab"


def test_the_end_of_input_can_be_sent_alone() -> None:
    copies = started("--stdin", "--", "cat; echo over")
    until(lambda: is_running(copies))

    assert taskyard("send", copies, "--eof", stdin=b"").code == 0
    assert ended(copies)["exit_code"] == 0
    assert taskyard("logs", copies).out == "over\n"


@pytest.mark.req("O-08")
def test_a_key_reaches_a_job_with_a_terminal_of_its_own() -> None:
    traps = started("--pty", "--", "trap 'echo caught; exit 7' INT; echo up; sleep 60 & wait")
    prints(traps, "up")

    assert taskyard("send", traps, "-n", "\x03").code == 0
    assert ended(traps)["exit_code"] == 7


@pytest.mark.req("O-08")
def test_a_job_that_reads_from_nobody_is_not_typed_into() -> None:
    naps, over = started("--", "sleep", "60"), started("--stdin", "--", "true")
    ended(over)
    waits = started("--stdin", "--after", naps, "--", "cat")
    until(lambda: job(waits)["status"] == "pending")

    ran = taskyard("send", naps, "x", "--json")
    assert (ran.code, ran.error["code"]) == (5, "no_input")
    assert "--stdin or --pty" in ran.error["message"]
    assert taskyard("send", over, "x", "--json").error["code"] == "job_ended"
    assert taskyard("send", waits, "x", "--json").error["code"] == "job_not_begun"


@pytest.mark.req("O-08")
def test_a_job_that_closed_its_input_is_told_as_such() -> None:
    closed = started("--stdin", "--", "exec <&-; echo up; sleep 60")
    prints(closed, "up")

    ran = taskyard("send", closed, "x", "--json")

    assert (ran.code, ran.error["code"], ran.error["why"]) == (5, "no_input", "has closed its input")
    assert f"taskyard logs {closed}" in ran.error["message"]
    assert job(closed)["takes_input"] is False


def test_more_than_anyone_types_is_refused() -> None:
    copies = started("--stdin", "--", "cat")

    ran = taskyard("send", copies, "--json", stdin=b"x" * 1_000_001)

    assert (ran.code, ran.error["code"]) == (2, "bad_text")
    assert "1,000,000" in ran.error["message"]
    assert "Nothing was sent" in ran.error["message"]
    assert job(copies)["takes_input"] is True


@pytest.mark.req("O-08")
def test_as_much_as_may_be_sent_arrives_whole_at_a_command_that_takes_its_time() -> None:
    data = bytes(range(256)) * 3_900
    counts = started("--stdin", "--", "while head -c 65536 | sha256sum | grep -v ^e3b0c442; do sleep 0.01; done; cat")

    ran = subprocess.run(
        [sys.executable, "-m", "taskyard", "send", counts, "--eof"], input=data, capture_output=True, timeout=LONGEST
    )

    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ended(counts)["status"] == "completed"
    blocks = [data[at : at + 65536] for at in range(0, len(data), 65536)]
    sums = [line.split()[0] for line in taskyard("logs", counts, "--tail", "100").lines]
    assert sums == [hashlib.sha256(block).hexdigest() for block in blocks]


@pytest.mark.req("O-08")
def test_one_who_does_not_read_is_not_waited_for_and_has_what_its_pipe_holds() -> None:
    naps = started("--stdin", "--", "echo up; sleep 60")
    prints(naps, "up")

    ran = taskyard("send", naps, "--json", stdin=b"x" * 500_000)

    assert (ran.code, ran.error["why"]) == (5, "does not read what it is sent")


@pytest.mark.req("O-08", "O-02")
def test_where_no_pipe_leads_to_the_command_long_input_goes_by_way_of_its_keeper(tmp_path: Path) -> None:
    copies = started("--stdin", "--", "cat; exit 0")
    until(lambda: is_running(copies))
    place = Path(job(copies)["output"]).with_name("input")
    place.unlink()
    place.symlink_to(tmp_path / "elsewhere")

    assert taskyard("send", copies, "--eof", stdin=b"line\n" * 2_000).code == 0

    assert (ended(copies)["output_size"], (tmp_path / "elsewhere").exists()) == (10_000, False)


@pytest.mark.req("O-08")
def test_input_that_a_first_attempt_closed_is_open_for_the_next(tmp_path: Path) -> None:
    first = f"touch {tmp_path}/once; exec <&-; echo up; until [ -e {tmp_path}/go ]; do sleep 0.01; done; exit 1"
    script = f"[ -e {tmp_path}/once ] && exec cat; {first}"
    again = started("--stdin", "--retry", "1", "--retry-delay", "0", "--", script)
    prints(again, "up")
    assert taskyard("send", again, "lost").code == 5
    (tmp_path / "go").touch()
    until(lambda: job(again)["attempt"] == 2)
    until(lambda: is_running(again) and taskyard("send", again, "kept", "--eof").code == 0)

    assert ended(again)["status"] == "completed"
    assert taskyard("logs", again).out == "up\nkept\n"
