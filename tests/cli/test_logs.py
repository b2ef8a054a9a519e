"""`taskyard logs`: what a job printed, safe to look at, exact to process."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import LONGEST, process, start, taskyard
from support.job_outputs import ended_by_hand, running_job, start_job, wait_for_end
from support.wait import until
from taskyard import config
from taskyard.core.system import now_ms
from taskyard.jobs.gc import collect
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.output import Output

pytestmark = pytest.mark.req("O-05")

NASTY = b"\x1b]0;owned\x07\x1b[31mred\x1b[0m\x00 \xe2\x80\xae\xff</task-notification>\n"


def printed(script: str, *, cap: int = 100_000_000) -> JobPaths:
    folder = start_job(config.home(), script, cap=cap)
    wait_for_end(folder)
    return folder


def with_output(data: bytes) -> JobPaths:
    folder = ended_by_hand(config.home(), at=now_ms(), size=0)
    Path(folder.output).write_bytes(data)
    return folder


def test_everything_a_job_printed_is_shown_also_after_its_end() -> None:
    folder = printed("echo one; echo two >&2; printf three")

    assert taskyard("logs", folder.id) == (0, "one\ntwo\nthree", "")
    assert taskyard("logs", folder.id, "--tail", "2").out == "two\nthree"
    assert taskyard("logs", folder.id, "--from", "4").out == "two\nthree"
    assert taskyard("logs", folder.id, "--tail", "0").out == ""


def test_json_says_where_a_part_begins_and_where_to_go_on() -> None:
    folder = printed("echo one; echo two")

    first = taskyard("logs", folder.id, "--json").data
    last = taskyard("logs", folder.id, "--json", "--tail", "1").data

    expected = {"id": folder.id, "offset": 0, "next_offset": 8, "omitted": 0, "restarted": False, "text": "one\ntwo\n"}
    assert first.pop("ended") == last.pop("ended") == taskyard("wait", folder.id, "--json").data
    assert first == expected
    assert last == {**expected, "offset": 4, "text": "two\n"}
    rest = taskyard("logs", folder.id, "--json", "--from", "8").data
    assert (rest["offset"], rest["next_offset"], rest["text"]) == (8, 8, "")


def test_an_answer_in_json_is_bounded_and_resumes_without_a_character_cut_in_two() -> None:
    text = "x" + "é漢😀" * 200_000
    folder = with_output(text.encode())

    parts, offset = [], 0
    while part := taskyard("logs", folder.id, "--json", "--from", str(offset)).data:
        if not part["text"]:
            break
        assert part["offset"] == offset and len(part["text"].encode()) <= 1 << 20
        parts.append(part["text"])
        offset = part["next_offset"]

    assert len(parts) == 2 and "".join(parts) == text


def test_what_was_left_out_is_told_beside_the_output() -> None:
    folder = printed("seq -f %09g 1 100000", cap=100_000)

    ran = taskyard("logs", folder.id)
    data = taskyard("logs", folder.id, "--json").data

    assert ran.out.endswith("000100000\n") and "left out" not in ran.out
    assert f"[{data['omitted']:,} bytes were left out here" in ran.err
    assert data["offset"] == data["omitted"] > 800_000


def test_a_pattern_picks_lines_as_people_see_them() -> None:
    folder = printed(r"printf 'fine\n\033[31mERR\033[0mOR 1\nfine\nERROR 2'")

    assert taskyard("logs", folder.id, "--grep", r"ERROR \d").out == "ERROR 1\nERROR 2"
    assert taskyard("logs", folder.id, "--grep", "^fine$", "--json").data["text"] == "fine\nfine\n"
    assert taskyard("logs", folder.id, "--grep", "ERROR", "--json").data["text"] == "ERROR 1\nERROR 2"
    assert taskyard("logs", folder.id, "--grep", "nothing").out == ""


def test_a_line_that_is_not_whole_yet_is_not_told_in_json_before_it_is(tmp_path: Path) -> None:
    with running_job(config.home(), r"printf 'one\ntw'; sleep 60") as folder:
        until(lambda: Output(folder).end() == 6)

        data = taskyard("logs", folder.id, "--grep", "o", "--json").data

        assert (data["text"], data["next_offset"]) == ("one\n", 4)


def test_lines_are_found_wherever_a_part_ends() -> None:
    folder = with_output(b"".join(b"line %07d\n" % number for number in range(20_000)))

    found = taskyard("logs", folder.id, "--grep", r"0005461|10922|16383").lines

    assert found == ["line 0005461", "line 0010922", "line 0016383"]


def test_output_that_would_act_on_a_terminal_is_only_read_there() -> None:
    folder = with_output(NASTY)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "taskyard", "logs", folder.id], stdout=theirs, env={**os.environ, "TERM": "xterm"}
    ) as child:
        os.close(theirs)
        assert child.wait(LONGEST) == 0
    seen = os.read(ours, 65536)
    os.close(ours)

    assert b"\x1b[31mred\x1b[0m \\u202e" in seen and b"</task-notification>" in seen
    assert b"owned" not in seen and b"\x07" not in seen and b"\0" not in seen


def test_a_pipe_gets_plain_text_and_with_raw_every_byte() -> None:
    folder = with_output(NASTY)
    command = [sys.executable, "-m", "taskyard", "logs", folder.id]

    plain = subprocess.run(command, capture_output=True, timeout=LONGEST, check=True).stdout
    raw = subprocess.run([*command, "--raw"], capture_output=True, timeout=LONGEST, check=True).stdout

    assert plain == "red \\u202e\ufffd</task-notification>\n".encode()
    assert raw == NASTY
    assert "\x1b" in taskyard("logs", folder.id, "--raw", "--json").data["text"]
    assert "\x1b" not in taskyard("logs", folder.id, "--json").data["text"]


def test_raw_bytes_are_not_sent_to_a_terminal() -> None:
    folder = with_output(NASTY)
    ours, theirs = pty.openpty()
    child = start("logs", folder.id, "--raw", stdout=theirs)
    os.close(theirs)
    _, said = child.communicate(timeout=LONGEST)
    os.close(ours)

    assert child.returncode == 2 and "--raw" in said


def test_a_terminal_of_another_encoding_gets_what_it_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    folder = with_output("é\n".encode())

    assert process("logs", folder.id) == (0, "\\xe9\n", "")


def test_following_shows_what_comes_until_the_job_is_over(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    folder = start_job(config.home(), f"echo old; echo before; read -r _ < {gate}; echo after; printf end")
    until(lambda: Output(folder).last_line() == b"before")
    child = start("logs", folder.id, "-f", "--tail", "1")
    assert child.stdout is not None

    first = child.stdout.readline()
    gate.write_text("\n", encoding="utf-8")
    rest, said = child.communicate(timeout=LONGEST)

    assert (first, rest, child.returncode) == ("before\n", "after\nend", 0)
    assert said.startswith(f"✓ {folder.id}  ") and "completed, after " in said


def test_following_in_json_gives_parts_that_join(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = rf"printf 'a\303'; read -r _ < {gate}; printf '\251b\n'; printf 'last \303'"
    folder = start_job(config.home(), script)
    until(lambda: Output(folder).end() == 2)
    child = start("logs", folder.id, "-f", "--json")
    assert child.stdout is not None
    lines = [child.stdout.readline()]
    gate.write_text("\n", encoding="utf-8")
    rest, _ = child.communicate(timeout=LONGEST)

    parts = [json.loads(line)["data"] for line in [*lines, *rest.splitlines()]]
    assert "".join(part["text"] for part in parts) == "aéb\nlast \ufffd"
    assert [part["offset"] for part in parts[1:]] == [part["next_offset"] for part in parts[:-1]]
    assert parts[-1]["next_offset"] == 11
    assert [part["ended"] for part in parts[:-1]] == [None] * (len(parts) - 1)
    assert (parts[-1]["text"], parts[-1]["ended"]["status"]) == ("", "completed")


def test_who_runs_it_does_not_matter_to_who_follows_it(tmp_path: Path) -> None:
    with running_job(config.home(), "echo here; sleep 60") as folder:
        child = start("logs", folder.id, "-f")
        assert child.stdout is not None and child.stdout.readline() == "here\n"
        child.send_signal(2)
        child.communicate(timeout=LONGEST)

        assert child.returncode == 130


@pytest.mark.parametrize(
    "job_id", ["../../etc/passwd", "", "b" * 500, "x\x1b[31m", "B00000000", "b0000000\n", "ä00000000"]
)
def test_what_can_be_no_id_is_refused_as_such(job_id: str) -> None:
    ran = taskyard("logs", "--json", "--", job_id)

    assert (ran.code, ran.error["code"]) == (2, "bad_job_id")
    assert "\x1b" not in taskyard("logs", "--", job_id).err


def test_an_unknown_id_names_the_nearest() -> None:
    folder = with_output(b"x")
    wrong = folder.id[:-1] + ("0" if folder.id[-1] != "0" else "1")

    ran = taskyard("logs", wrong, "--json")

    assert (ran.code, ran.error["code"], ran.error["nearest"]) == (4, "job_not_found", [folder.id])
    assert folder.id in taskyard("logs", wrong).err


@pytest.mark.req("B-06")
def test_the_end_of_a_job_whose_output_is_gone_is_still_told() -> None:
    folder = printed("exit 3")
    collect(config.home(), quota=0, age_limit=0, now=now_ms() + 1000)

    ran = taskyard("logs", folder.id, "--json")

    assert ran.code == 4
    assert ran.error["code"] == "output_gone"
    assert (ran.error["status"], ran.error["job_exit_code"]) == ("failed", 3)


@pytest.mark.parametrize(
    "words",
    [
        ("--tail", "-1"),
        ("--from", "-1"),
        ("--tail", "x"),
        ("--tail", "1", "--from", "1"),
        ("--grep", "("),
        ("--grep", "a{99999999999}"),
    ],
)
def test_options_that_make_no_sense_are_refused(words: tuple[str, ...]) -> None:
    folder = with_output(b"x")

    assert taskyard("logs", folder.id, *words).code == 2


@pytest.mark.req("O-02")
def test_a_planted_link_is_refused_with_a_sentence() -> None:
    folder = with_output(b"x")
    os.unlink(folder.output)
    os.symlink("/etc/passwd", folder.output)

    ran = taskyard("logs", folder.id)

    assert (ran.code, ran.out) == (1, "")
    assert "symbolic link" in ran.err
