"""What a keeper sees to while its job runs: the cap on its output, silence, its own small size."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import time
from pathlib import Path

import pytest

from support.jobs import marked
from support.wait import until
from taskyard.config import Settings
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus
from taskyard.jobs.start import check_reply, read_reply
from taskyard.jobs.supervisor.output_cap import looks_like_question

CAP = 16_000_000

#: Prints without end, some 200 MB a second: fast, but no test of how soon a machine wakes a keeper. That one is
#: in tests/chaos/test_fast_writers.py.
STEADY = "while :; do yes 0123456789abcde | head -c 1000000; sleep 0.005; done"


def on_disk(path: str) -> int:
    return os.stat(path).st_blocks * 512


@pytest.mark.req("O-04")
@pytest.mark.serial  # how fast a keeper is woken is the point of it
def test_output_stays_below_its_cap_while_the_job_goes_on_and_the_newest_is_kept(jobs: Jobs) -> None:
    job = jobs.start(Shell(f"{STEADY.replace(':;', '((n++ < 60));')}; echo the end", output_cap=CAP))
    most = 0
    while not (now := jobs.wait(job.id, timeout=0.002)).is_final:
        most = max(most, on_disk(job.output_file))

    end = now.end
    assert end is not None
    assert (end.cause, end.exit_code, end.size) == ("exited", 0, 60_000_008)
    assert most < CAP
    text = Path(job.output_file).read_bytes()
    assert text[end.head :].startswith(f"[{end.base - end.head:,} bytes were left out here".encode())
    assert text.endswith(b"0123456789abcde\nthe end\n")
    assert CAP // 2 <= len(text) - end.head - end.header == end.size - end.base < CAP


@pytest.mark.req("O-04", "B-07")
@pytest.mark.serial  # how fast a keeper is woken is the point of it
def test_the_cap_holds_while_the_starter_is_dead(jobs: Jobs) -> None:
    child = os.fork()
    if child == 0:
        other = Jobs(jobs.home)
        job_id = other.start(Shell(STEADY, output_cap=CAP)).id
        Path(jobs.home, "started").write_text(job_id, encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    job = jobs.get(Path(jobs.home, "started").read_text(encoding="utf-8"))
    sizes: list[int] = []

    def has_printed_its_cap_three_times() -> bool:
        sizes.append(on_disk(job.output_file))
        return os.path.getsize(job.output_file) > 3 * CAP

    until(has_printed_its_cap_three_times, timeout=30)
    assert max(sizes) < CAP
    assert jobs.stop(job.id)[0].outcome == "stopped"


@pytest.mark.req("O-01", "O-02")
def test_everything_of_a_job_is_private(jobs: Jobs) -> None:
    job = jobs.run(Shell("umask; echo x"), timeout=10)
    folder = JobPaths(jobs.home, job.id)

    assert os.stat(folder.path).st_mode & 0o777 == 0o700
    assert {oct(os.lstat(f"{folder.path}/{name}").st_mode & 0o777) for name in os.listdir(folder.path)} == {"0o600"}
    assert Path(job.output_file).read_text(encoding="utf-8").split()[0] == "0022"


@pytest.mark.req("B-08")
@pytest.mark.parametrize("alone", [False, True])
def test_a_command_ignores_and_blocks_no_signal_whatever_its_starter_does(jobs: Jobs, alone: bool) -> None:
    one = Jobs(jobs.home, alone=alone)
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        job = one.run(Shell(["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"]), timeout=10)
    finally:
        signal.signal(signal.SIGUSR1, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
        one.close()

    libc = 0b11 << 31  # two that posix_spawn itself has ignored: libc's own
    assert [int(line.split()[1], 16) & ~libc for line in Path(job.output_file).read_text("utf-8").splitlines()] == [
        0,
        0,
    ]


@pytest.mark.req("B-07")
@pytest.mark.parametrize("alone", [False, True])
def test_nothing_that_its_starter_has_open_is_held_by_a_job_or_its_keeper(
    jobs: Jobs, alone: bool, tmp_path: Path
) -> None:
    one = Jobs(jobs.home, alone=alone)
    mine = os.open(tmp_path / "mine", os.O_RDWR | os.O_CREAT)
    high = fcntl.fcntl(mine, fcntl.F_DUPFD, 200)
    os.set_inheritable(mine, True)
    fcntl.flock(mine, fcntl.LOCK_EX)
    try:
        job = one.start(Shell("ls -l /proc/self/fd; exec sleep 30"))
    finally:
        os.close(mine)
        os.close(high)

    with open(tmp_path / "mine", encoding="utf-8") as again:
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while anybody else has it open
    until(lambda: "2 -> " in Path(job.output_file).read_text("utf-8"))
    assert "mine" not in Path(job.output_file).read_text("utf-8")
    one.close()


@pytest.mark.req("O-08", "N-04")
def test_a_question_that_nobody_answers_is_told_once_and_can_be_answered(jobs: Jobs) -> None:
    quick = Jobs(jobs.home, settings=Settings(stall_after=0.2))
    job = quick.start(Shell('printf "Overwrite? [y/n] "; read -r x; echo "got $x"', stdin=True))

    until(lambda: jobs.get(job.id).needs_input)
    waiting = os.listdir(f"{jobs.home}/outbox/me/new")
    told = json.loads(Path(jobs.home, "outbox/me/new", waiting[0]).read_text(encoding="utf-8"))["news"]
    assert "status" not in told and told["tail"] == "Overwrite? [y/n] "
    assert f"taskyard send {job.id}" in told["hint"]
    time.sleep(0.5)
    assert os.listdir(f"{jobs.home}/outbox/me/new") == waiting

    assert jobs.send(job.id, "y\n")
    assert jobs.wait(job.id, timeout=10).status is JobStatus.COMPLETED
    quick.close()


@pytest.mark.req("O-08")
@pytest.mark.parametrize(
    ("tail", "asks"),
    [
        ("Proceed (y/N)", True),
        ("Continue?", True),
        ("Press ENTER to go on", True),
        ("Are you sure you want to delete it?  \n", True),
        ("Would you like fries?\nThat was a joke.", False),
        ("compiling 3 of 10", False),
        ("", False),
        ("Do you mind? no" + "x" * 2000, False),
    ],
)
def test_what_reads_like_a_question(tail: str, asks: bool) -> None:
    assert looks_like_question(tail) is asks


@pytest.mark.req("B-12")
def test_who_finds_no_slot_waits_says_so_and_can_be_stopped_without_running(jobs: Jobs, tmp_path: Path) -> None:
    narrow = Jobs(jobs.home, settings=Settings(shell_limit=1))
    first = narrow.start(Shell("sleep 60"))
    until(lambda: jobs.get(first.id).status is JobStatus.RUNNING)  # the slot is its own
    second = narrow.start(Shell(f"touch {tmp_path}/ran"))
    third = narrow.start(Shell("true"))
    until(lambda: jobs.get(third.id).status is JobStatus.PENDING)
    until(lambda: "at most" in jobs.get(second.id).waits_for)

    assert jobs.get(second.id).status is JobStatus.PENDING
    assert jobs.stop(second.id)[0].outcome == "stopped"
    jobs.stop(first.id)

    assert jobs.wait(third.id, timeout=10).status is JobStatus.COMPLETED
    assert not (tmp_path / "ran").exists()
    narrow.close()


@pytest.mark.req("B-12")
def test_never_do_more_run_at_once_than_there_are_slots_and_each_gets_its_turn(jobs: Jobs, tmp_path: Path) -> None:
    narrow = Jobs(jobs.home, settings=Settings(job_limit=3))
    log = tmp_path / "log"
    requests = [narrow.request(Shell(f"echo 1 >> {log}; sleep 0.1; echo -1 >> {log}")) for _ in range(9)]
    for answer in [narrow.ask(request) for request in requests]:
        check_reply(read_reply(answer))
    ended = narrow.wait_all([str(request["id"]) for request in requests], timeout=30)
    narrow.close()

    running = list(itertools.accumulate(int(line) for line in log.read_text(encoding="utf-8").split()))
    assert all(job.status is JobStatus.COMPLETED for job in ended)
    assert (max(running), running[-1]) == (3, 0)


@pytest.mark.req("B-12")
def test_a_job_can_wait_for_another_and_be_tried_again(jobs: Jobs, tmp_path: Path) -> None:
    first = jobs.start(Shell(f"sleep 0.2; echo first >> {tmp_path}/log"))
    again = f"echo try >> {tmp_path}/log; test $(wc -l < {tmp_path}/log) -ge 3"
    second = jobs.start(Shell(again, retries=3), after=[first.id])

    ended = jobs.wait(second.id, timeout=10)

    assert (ended.status, ended.attempt) == (JobStatus.COMPLETED, 2)
    assert (tmp_path / "log").read_text(encoding="utf-8").split() == ["first", "try", "try"]


@pytest.mark.req("B-08")
def test_the_server_of_keepers_may_be_killed_and_the_jobs_go_on(jobs: Jobs) -> None:
    first = jobs.start(Shell("sleep 60"))
    keeper = supervisor_pid(JobPaths(jobs.home, first.id))
    assert keeper
    server = int(Path(f"/proc/{keeper}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
    assert "serve" in Path(f"/proc/{server}/cmdline").read_text(encoding="utf-8")
    os.kill(server, signal.SIGKILL)

    second = jobs.start(Shell("sleep 9376.5"))

    assert {job.id for job in jobs.list()} == {first.id, second.id}
    assert [each.outcome for each in jobs.stop(first.id, second.id)] == ["stopped", "stopped"]
    assert marked("9376.5") == []
