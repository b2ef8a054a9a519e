"""Jobs that live inside a program: seen and steered from outside like any other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from countdown import Countdown

from support.cli import process
from support.cli import taskyard as cli
from support.disks import mounted
from support.wait import until
from taskyard import UsageError
from taskyard.jobs.context import JobContext
from taskyard.jobs.events import Event, Events
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kind import Outcome
from taskyard.jobs.model import Job, JobStatus
from taskyard.yard.async_yard import AsyncYard, open_async

#: A program that hosts a job and is somewhere else with its thoughts.
PROGRAM = """
import asyncio, sys, taskyard
from countdown import Countdown

async def main():
    async with taskyard.open_async(agent="ada") as yard:
        job = await yard.jobs.start(Countdown(100_000, step=0.02, inside=True, listens=True))
        print(job.id, flush=True)
        await asyncio.sleep(300)

asyncio.run(main())
"""


pytestmark = pytest.mark.usefixtures("plugin", "outside")


def in_a_yard(act: Callable[[AsyncYard], Awaitable[None]]) -> None:
    async def main() -> None:
        async with open_async(agent="ada") as yard:
            await asyncio.wait_for(act(yard), 30)

    asyncio.run(main())


Scene = tuple[str, "subprocess.Popen[str]", Jobs]


@pytest.fixture
def hosted(plugin: None, outside: Path) -> Iterator[Scene]:
    """A job's id, the program around it, and the jobs as another process sees them."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        yield program.stdout.readline().strip(), program, Jobs(os.environ["TASKYARD_HOME"])
        program.kill()


@pytest.mark.req("B-07")
def test_another_process_lists_pauses_answers_and_stops_it_while_its_program_lives(hosted: Scene) -> None:
    job_id, _, jobs = hosted

    assert [job.id for job in jobs.list()] == [job_id]
    assert jobs.pause(job_id) and not jobs.pause(job_id)
    assert jobs.get(job_id).is_paused
    assert jobs.resume(job_id)
    assert jobs.send(job_id, "hello\n")
    [stopped] = jobs.stop(job_id)

    assert (stopped.outcome, stopped.job.status) == ("stopped", JobStatus.KILLED)


@pytest.mark.req("B-07", "B-08")
def test_it_is_lost_with_its_program_and_whoever_waits_is_told_at_once(hosted: Scene) -> None:
    job_id, program, jobs = hosted
    assert jobs.wait(job_id, timeout=0.05).status is JobStatus.RUNNING

    program.send_signal(signal.SIGKILL)
    ended = jobs.wait(job_id, timeout=10)

    assert ended.end is not None
    assert (ended.status, ended.end.cause, ended.end.proof) == (JobStatus.FAILED, "lost", "best_effort")
    assert ended.end.error == "the program around it is gone"


@pytest.mark.req("B-07")
def test_looking_at_ones_own_job_does_not_give_back_its_lock() -> None:
    async def act(yard: AsyncYard) -> None:
        job = await yard.jobs.start(Countdown(100_000, step=0.05, inside=True))
        for _ in range(3):
            assert yard.jobs.get(job.id).status is JobStatus.RUNNING
        look = "import sys; from taskyard.jobs.jobs import Jobs; print(Jobs(sys.argv[1]).get(sys.argv[2]).status.value)"
        command = [sys.executable, "-c", look, os.environ["TASKYARD_HOME"], job.id]
        seen = await asyncio.to_thread(subprocess.check_output, command, text=True, timeout=20)
        assert seen.strip() == "running"

    in_a_yard(act)


@pytest.mark.req("B-10")
def test_a_program_that_leaves_its_yard_ends_what_lives_in_it_and_says_by_what() -> None:
    ids: list[str] = []

    async def act(yard: AsyncYard) -> None:
        ids.append((await yard.jobs.start(Countdown(100_000, step=0.05, inside=True))).id)

    in_a_yard(act)

    end = Jobs(os.environ["TASKYARD_HOME"]).get(ids[0]).end
    assert end is not None
    assert (end.cause, end.by) == ("stopped", "the end of the program around it")


@pytest.mark.req("B-09")
def test_one_that_does_not_let_itself_be_stopped_is_best_effort() -> None:
    async def act(yard: AsyncYard) -> None:
        job = await yard.jobs.start(Countdown(10, step=0.05, inside=True, is_stubborn=True))
        await asyncio.sleep(0)
        [stopped] = await yard.jobs.stop(job.id, grace=0.05)
        assert (stopped.outcome, stopped.job.status) == ("best_effort", JobStatus.KILLED)

    in_a_yard(act)


@pytest.mark.req("B-08", "B-14")
def test_a_time_limit_ends_it_and_a_pause_does_not_count() -> None:
    async def act(yard: AsyncYard) -> None:
        job = await yard.jobs.start(Countdown(100_000, step=0.02, inside=True, timeout=0.4))
        assert await yard.jobs.pause(job.id)
        assert (await yard.jobs.wait(job.id, timeout=0.6)).is_paused, "the limit passed during the pause"
        assert await yard.jobs.resume(job.id)
        ended = await yard.jobs.wait(job.id, timeout=10)
        assert ended.end is not None
        assert (ended.status, ended.end.cause) == (JobStatus.KILLED, "timeout")
        assert ended.end.paused_ms >= 500

    in_a_yard(act)


@pytest.mark.req("B-01")
def test_a_program_without_an_event_loop_is_told_what_to_use() -> None:
    with pytest.raises(UsageError, match="open_async"):
        Jobs(os.environ["TASKYARD_HOME"]).start(Countdown(1, inside=True))


@pytest.mark.req("B-06")
def test_hundreds_live_in_one_program_without_a_process_or_an_open_file_left_over() -> None:
    async def act(yard: AsyncYard) -> None:
        await yard.jobs.run(Countdown(1, inside=True))
        before = len(os.listdir("/proc/self/fd"))
        started = [await yard.jobs.start(Countdown(2, step=0.01, inside=True)) for _ in range(100)]
        ended = await asyncio.gather(*(yard.jobs.wait(job.id) for job in started))
        assert {job.status for job in ended} == {JobStatus.COMPLETED}
        assert len(os.listdir("/proc/self/fd")) == before

    in_a_yard(act)


class Late(Countdown):
    """Ignores cancellation, and reports after its end what it can."""

    ended = asyncio.Event()
    reported = asyncio.Event()
    answers: ClassVar[list[object]] = []

    async def run(self, context: JobContext) -> Outcome:
        context.write("before\n")
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await self.ended.wait()
        self.answers.append(context.tell(result="late", progress={"left": 1}))
        self.answers.append(context.notify("late"))
        context.progress(usage={"tool_uses": 1})
        context.ask("Late?")
        context.write("late\n")
        self.answers.append((context.size, context.written()))
        self.reported.set()
        return Outcome("late")


@pytest.mark.req("B-04", "B-03")
def test_what_its_code_reports_after_its_end_changes_nothing_and_no_one_hears_of_it(tmp_path: Path) -> None:
    Late.ended, Late.reported, Late.answers = asyncio.Event(), asyncio.Event(), []
    outputs: list[str] = []

    async def act(yard: AsyncYard) -> None:
        job = await yard.jobs.start(Late(1, inside=True))
        await asyncio.sleep(0)
        await yard.jobs.stop(job.id, grace=0.0)
        before = yard.jobs.get(job.id)
        events = [event.id async for event in yard.events(job=job.id)]
        descriptors = [os.open(tmp_path / f"{number}", os.O_CREAT | os.O_WRONLY) for number in range(20)]
        Late.ended.set()
        await Late.reported.wait()
        for descriptor in descriptors:
            os.close(descriptor)

        assert Late.answers == [False, False, (0, b"")]
        assert yard.jobs.get(job.id) == before
        assert [event.id async for event in yard.events(job=job.id)] == events
        outputs.append(before.output_file)

    in_a_yard(act)

    assert Path(outputs[0]).read_text(encoding="utf-8") == "before\n"
    written = {path.read_text(encoding="utf-8") for path in tmp_path.glob("[0-9]*")}
    assert written == {""}, "it wrote into another file"


#: Bytes of a job's output in the tests of the cap, and of the lines in it.
CAP, LINE = 1_000_000, 100


class Wordy(Countdown):
    """Writes `start` numbered lines, `at_once` of them in one piece, and looks how much of the file is on disk."""

    at_once = 50
    most = 0

    async def run(self, context: JobContext) -> Outcome:
        for first in range(0, self.start, self.at_once):
            await asyncio.sleep(0)
            context.write("".join(f"{n:0{LINE - 1}d}\n" for n in range(first, min(first + self.at_once, self.start))))
            found = os.stat(os.path.join(context.folder, "output"))
            type(self).most = max(self.most, found.st_blocks * 512)
        return Outcome(f"wrote {context.size}")


class WordyAtOnce(Wordy):
    """Writes all of it in one piece."""

    at_once = 100_000


def lines_from(first: int, last: int) -> bytes:
    return b"".join(b"%0*d\n" % (LINE - 1, number) for number in range(first, last))


@pytest.mark.req("O-04")
@pytest.mark.parametrize("kind", [Wordy, WordyAtOnce])
def test_the_output_cap_holds_and_the_head_and_the_newest_half_are_kept(
    kind: type[Wordy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_JOB_OUTPUT_CAP", str(CAP))
    kind.most = 0
    count = 60_000
    found: list[Job] = []

    async def act(yard: AsyncYard) -> None:
        found.append(await yard.jobs.run(kind(count, inside=True), timeout=20))

    in_a_yard(act)

    (job,) = found
    assert (job.status, job.facts["result"]) == (JobStatus.COMPLETED, f"wrote {count * LINE}")
    assert kind.most <= CAP
    end = job.end
    assert end is not None and end.size == count * LINE and end.head == 196_608
    kept = Path(job.output_file).read_bytes()
    whole = lines_from(0, count)
    assert kept[: end.head] == whole[: end.head]
    assert kept[end.head + end.header :] == whole[end.base :]
    assert CAP // 2 <= end.size - end.base <= CAP
    said = cli("logs", job.id, "--json", "--from", str(end.size - LINE)).data
    assert (said["text"].encode(), said["next_offset"]) == (whole[-LINE:], end.size)


@pytest.mark.req("O-04")
def test_offsets_stay_valid_for_another_process_while_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_JOB_OUTPUT_CAP", str(CAP))

    written = asyncio.Event()

    class Staying(Wordy):
        async def run(self, context: JobContext) -> Outcome:
            await super().run(context)
            written.set()
            await asyncio.sleep(60)
            return Outcome()

    async def act(yard: AsyncYard) -> None:
        job = await yard.jobs.start(Staying(30_000, inside=True))
        await written.wait()
        said = (await asyncio.to_thread(process, "logs", job.id, "--json", "--from", "300000")).data
        assert said["omitted"] == said["offset"] - 300_000 > 0
        assert said["text"].encode() == lines_from(0, 30_000)[said["offset"] :]
        early = (await asyncio.to_thread(process, "logs", job.id, "--json", "--from", "0")).data
        assert early["text"].encode()[:196_608] == lines_from(0, 30_000)[:196_608]

    in_a_yard(act)


@pytest.mark.req("O-04", "B-08")
def test_where_nothing_can_be_freed_one_above_its_cap_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_JOB_OUTPUT_CAP", str(CAP))
    found: list[Job] = []

    async def act(yard: AsyncYard) -> None:
        found.append(await yard.jobs.run(Wordy(1_000_000, inside=True), timeout=20))

    with mounted("mode=700", kind="ramfs") as disk:
        monkeypatch.setenv("TASKYARD_HOME", str(disk))
        in_a_yard(act)
        (job,) = found
        end = job.end
        assert end is not None
        assert (job.status, end.cause, end.by) == (JobStatus.KILLED, "output_cap", "its output's cap")
        assert CAP < end.size < 2 * CAP
        kept = Path(job.output_file).read_bytes()
        assert kept[end.head + end.header :] == lines_from(0, end.size // LINE)[end.base :]
        assert len(kept) <= CAP


class Told(Countdown):
    """Says how it gets on."""

    async def run(self, context: JobContext) -> Outcome:
        for step in range(self.start):
            context.progress(usage={"tool_uses": step}, last_tool_name="Bash", step=step)
        return Outcome("done")


@pytest.mark.req("N-06")
def test_its_beginning_progress_and_end_are_events() -> None:
    found: list[Event] = []

    async def act(yard: AsyncYard) -> None:
        job = await yard.jobs.start(Told(2, inside=True))
        found.extend([event async for event in yard.events(follow=True, job=job.id)])

    in_a_yard(act)

    assert [event.subtype for event in found] == ["task_started", *["task_progress"] * 2, "task_notification"]
    assert [event.data.get("step") for event in found] == [None, 0, 1, None]
    assert (found[2].data["last_tool_name"], found[3].data["status"]) == ("Bash", "completed")


@pytest.mark.req("N-06", "B-08")
def test_a_follower_hears_that_its_program_was_killed(hosted: Scene) -> None:
    job_id, program, jobs = hosted
    following = iter(Events(jobs.home, 0, follow=True, job=job_id))
    assert next(following).subtype == "task_started"
    program.kill()

    assert next(following).data["status"] == "failed"


@pytest.mark.req("N-08")
def test_its_end_is_told_to_every_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    monkeypatch.setenv("TASKYARD_SINKS_COMMAND", f"cat > {told}")
    started: list[str] = []

    async def act(yard: AsyncYard) -> None:
        job = await yard.jobs.start(Countdown(1, step=0.01, inside=True))
        started.append(job.id)
        await yard.jobs.wait(job.id, timeout=20)

    in_a_yard(act)

    until(lambda: told.exists() and started[0] in told.read_text(encoding="utf-8"))
