"""An output read on as it grows, by a thread that is told by the kernel."""

from __future__ import annotations

from support.wait import until
from taskyard.jobs.kinds.shell import Shell
from taskyard.ui.ansi import plain_text
from taskyard.ui.live import LiveView
from taskyard.ui.tui.output_view import OutputTail, OutputUpdate


def texts(news: list[OutputUpdate]) -> list[str]:
    return [plain_text(line.runs) for one in news for line in one.window.lines]


def test_what_is_there_comes_first_then_what_is_added_then_that_it_is_over(release: LiveView) -> None:
    heard: list[OutputUpdate] = []
    job = release.yard.jobs.start(Shell("echo one; read x; echo two", stdin=True))
    tail = OutputTail(release.yard.home, job.id, heard.append)
    until(lambda: texts(heard) == ["one"], what="the first line")
    release.yard.jobs.send(job.id, "\n")
    until(lambda: heard[-1].is_over, what="the end")

    assert texts(heard) == ["one", "two"]
    assert heard[0].is_first
    tail.close()


def test_of_a_flood_only_the_end_is_read(release: LiveView) -> None:
    heard: list[OutputUpdate] = []
    job = release.yard.jobs.start(Shell("echo first; read x; yes 'the same again' | head -c 30000000", stdin=True))
    tail = OutputTail(release.yard.home, job.id, heard.append)
    until(lambda: heard, what="the first line")
    release.yard.jobs.send(job.id, "\n")
    until(lambda: heard[-1].is_over, timeout=30, what="the end")

    assert sum(one.skipped for one in heard) >= 1
    assert sum(len(one.window.lines) for one in heard) < 500_000
    assert heard[-1].window.end >= 30_000_000
    tail.close()


def test_a_job_that_is_not_there_is_said_in_words(release: LiveView) -> None:
    heard: list[OutputUpdate] = []
    OutputTail(release.yard.home, "b00000000", heard.append)
    until(lambda: heard, what="the error")

    assert "b00000000" in heard[0].error


def test_nothing_is_told_to_one_who_left(release: LiveView) -> None:
    heard: list[OutputUpdate] = []
    job = release.yard.jobs.start(Shell("echo one; read x; echo two", stdin=True))
    tail = OutputTail(release.yard.home, job.id, heard.append)
    until(lambda: heard, what="the first line")
    tail.close()
    release.yard.jobs.send(job.id, "\n")
    release.yard.jobs.wait(job.id, timeout=20)

    assert not any(one.is_over for one in heard)
