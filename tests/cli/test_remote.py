"""`taskyard remote` and `taskyard agent --remote`: places, whether they would, and agents that work there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import process, taskyard
from support.fake_places import FakePlace, set_up
from support.wait import until
from taskyard.cli.complete import candidates
from taskyard.jobs.jobs import Jobs


@pytest.fixture
def place(tmp_path: Path, plugin: None) -> Iterator[FakePlace]:
    found = FakePlace(tmp_path / "place")
    set_up(found)
    yield found
    found.kill()


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    found = Jobs(os.environ["TASKYARD_HOME"])
    yield found
    found.stop(*[job.id for job in found.list()], grace=0.1)
    found.close()


def config_path() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "taskyard" / "config.toml"


@pytest.mark.req("X-02")
def test_places_are_listed_as_they_are_set_up(place: FakePlace) -> None:
    assert taskyard("remote", "list").lines == [f"here  fake  file://{place.folder}"]
    assert taskyard("remote", "--json").data == [
        {
            "name": "here",
            "backend": "fake",
            "url": f"file://{place.folder}",
            "token_env": None,
            "token_keyring": None,
            "command": None,
        }
    ]
    assert taskyard("remote", "list", "-q").lines == ["here"]


@pytest.mark.req("X-02")
def test_a_table_that_cannot_be_is_told_of_and_keeps_nobody_from_the_others(place: FakePlace) -> None:
    with open(config_path(), "a", encoding="utf-8") as file:
        file.write('[remotes.odd]\nurl = "http://127.0.0.1:1"\n')

    listed = taskyard("remote", "list")
    assert [line.split()[0] for line in listed.lines] == ["here"]
    assert "remotes.odd.backend" in listed.err
    checked = taskyard("remote", "check")
    assert checked.code == 1
    assert [line[:6] for line in checked.lines if line[0] in "✓✗"] == ["✓ here", "✗ odd:"]
    assert taskyard("remote", "check", "here").code == 0
    assert taskyard("remote", "check", "odd").code == 2
    assert candidates(["remote", "check", ""]) == [("here", f"fake file://{place.folder}")]


@pytest.mark.req("X-02")
@pytest.mark.parametrize(
    "line",
    [
        'token = "sk-geheim"',
        'auth_token = "sk-geheim"',
        'API_KEY = "sk-geheim"',
        'headers = {Authorization = "Bearer sk-geheim"}',
        'token_env = "sk-geheim"',
        'token_keyring = "sk-geheim"',
    ],
)
def test_a_token_in_the_settings_is_refused_and_not_repeated(line: str) -> None:
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(f'[remotes.far]\nbackend = "a2a"\nurl = "http://127.0.0.1:1"\n{line}\n', encoding="utf-8")

    for words in (
        ["remote", "list"],
        ["remote", "check"],
        ["remote", "check", "far"],
        ["agent", "hi", "--remote", "far"],
    ):
        ran = taskyard(*words)
        said = ran.out + ran.err
        assert "remotes.far." in said, words
        assert "geheim" not in said


def test_where_none_is_set_up_that_is_said() -> None:
    for verb in ("list", "check"):
        ran = taskyard("remote", verb)
        assert (ran.code, ran.out) == (0, "")
        assert "[remotes.NAME]" in ran.err


@pytest.mark.req("X-02")
def test_a_check_says_what_is_wrong_and_what_to_do(place: FakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = taskyard("remote", "check", "here")
    assert (fine.code, fine.lines) == (0, [f"✓ here (fake at file://{place.folder}): a fake place with 0 sessions"])

    set_up(place, "locked", token_env="PLACE_TOKEN")
    wrong = taskyard("remote", "check")
    assert wrong.code == 1
    assert wrong.lines[1:] == [
        f"✗ locked (fake at file://{place.folder}): $PLACE_TOKEN is not set",
        "  → `export PLACE_TOKEN=…` before you start jobs there.",
    ]
    assert taskyard("remote", "check", "-q").lines == ["locked"]
    assert [(one["remote"], one["ok"], one["problem"]) for one in taskyard("remote", "check", "--json").data] == [
        ("here", True, ""),
        ("locked", False, "token_unset"),
    ]

    place.switch("away")
    assert taskyard("remote", "check", "here").code == 75
    assert taskyard("remote", "check", "nowhere", "--json").error["code"] == "remote_not_found"
    assert taskyard("remote", "check", "nowhere").code == 4


@pytest.mark.req("K-03", "B-01")
def test_an_agent_elsewhere_answers_as_one_that_works_here(place: FakePlace) -> None:
    ran = process("agent", "one\n/result All is well.", "--remote", "here", "--json")

    assert (ran.code, ran.data["text"], ran.data["type"]) == (0, "All is well.", "remote_agent")
    assert process("agent", "one", "--remote", "here").out == "one\n"
    failed = process("agent", "/fail no fuel", "--remote", "here")
    assert (failed.code, failed.err) == (1, "Error: no fuel\n")


@pytest.mark.req("K-03", "B-03")
def test_one_in_the_background_is_shown_cut_off_and_told_something(place: FakePlace, jobs: Jobs) -> None:
    job_id = taskyard(
        "agent", "-d", "/ask Which?\n/forever", "--remote", "here", "--remote-type", "ultraplan"
    ).out.strip()
    until(lambda: jobs.get(job_id).needs_input)
    assert "needs input" in taskyard("ps").out
    taskyard("send", job_id, "left")
    until(lambda: not jobs.get(job_id).needs_input)
    place.switch("away")
    until(lambda: jobs.get(job_id).is_disconnected)

    assert "disconnected" in taskyard("ps").out
    assert "here cannot be reached: it hung up" in taskyard("ps").out
    [shown] = taskyard("ps", "--json").data
    assert (shown["disconnected"], shown["status"], shown["facts"]["remoteTaskType"]) == (True, "running", "ultraplan")
    assert "cut off" in taskyard("events").out

    place.clear("away")
    until(lambda: not jobs.get(job_id).is_disconnected, timeout=20)
    assert taskyard("ps", "--json").data[0]["disconnected"] is False
    until(lambda: "is back" in taskyard("events").out)
    assert taskyard("stop", job_id).code == 0
    again = process("agent", "", "--resume", job_id, "--json")
    assert (again.code, again.data["facts"]["sessionId"]) == (1, jobs.get(job_id).facts["sessionId"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("x", "--remote", "here", "--engine", "claude"), "--engine applies to local agents only"),
        (("x", "--remote", "here", "--type", "explorer"), "--type applies to local agents only"),
        (("x", "--remote-type", "ultraplan"), "require --remote"),
        (("x", "--remote", "here", "--metadata", "pr"), "KEY=VALUE"),
        (("x", "--remote", "her"), "Nearest: here"),
    ],
)
def test_words_that_do_not_go_together_are_refused(place: FakePlace, words: tuple[str, ...], said: str) -> None:
    ran = taskyard("agent", *words)

    assert ran.code in (2, 4)
    assert said in ran.err


def test_names_of_places_are_completed(place: FakePlace) -> None:
    assert candidates(["agent", "x", "--remote", "h"]) == [("here", f"fake file://{place.folder}")]
    assert candidates(["remote", "check", ""]) == [("here", f"fake file://{place.folder}")]
    assert ("check", "Test the connection to each remote") in candidates(["remote", ""])
