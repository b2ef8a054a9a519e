"""`taskyard run` as people and scripts use it, without a terminal."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import LONGEST, process, taskyard
from support.job_cli import ended, job, prints, started
from support.jobs import marked
from support.wait import until
from taskyard import config
from taskyard.storage import process_registry

COMMAND = [sys.executable, "-m", "taskyard"]


@pytest.mark.req("B-07", "K-01")
def test_a_job_in_the_background_is_listed_waited_for_and_gone() -> None:
    nap = started("--name", "A nap", "--", "sleep", "60")

    assert [row["description"] for row in taskyard("ps", "--json").data] == ["A nap"]
    assert taskyard("wait", nap, "--timeout", "0.1s").code == 124
    stopped = taskyard("stop", nap, "--json")
    assert (stopped.code, stopped.data["outcome"], stopped.data["proof"]) == (0, "stopped", "proved")
    waited = taskyard("wait", nap, "--json")
    assert (waited.code, waited.data["status"], waited.data["cause"]) == (143, "killed", "stopped")
    assert taskyard("ps", "--json").data == []
    assert [row["id"] for row in taskyard("ps", "--all", "--json").data] == [nap]


@pytest.mark.req("K-01")
def test_attached_it_prints_what_the_command_prints_and_ends_as_it_does() -> None:
    ran = process("run", "--", "echo one; sleep 0.05; echo two >&2; exit 3")

    assert ran == (3, "one\ntwo\n", "")


@pytest.mark.req("B-08", "K-01")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--", "no-such-command"], 127, "'no-such-command': command not found"),
        (["--", "/etc/passwd"], 126, "not executable"),
        (["--", "kill -SEGV $$"], 128 + 11, "killed by SIGSEGV"),
        (["--timeout", "0.1s", "--", "sleep", "60"], 128 + 15, "it reached its time limit"),
        (["--timeout", "0.1s", "--", "trap 'exit 0' TERM; sleep 60 & wait"], 128 + 15, "it reached its time limit"),
    ],
)
def test_attached_it_says_what_the_output_and_the_code_do_not(words: list[str], code: int, said: str) -> None:
    ran = process("run", *words)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert process("run", "-q", *words).err == ""


@pytest.mark.req("B-08")
def test_processes_that_the_command_left_behind_are_stopped_and_told() -> None:
    ran = process("run", "--grace", "0.1s", "--", "sleep 9391.5 & sleep 9391.5 & exit 0")

    assert (ran.code, ran.err) == (0, "Stopped 2 processes left by the command.\n")
    assert marked("9391.5") == []


@pytest.mark.req("B-11")
def test_the_answer_of_an_attached_run_is_one_document_and_its_output_goes_to_stderr() -> None:
    ran = process("run", "--json", "--", "echo one; exit 3")

    assert (ran.code, ran.err) == (3, "one\n")
    assert {name: ran.data[name] for name in ("status", "exit_code", "cause")} == {
        "status": "failed",
        "exit_code": 3,
        "cause": "exited",
    }
    assert {name: ran.data[name] for name in ("code", "interrupted", "backgroundTaskId", "backgroundedByUser")} == {
        "code": 3,
        "interrupted": False,
        "backgroundTaskId": None,
        "backgroundedByUser": False,
    }
    assert ran.data.keys() - job(ran.data["id"]).keys() == {
        "code", "interrupted", "backgroundTaskId", "backgroundedByUser",
    }  # fmt: skip


@pytest.mark.req("K-01")
def test_words_run_as_they_are_and_one_text_runs_in_bash() -> None:
    assert process("run", "--", "echo", "$HOME; echo two").out == "$HOME; echo two\n"
    assert process("run", "--", "echo one;echo two").out == "one\ntwo\n"
    assert process("run", "--", "pwd;pwd").out.count("\n") == 2
    assert process("run", "echo", "--json", "-d").out == "--json -d\n"  # what follows the command is the command's


@pytest.mark.req("K-01")
def test_a_job_runs_where_and_with_what_it_is_told_to(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()

    words = ["--cwd", str(folder), "--env", "GREETING=a=b", "--env", "EMPTY=", "--name", "Say hello"]
    hello = started(*words, "--", 'pwd; echo "$GREETING-$EMPTY-$HOME"')

    assert ended(hello)["status"] == "completed"
    assert taskyard("logs", hello).lines == [str(folder), f"a=b--{os.environ['HOME']}"]
    assert job(hello)["description"] == "Say hello"


def test_a_failure_of_our_own_does_not_look_like_the_jobs(outside: Path) -> None:
    (outside / "taskyard").mkdir(mode=0o700)
    (outside / "taskyard" / "jobs").write_text("in the way", encoding="utf-8")

    ran = process("run", "--json", "--", "true")

    assert (ran.code, ran.error["code"]) == (125, "storage")
    assert taskyard("run", "-d", "--", "true").code == 1


@pytest.mark.req("O-04")
def test_the_output_cap_is_kept_and_the_newest_part_stays() -> None:
    many = started("--output-cap", "100kB", "--", "seq -f %09g 1 100000")

    ended(many)
    ran = taskyard("logs", many)

    assert ran.out.endswith("000100000\n") and len(ran.out) <= 110_000
    assert "bytes were left out here" in ran.err


@pytest.mark.req("B-09")
@pytest.mark.parametrize("word", ["bnosuch12", "../../x", "", "b\0", "\ud800"])
@pytest.mark.parametrize("verb", ["wait", "stop", "pause", "resume", "send", "logs", "run"])
def test_ids_that_nobody_issued_are_not_found_and_impossible_ones_refused(verb: str, word: str) -> None:
    words = {"send": [word, "x"], "run": ["-d", f"--after={word}", "--", "true"]}.get(verb, [word])
    ran = taskyard("--json", verb, *words)

    assert (ran.code, ran.error["code"]) == ((4, "job_not_found") if word == "bnosuch12" else (2, "bad_job_id"))
    assert taskyard("ps", "--all", "--json").data == []


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--", ""],
        ["--timeout", "-1", "--", "true"],
        ["--timeout", "0", "--", "true"],
        ["--timeout", "32d", "--", "true"],
        ["--output-cap", "10", "--", "true"],
        ["--output-cap", "many", "--", "true"],
        ["--cwd", "/no/such/folder", "--", "true"],
        ["--name", "two\nlines", "--", "true"],
        ["--name", "\x1b[31m", "--", "true"],
        ["--retry", "-1", "--", "true"],
        ["--retry", "many", "--", "true"],
        ["--retry-delay", "soon", "--", "true"],
        ["--env", "NAME", "--", "true"],
        ["--env", "=x", "--", "true"],
        ["--grace", "-1", "--", "true"],
        ["--on-parent-exit", "cry", "--", "true"],
        ["--", "echo", "a\0b"],
    ],
)
def test_what_cannot_be_run_is_refused_and_starts_nothing(words: list[str]) -> None:
    ran = taskyard("run", "-d", "--json", *words)

    assert (ran.code, bool(ran.error["message"])) == (2, True)
    assert taskyard("ps", "--all", "--json").data == []


@pytest.mark.req("B-11")
@pytest.mark.parametrize("setting", ["TASKYARD_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"])
def test_where_the_background_is_switched_off_nothing_goes_there(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv(setting, "1")

    ran = taskyard("run", "-d", "--json", "--", "true")

    assert (ran.code, ran.error["code"], ran.error["setting"]) == (5, "background_disabled", setting)
    assert process("run", "--", "echo", "here").out == "here\n"


@pytest.mark.req("B-10")
def test_a_job_that_is_started_for_an_agent_by_a_command_line_outlives_the_command_line() -> None:
    here = process("run", "-d", "--by", "ada", "--json", "--", "sleep", "60").data

    assert (here["agent"], here["on_parent_exit"]) == ("ada", "keep")
    assert taskyard("wait", here["id"], "--timeout", "0.3s").code == 124


@pytest.mark.req("B-10")
@pytest.mark.parametrize("words", [["--by", "ada"], ["--by", "ada", "--on-parent-exit", "kill"]])
def test_a_job_ends_with_the_living_agent_it_was_started_for(words: list[str]) -> None:
    with process_registry.register(config.home(), "zoe"):
        script = f"""
            from taskyard.storage import process_registry as instances
            ada = instances.register({config.home()!r}, "ada")
            input()
        """
        agent = subprocess.Popen([sys.executable, "-c", _flat(script)], stdin=subprocess.PIPE)
        until(lambda: "ada" in [record.name for record in process_registry.live_instances(config.home())])
        here = process("run", "-d", *words, "--json", "--", "sleep", "60").data
        assert taskyard("wait", here["id"], "--timeout", "0.2s").code == 124

        agent.kill()
        agent.communicate()

    assert ended(here["id"])["stopped_by"] == "its starter's exit"


@pytest.mark.req("B-10")
def test_on_wish_a_job_ends_with_whoever_called_the_command() -> None:
    script = f"{sys.executable} -m taskyard run -d --on-parent-exit kill -- sleep 60; read -r _"
    caller = subprocess.Popen(["bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    here = caller.stdout.readline().strip()
    assert taskyard("wait", here, "--timeout", "0.2s").code == 124

    caller.communicate()

    assert ended(here)["cause"] == "stopped"


def _flat(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


@pytest.mark.req("B-09", "B-10")
def test_jobs_inside_a_job_end_with_it_unless_they_are_to_be_kept() -> None:
    inner = f"{sys.executable} -m taskyard run -d"
    outer = started("--", f"{inner} -- sleep 9383.5; {inner} --on-parent-exit keep -- sleep 9384.5; sleep 9385.5")
    until(lambda: bool(marked("sleep\x009385.5")))

    ran = taskyard("stop", outer, "--json")

    assert ran.data["outcome"] == "stopped"
    (kept,) = taskyard("ps", "--json").data
    assert (ran.data["kept"], kept["description"], kept["parent"]) == ([kept["id"]], "sleep 9384.5", outer)
    assert (marked("sleep\x009383.5"), len(marked("sleep\x009384.5"))) == ([], 1)


@pytest.mark.req("B-09")
def test_who_stops_reading_an_attached_run_stops_it() -> None:
    child = subprocess.Popen([*COMMAND, "run", "--", "echo up; exec yes 9386.5"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.close()

    assert child.wait(LONGEST) == 128 + signal.SIGPIPE
    assert marked("yes\x009386.5") == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_closed_are_no_reason_not_to_run(closed: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    script = f"{sys.executable} -m taskyard run -- 'echo out; touch {mark}; exit 3' {closed}"

    assert subprocess.run(["bash", "-c", script], capture_output=True, timeout=LONGEST).returncode == 3
    assert mark.exists()


@pytest.mark.req("O-01")
def test_what_is_piped_into_an_attached_run_reaches_a_command_that_reads() -> None:
    text = b"".join(b"line %d\n" % number for number in range(3_000)) + b"\xff\x00 and no newline"

    ran = subprocess.run([*COMMAND, "run", "--stdin", "--", "cat"], input=text, capture_output=True, timeout=LONGEST)

    assert (ran.returncode, ran.stdout) == (0, text)
    assert process("run", "--", "cat").out == ""  # without it, it reads from nobody


@pytest.mark.req("O-01")
def test_a_large_file_is_poured_in_as_fast_as_the_command_reads_and_arrives_whole() -> None:
    data = bytes(range(256)) * 80_000

    ran = subprocess.run(
        [*COMMAND, "run", "--stdin", "--", "sha256sum"], input=data, capture_output=True, timeout=LONGEST
    )

    assert (ran.returncode, ran.stdout.split()[:1]) == (0, [hashlib.sha256(data).hexdigest().encode()])


@pytest.mark.req("O-01")
def test_input_that_the_command_does_not_want_keeps_nobody_from_ending() -> None:
    ran = subprocess.run(
        [*COMMAND, "run", "--stdin", "--", "exec <&-; sleep 0.3; exit 6"],
        input=b"x" * 300_000,
        capture_output=True,
        timeout=LONGEST,
    )

    assert ran.returncode == 6


@pytest.mark.req("O-01", "O-08")
def test_whoever_ends_the_input_ends_it_also_while_an_attached_run_could_still_write() -> None:
    child = subprocess.Popen(
        [*COMMAND, "run", "--stdin", "--", "echo up; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"x" * 100_000 + b"\n")
    child.stdin.flush()
    assert child.stdout.readline() == b"up\n"
    assert len(child.stdout.readline()) == 100_001
    (here,) = taskyard("ps", "--json").data

    assert taskyard("send", here["id"], "--eof", "-n", "").code == 0

    assert child.wait(timeout=LONGEST) == 0
    child.communicate()


@pytest.mark.req("B-05", "B-11")
def test_the_end_of_a_job_whose_watcher_was_killed_is_told_by_a_notice() -> None:
    child = subprocess.Popen([*COMMAND, "run", "--", "echo up; sleep 0.5"], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"up\n"
    (here,) = taskyard("ps", "--json").data

    child.kill()
    child.communicate()

    assert ended(here["id"])["status"] == "completed"
    assert [notice["task_id"] for notice in taskyard("notices", "--json").data] == [here["id"]]
    assert process("run", "--", "true").code == 0
    assert len(taskyard("notices", "--json").data) == 1  # who watched one to its end has seen it


@pytest.mark.req("B-11")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_whoever_ends_an_attached_run_ends_its_job(number: int) -> None:
    child = subprocess.Popen(
        [*COMMAND, "run", "--json", "--", "echo up; sleep 9387.5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stderr is not None and child.stderr.readline() == b"up\n"

    child.send_signal(number)
    out, _ = child.communicate(timeout=LONGEST)

    assert child.returncode == 128 + number
    assert marked("9387.5") == []
    data = json.loads(out)["data"]
    assert (data["code"], data["interrupted"], data["cause"], data["proof"]) == (
        128 + number, number == signal.SIGINT, "stopped", "proved",
    )  # fmt: skip


def test_a_job_that_prints_nothing_says_so_when_it_is_asked() -> None:
    quiet = started("--", "sleep", "60")

    assert taskyard("logs", quiet).err == "[it has printed nothing so far]\n"
    prints(started("--", "echo", "something"), "something")


@pytest.mark.parametrize("limit", ["32d", "99999d"])
def test_a_time_limit_beyond_the_longest_is_refused_with_that(limit: str) -> None:
    assert "at most 31d" in taskyard("run", "--timeout", limit, "--", "true").err


@pytest.mark.req("N-08")
def test_a_broken_setting_of_the_sinks_is_told_and_the_job_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_SINKS_BELL", "perhaps")

    attached, machine = process("run", "--", "echo hi"), process("run", "--json", "--", "echo hi")
    detached = taskyard("run", "-d", "--json", "--", "true")

    assert (attached.code, attached.out) == (0, "hi\n")
    assert attached.err.startswith("Warning: sinks.bell cannot be 'perhaps'")
    for ran in (machine, detached):
        (warning,) = json.loads(ran.out)["warnings"]
        assert "sinks.bell" in warning
    found = taskyard("doctor", "--json").data["findings"]
    assert [finding["name"] for finding in found if "sinks.bell" in finding["why"]] == ["settings"]
