"""Planted links, pipes and folders in the place of an output: refused, whatever they lead to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.job_outputs import ended_by_hand, made_by_hand
from taskyard.errors import StorageError
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.output import Output

pytestmark = pytest.mark.req("O-02", "O-03")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("secret", encoding="utf-8")
    return path


def moved_behind_a_link(path: str) -> None:
    os.rename(path, f"{path}-real")
    os.symlink(f"{path}-real", path)


def test_a_link_in_the_place_of_an_output_is_refused(tmp_path: Path, secret: Path) -> None:
    folder = made_by_hand(tmp_path)
    for target in (str(secret), "job.json", "/dev/zero", "output", "nowhere"):
        os.symlink(target, folder.output)
        with pytest.raises(StorageError, match="symbolic link"):
            Output(folder).read(0)
        os.unlink(folder.output)


def test_a_link_in_the_place_of_a_jobs_folder_is_refused(tmp_path: Path) -> None:
    folder = ended_by_hand(tmp_path, at=1, size=5)
    moved_behind_a_link(folder.path)

    with pytest.raises(StorageError, match="symbolic link"):
        Output(folder).read(0)


def test_a_link_in_the_place_of_the_folder_of_jobs_is_refused(tmp_path: Path) -> None:
    folder = ended_by_hand(tmp_path, at=1, size=5)
    moved_behind_a_link(f"{tmp_path}/jobs")

    with pytest.raises(StorageError, match="symbolic link"):
        Output(folder).tail(1)


@pytest.mark.parametrize("name", ["end.json", "job.json"])
def test_a_link_in_the_place_of_a_record_is_not_followed(tmp_path: Path, name: str) -> None:
    folder = ended_by_hand(tmp_path, at=1, size=5)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('{"cause": "exited", "header": 3, "base": 99, "type": "local_agent"}', encoding="utf-8")
    Path(folder.path, name).unlink()
    os.symlink(elsewhere, f"{folder.path}/{name}")

    assert Output(folder).read(0).text == b"xxxxx"


def test_a_pipe_a_folder_and_a_file_where_none_belongs_are_refused_at_once(tmp_path: Path) -> None:
    piped, foldered = made_by_hand(tmp_path), made_by_hand(tmp_path)
    os.mkfifo(piped.output)
    os.mkdir(foldered.output)
    filed = JobPaths(str(tmp_path), "b00000000")
    Path(filed.path).write_text("no folder", encoding="utf-8")

    for folder in (piped, foldered, filed):
        with pytest.raises(StorageError):
            Output(folder).read(0)


def test_the_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ended_by_hand(tmp_path, at=1, size=5)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)

    with pytest.raises(StorageError, match="belongs to user"):
        Output(folder).read(0)


def agent(home: Path) -> JobPaths:
    return made_by_hand(home, kind="local_agent", letter="a")


@pytest.mark.parametrize("form", ["transcript.jsonl", "absolute"])
def test_an_agents_link_into_its_own_folder_is_followed(tmp_path: Path, form: str) -> None:
    folder = agent(tmp_path)
    Path(folder.path, "transcript.jsonl").write_text("{}\n", encoding="utf-8")
    os.symlink(f"{folder.path}/transcript.jsonl" if form == "absolute" else form, folder.output)

    assert Output(folder).read(0).text == b"{}\n"


def test_an_agents_link_into_the_transcript_folder_is_followed_if_there_is_one(tmp_path: Path) -> None:
    folder = agent(tmp_path)
    transcripts = tmp_path / "transcripts"
    (transcripts / "project").mkdir(parents=True)
    (transcripts / "project" / "s.jsonl").write_text("{}\n", encoding="utf-8")
    os.symlink(transcripts / "project" / "s.jsonl", folder.output)

    assert Output(folder, transcripts=str(transcripts)).read(0).text == b"{}\n"
    with pytest.raises(StorageError, match="leads out"):
        Output(folder).read(0)


def test_an_agents_transcript_that_is_not_there_yet_reads_as_empty(tmp_path: Path) -> None:
    folder = agent(tmp_path)
    os.symlink("transcript.jsonl", folder.output)
    assert Output(folder).read(0).text == b""
    os.unlink(folder.output)
    os.symlink("no/such/folder", folder.output)
    assert Output(folder).read(0).text == b""


@pytest.mark.parametrize(
    "target", ["{secret}", "../../secret", "transcript.jsonl/../../../secret", "/etc/passwd", ".."]
)
def test_an_agents_link_that_leads_out_is_refused(tmp_path: Path, secret: Path, target: str) -> None:
    folder = agent(tmp_path)
    os.symlink(target.format(secret=secret), folder.output)

    with pytest.raises(StorageError, match="leads out"):
        Output(folder, transcripts=str(tmp_path / "transcripts")).read(0)


def test_a_second_link_behind_an_agents_link_is_refused(tmp_path: Path, secret: Path) -> None:
    folder = agent(tmp_path)
    os.symlink(secret, f"{folder.path}/transcript.jsonl")
    os.symlink(tmp_path, f"{folder.path}/inside")
    for target in ("transcript.jsonl", "inside/secret", "output"):
        os.symlink(target, folder.output)
        with pytest.raises(StorageError):
            Output(folder).read(0)
        os.unlink(folder.output)


def test_no_descriptor_is_left_open_however_a_read_ends(tmp_path: Path, secret: Path) -> None:
    good, bad, deep = ended_by_hand(tmp_path, at=1, size=5), made_by_hand(tmp_path), agent(tmp_path)
    os.symlink(secret, bad.output)
    os.symlink("a/b/c", deep.output)
    before = len(os.listdir("/proc/self/fd"))

    for folder in (good, bad, deep):
        for _ in range(20):
            try:
                Output(folder).read(0)
            except StorageError:
                pass

    assert len(os.listdir("/proc/self/fd")) == before
