"""What the stream is told of jobs: each beginning and each end once, whatever happens to the keeper or the disk."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from support.disks import mounted
from support.ended_jobs import finish, finish_halfway, job_folder
from support.event_streams import all_events, segments, told_of
from support.jobs import kill_keeper
from support.wait import until
from taskyard.config import Settings
from taskyard.jobs import event_log, query
from taskyard.jobs.events import Event, Events
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import End, JobStatus
from taskyard.jobs.notices import Outbox

pytestmark = pytest.mark.req("N-06")

BEGUN_AND_ENDED = ["task_started", "task_notification"]

#: What claude-agent-sdk's parser reads without asking whether it is there (`message_parser.parse_message`).
DEMANDED = {
    "task_started": {"task_id", "description", "uuid", "session_id"},
    "task_progress": {"task_id", "description", "usage", "uuid", "session_id"},
    "task_notification": {"task_id", "status", "output_file", "summary", "uuid", "session_id"},
}


def check(events: list[Event]) -> None:
    """Every message is one that claude-agent-sdk's parser takes."""
    for event in events:
        assert event.data["type"] == "system"
        assert DEMANDED[event.subtype] <= {name for name, value in event.data.items() if value is not None}


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 0", "completed"), ("exit 3", "failed"), ("kill -9 $$", "failed"), ("sleep 60", "stopped")],
)
def test_a_beginning_and_an_end_are_told_in_the_words_of_the_sdk(jobs: Jobs, command: str, status: str) -> None:
    job = jobs.start(Shell(command, name="Work", tool_use_id="toolu_1"))
    assert told_of(jobs.home, job.id)[0] == "task_started"  # it may be over by now
    if status == "stopped":
        jobs.stop(job.id, grace=0.1)
    jobs.wait(job.id, timeout=20)

    started, ended = events = all_events(jobs.home)
    check(events)
    (notice,) = Outbox(jobs.home).take()
    assert (started.subtype, started.task_id, started.data["task_type"]) == ("task_started", job.id, "local_bash")
    assert (ended.subtype, ended.task_id, ended.data["status"]) == ("task_notification", job.id, status)
    assert ended.data["output_file"] == job.output_file
    assert (ended.data["uuid"], ended.data["summary"]) == (notice.id, notice.summary)
    assert started.data["tool_use_id"] == ended.data["tool_use_id"] == "toolu_1"
    assert started.data["session_id"] == ended.data["session_id"] == "me"
    assert job.start_time - 1000 <= started.at <= ended.at


def test_a_job_that_is_watched_and_so_sends_no_notice_is_told_of_as_well(jobs: Jobs) -> None:
    jobs.run(Shell("exit 3", name="Watched"), timeout=20)

    events = all_events(jobs.home)
    check(events)
    assert [event.subtype for event in events] == BEGUN_AND_ENDED
    assert events[1].data["summary"] == 'Background command "Watched" failed with exit code 3'
    assert Outbox(jobs.home).take() == []


def test_a_job_that_is_tried_again_paused_and_resumed_begins_once(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 0.2; exit 1", retries=2))
    jobs.pause(job.id)
    jobs.resume(job.id)
    jobs.wait(job.id, timeout=20)

    assert jobs.get(job.id).attempt == 3
    assert told_of(jobs.home, job.id) == BEGUN_AND_ENDED


def test_a_job_that_is_stopped_before_its_turn_is_told_of(jobs: Jobs) -> None:
    first = jobs.start(Shell("sleep 60"))
    second = jobs.start(Shell("true"), after=[first.id])
    until(lambda: jobs.get(second.id).status is JobStatus.PENDING)
    jobs.stop(second.id)

    assert told_of(jobs.home, second.id) == BEGUN_AND_ENDED


@pytest.mark.req("N-06", "O-08")
def test_a_job_that_waits_for_an_answer_says_so_as_progress(jobs: Jobs) -> None:
    quick = Jobs(jobs.home, settings=Settings(stall_after=0.1))
    job = quick.start(Shell("echo 'Overwrite? (y/n)'; sleep 60", name="Ask"))
    until(lambda: len(told_of(jobs.home, job.id)) == 2)
    quick.close()

    check(events := all_events(jobs.home))
    assert events[1].subtype == "task_progress"
    assert (events[1].data["needs_input"], events[1].data["description"]) == (True, "Ask")


@pytest.mark.req("N-06", "B-08")
def test_a_keeper_that_was_killed_is_told_of_once_by_whoever_looks(jobs: Jobs) -> None:
    job = jobs.start(Shell("sleep 60"))
    kill_keeper(jobs, job)
    jobs.wait(job.id, timeout=20)
    for _ in range(3):
        jobs.get(job.id)

    started, ended = all_events(jobs.home)
    assert (started.subtype, ended.data["status"]) == ("task_started", "failed")
    assert "its supervisor is gone and left no record of how it ended" in str(ended.data["summary"])


def test_kinds_tell_of_their_progress(tmp_path: Path) -> None:
    folder = job_folder(str(tmp_path), startTime=1)
    record = json.loads(Path(folder.record).read_bytes())

    told = event_log.log_progress(
        folder, record, usage={"total_tokens": 7}, last_tool_name="Bash", step=2, id="x", at="y", type="z"
    )

    (event,) = events = all_events(folder.home)
    check(events)
    assert (event.id, event.subtype, event.data["step"], event.data["last_tool_name"]) == (
        told,
        "task_progress",
        2,
        "Bash",
    )
    usage = event.data["usage"]
    assert isinstance(usage, dict) and usage["total_tokens"] == 7 and usage["duration_ms"] > 0


def test_an_end_that_was_decided_by_one_who_died_is_told_once(tmp_path: Path) -> None:
    folder = job_folder(str(tmp_path), recipient="ada")
    finish_halfway(folder, End("exited", 3))
    os.unlink(folder.end)

    for _ in range(2):
        assert query.read_job(folder.home, folder.id).status is JobStatus.FAILED

    assert told_of(folder.home, folder.id) == ["task_notification"]


def test_an_end_is_looked_for_where_its_line_is_torn_and_then_told_again(tmp_path: Path) -> None:
    folder = job_folder(str(tmp_path))
    finish_halfway(folder, End("exited", 0))
    os.unlink(folder.end)
    event_log.append(folder.home, {"type": "system", "subtype": "task_notification", "task_id": folder.id})
    (segment,) = segments(folder.home)
    segment.write_bytes(segment.read_bytes()[:-2])  # killed before the last bytes were written

    query.read_job(folder.home, folder.id)

    assert told_of(folder.home, folder.id) == ["task_notification"]


@pytest.mark.req("N-06", "O-09")
def test_a_stream_that_cannot_be_written_hinders_no_job(jobs: Jobs) -> None:
    os.makedirs(jobs.home, mode=0o700)
    Path(jobs.home, "events").write_text("in the way", encoding="utf-8")

    job = jobs.run(Shell("exit 3"), timeout=20)

    assert job.end is not None and job.end.exit_code == 3
    assert Path(jobs.home, "events").read_text(encoding="utf-8") == "in the way"


@pytest.mark.req("N-06", "O-02")
def test_a_link_planted_in_the_place_of_the_stream_is_not_followed(jobs: Jobs, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("", encoding="utf-8")
    Path(jobs.home, "events").mkdir(parents=True, mode=0o700)
    Path(jobs.home, "events", "0.jsonl").symlink_to(target)

    job = jobs.run(Shell("true"), timeout=20)

    assert job.status is JobStatus.COMPLETED
    assert target.read_bytes() == b""


@pytest.mark.req("N-06", "O-09")
def test_a_full_disk_hinders_no_end(tmp_path: Path) -> None:
    with mounted("size=256k") as disk:
        home = str(disk / "home")
        folder = job_folder(home, isBackgrounded=False)
        finish(folder, End("exited", 0))
        event_log.log_started(folder, {"description": "x"})
        with open(disk / "filler", "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:
                pass
        before = len(all_events(home))
        told = [event_log.log_started(folder, {"description": "x" * 4096}) for _ in range(3)]

        assert told == [None] * 3
        assert len(all_events(home)) == before
        (disk / "filler").unlink()
        assert event_log.log_started(folder, {"description": "y"}) is not None
        assert [event.data["description"] for event in all_events(home)[before:]] == ["y"]


def test_the_stream_is_private(jobs: Jobs) -> None:
    jobs.run(Shell("true"), timeout=20)

    (segment,) = segments(jobs.home)
    assert [path.stat().st_mode & 0o777 for path in (segment.parent, segment)] == [0o700, 0o600]


def test_two_may_tell_the_first_event_ever_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def too_late(path: str, *how: int, dir_fd: int | None = None) -> int:
        if path.endswith("/0.jsonl") and not os.path.isdir(os.path.dirname(path)):
            os.mkdir(os.path.dirname(path), 0o700)  # another one makes it, between our look and our complaint
            raise FileNotFoundError(errno.ENOENT, "not there", path)
        return opened(path, *how, dir_fd=dir_fd)

    folder = job_folder(str(tmp_path))
    monkeypatch.setattr(os, "open", too_late)

    assert event_log.log_started(folder, {"description": "Work"}) == 1


def test_whoever_starts_a_job_keeps_no_more_segments_than_the_setting_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "SEGMENT_SIZE", 1000)
    folder = job_folder(str(tmp_path))
    for _ in range(60):
        event_log.log_started(folder, {"description": "Work"}, keep=3)

    assert len(segments(folder.home)) == 3
    assert 0 < len(all_events(folder.home)) < 60
    event_log.log_started(folder, {"description": "Work"}, keep=0)
    assert len(segments(folder.home)) == 1


def test_the_setting_reaches_the_keeper(jobs: Jobs) -> None:
    os.makedirs(f"{jobs.home}/events", mode=0o700)
    limit = 2 * event_log.SEGMENT_SIZE
    for number in range(4):
        Path(jobs.home, "events", f"{number * limit}.jsonl").touch(mode=0o600)
    few = Jobs(jobs.home, settings=Settings(event_segments=2))
    few.run(Shell("true"), timeout=20)
    few.close()

    assert [int(path.stem) for path in segments(jobs.home)] == [2 * limit, 3 * limit]
    assert [event.subtype for event in Events(jobs.home)] == BEGUN_AND_ENDED


def test_where_a_job_began_in_the_stream_is_in_its_record(jobs: Jobs) -> None:
    job = jobs.run(Shell("true"), timeout=20)

    record = json.loads(Path(JobPaths(jobs.home, job.id).record).read_bytes())
    assert record["events"] == all_events(jobs.home)[0].id
