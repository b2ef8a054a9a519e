"""JobEnded hooks: told of every end, once, and in nobody's way."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import taskyard
from support.wait import until
from taskyard import Shell, config
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.yard import hook_files

pytestmark = pytest.mark.req("H-01")


@pytest.fixture
def heard(tmp_path: Path) -> Path:
    """Where the hook writes what it is told, a line each."""
    return tmp_path / "heard"


@pytest.fixture
def jobs(outside: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Jobs]:
    monkeypatch.chdir(tmp_path)
    found = Jobs(config.home(), agent="ada", hook_files=hook_files)
    yield found
    found.close()


def configure(file: Path, command: str, *, matcher: str = "") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    hooks = [{"type": "command", "command": command}]
    file.write_text(json.dumps({"hooks": {"JobEnded": [{"matcher": matcher, "hooks": hooks}]}}), encoding="utf-8")


def own_settings() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"], "taskyard", "hooks.json")


def told(heard: Path, count: int) -> list[dict[str, object]]:
    """What the hook was told so far, once there is so much of it."""

    def lines() -> list[str]:
        return heard.read_text(encoding="utf-8").splitlines() if heard.exists() else []

    until(lambda: len(lines()) >= count, timeout=30, what=f"{count} hooks")
    return [json.loads(line) for line in lines()]


def test_a_hook_is_told_how_a_job_ended(jobs: Jobs, heard: Path, tmp_path: Path) -> None:
    configure(own_settings(), f"cat >> {heard}")

    ended = jobs.run(Shell("exit 3", name="tests"), timeout=20)

    [said] = told(heard, 1)
    assert (said["hook_event_name"], said["cwd"], said["job_id"]) == ("JobEnded", str(tmp_path), ended.id)
    assert (said["job_type"], said["status"], said["cause"], said["exit_code"]) == ("local_bash", "failed", "exited", 3)
    assert (said["description"], said["command"], said["agent_name"]) == ("tests", "exit 3", "ada")
    assert said["output_file"] == ended.output_file


def test_every_kind_of_end_is_told_also_that_of_a_job_whose_keeper_was_killed(jobs: Jobs, heard: Path) -> None:
    configure(own_settings(), f"cat >> {heard}")

    jobs.run(Shell("true"), timeout=20)
    stopped = jobs.start(Shell("sleep 300"))
    jobs.stop(stopped.id)
    lost = jobs.start(Shell("sleep 300"))
    keeper = supervisor_pid(JobPaths(jobs.home, lost.id))
    assert keeper
    os.kill(keeper, signal.SIGKILL)
    jobs.wait(lost.id, timeout=20)

    causes = {str(said["cause"]) for said in told(heard, 3)}
    assert causes == {"exited", "stopped", "lost"}


def test_whoever_completes_an_end_does_not_tell_it_again(jobs: Jobs, heard: Path) -> None:
    configure(own_settings(), f"cat >> {heard}")
    first = jobs.run(Shell("true"), timeout=20)
    folder = JobPaths(jobs.home, first.id)
    assert told(heard, 1)
    end = json.loads(Path(folder.end).read_bytes())

    # As if the keeper had died right after it had started the hooks.
    Path(folder.notice).write_text(json.dumps({"end": end, "news": None}), encoding="utf-8")
    os.unlink(folder.end)
    jobs.list(ended=True)
    until(lambda: os.path.exists(folder.end), timeout=20)
    second = jobs.run(Shell("true"), timeout=20)

    assert [said["job_id"] for said in told(heard, 2)] == [first.id, second.id]


@pytest.mark.parametrize(("matcher", "count"), [("local_.*", 1), ("dream", 0)])
def test_a_matcher_chooses_by_the_kind_of_job(jobs: Jobs, heard: Path, matcher: str, count: int) -> None:
    configure(own_settings(), f"cat >> {heard}", matcher=matcher)

    ended = jobs.run(Shell("true"), timeout=20)
    ran = taskyard("__job_ended", ended.id, "--json")

    assert len(ran.data) == count


def test_a_hook_of_the_project_runs_only_when_it_is_trusted_and_the_person_can_see_why(
    jobs: Jobs, heard: Path, tmp_path: Path
) -> None:
    configure(tmp_path / ".taskyard" / "hooks.json", f"cat >> {heard}")
    log = Path(jobs.home, "hooks.log")

    jobs.run(Shell("true"), timeout=20)
    until(lambda: log.exists() and "taskyard trust" in log.read_text(encoding="utf-8"), timeout=20)
    assert not heard.exists()
    assert taskyard("trust", "--yes").code == 0
    jobs.run(Shell("true"), timeout=20)

    assert len(told(heard, 1)) == 1


def test_a_hook_that_fails_or_says_no_changes_nothing_and_is_noted(jobs: Jobs) -> None:
    configure(own_settings(), "echo not with me >&2; exit 2")
    log = Path(jobs.home, "hooks.log")

    ended = jobs.run(Shell("true"), timeout=20)

    assert ended.end is not None and ended.end.exit_code == 0
    until(lambda: log.exists() and "not with me" in log.read_text(encoding="utf-8"), timeout=20)


def test_where_there_is_no_hook_nothing_is_started_or_written(jobs: Jobs) -> None:
    configure(own_settings(), "true")
    own_settings().write_text('{"hooks": {}}', encoding="utf-8")

    ended = jobs.run(Shell("true"), timeout=20)

    assert not os.path.exists(JobPaths(jobs.home, ended.id).hooks)


def test_the_command_line_tells_hooks_too(outside: Path, heard: Path) -> None:
    configure(own_settings(), f"cat >> {heard}")

    assert taskyard("run", "-d", "--", "true").code == 0

    assert [said["status"] for said in told(heard, 1)] == ["completed"]
