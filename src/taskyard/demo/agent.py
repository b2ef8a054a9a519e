"""
An agent of the demo, run by the engine `command`: `python -m taskyard.demo.agent < PROMPT`.

It is a program and no model, so that the demo needs neither a key nor a network; what it does is real. It finds its
task in the prompt, writes files, has longer work done by background jobs and hears of them by notices, answers one
that asks something, and when a check refuses what it did, mends it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import taskyard
from taskyard.demo import texts
from taskyard.demo.plan import PYTHON
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.app import Yard

#: A job that says nothing for so long never will, in seconds.
_PATIENCE = 30.0


class Failed(Exception):
    """The task could not be done; the text says why."""


def main(prompt: str) -> int:
    """Do the task that a prompt is about; the exit code."""
    found = re.search(r"^Task #\d+: (.+)$", prompt, re.MULTILINE)
    step = mend if "it was refused" in prompt else STEPS.get(found[1] if found is not None else "")
    if step is None:
        return _result("There is nothing for me in this.")
    try:
        return _result(step())
    except Failed as error:
        return _result(error=str(error))


# -- the steps -------------------------------------------------------------------------------


def start() -> str:
    for folder in ("tally", "tests", "dist"):
        os.mkdir(folder)
    _write("tally/__init__.py", "")
    _write("tests/__init__.py", "")
    _write("dist/tally.pyz", "left over from an older build\n")
    _write(".gitignore", "dist/\n__pycache__/\n")
    _program("git", "init", "-q")
    return "There is an empty repository."


def write_tests() -> str:
    _write("tests/test_words.py", texts.TEST_WORDS)
    _write("tests/test_count.py", texts.TEST_COUNT)
    return "Two tests say what the program shall do."


def write_words() -> str:
    _write("tally/words.py", texts.WORDS)
    return "The splitter is written."


def write_count() -> str:
    _write("tally/count.py", texts.COUNT)
    return "The counter is written."


def mend() -> str:
    """What a check found: the capital letters."""
    _mail_lead("My check says no: a word with a capital is counted as another one. I mend it.")
    _write("tally/count.py", texts.COUNT_MENDED, tool="Edit")
    return "Words are counted in small letters now."


def write_manual() -> str:
    _write("README.md", texts.MANUAL)
    return "The manual is written."


def write_main() -> str:
    _write("tally/__main__.py", texts.MAIN)
    return "The command line is written."


def compile_sources() -> str:
    return _job("compile the sources", [PYTHON, "-m", "compileall", "-f", "tally"])


def run_tests() -> str:
    return _job("run every test", [PYTHON, "-m", "unittest"])


def measure() -> str:
    """Whoever tries first is killed in the middle of it, job and all, as if the machine had run out of memory."""
    _write("measure.py", texts.MEASURE)
    is_first = not os.path.exists("measured")
    _write("measured", "")
    return _job("measure the speed", [PYTHON, "measure.py"], when_it_prints=_kill_my_teammate if is_first else None)


def build() -> str:
    _write("build.py", texts.BUILD)
    return _job("build the archive", [PYTHON, "build.py"], answer="y")


def sign() -> str:
    import hashlib

    with open("dist/tally.pyz", "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    _write("dist/tally.pyz.sha256", f"{digest}  tally.pyz\n")
    return f"sha256 {digest[:12]}…"


def tag() -> str:
    _program("git", "add", "--all")
    who = ("-c", "user.name=the team", "-c", "user.email=team@example.invalid", "-c", "commit.gpgsign=false")
    _program("git", *who, "commit", "-q", "-m", "Count words")
    _program("git", *who, "tag", "-m", "The first release", "v1.0")
    return _program("git", "describe", "--tags")


#: By the task's subject, in the plan's order.
STEPS: dict[str, Callable[[], str]] = {
    "Start the repository": start,
    "Write the tests": write_tests,
    "Write the word splitter": write_words,
    "Write the counter": write_count,
    "Write the manual": write_manual,
    "Write the command line": write_main,
    "Compile the sources": compile_sources,
    "Run every test": run_tests,
    "Measure the speed": measure,
    "Build the archive": build,
    "Sign the archive": sign,
    "Tag the release": tag,
}


# -- what an agent can do --------------------------------------------------------------------


def _write(path: str, text: str, *, tool: str = "Write") -> None:
    _say(type="tool", name=tool, input={"file_path": path})
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _program(*words: str) -> str:
    """Run something short."""
    _say(type="tool", name="Bash", input={"command": " ".join(words)})
    done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    if done.returncode:
        raise Failed(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def _job(
    name: str, words: Sequence[str], *, answer: str | None = None, when_it_prints: Callable[[], None] | None = None
) -> str:
    """Have something longer done in the background, and wait for the notice; what it printed last."""
    with taskyard.open(is_main=False) as yard:
        shell = taskyard.Shell(words, name=name, stdin=answer is not None)
        job = yard.jobs.start(shell)
        _say(type="tool", name="Bash", input={"command": name, "run_in_background": True})
        if when_it_prints is not None:
            from taskyard.runtime.follow_output import follow_output

            next(follow_output(Output(JobFolder(yard.home, job.id)), timeout=_PATIENCE), None)
            when_it_prints()
        status = _heard(yard, job.id, answer)
        last = Output(JobFolder(yard.home, job.id)).last_line().decode("utf-8", "replace")
    if status != "completed":
        raise Failed(f"{name}: {last}")
    return last


def _heard(yard: Yard, job_id: str, answer: str | None) -> str:
    """How a job ended, by its notice; one that says that it waits for an answer gets one."""
    with yard.notices() as outbox:
        while outbox.wait(_PATIENCE):
            for notice in outbox.take():
                outbox.ack([notice.id])
                _say(type="text", text=f"I am told: {notice.summary}")
                if notice.task_id != job_id:
                    continue
                if notice.status:
                    return notice.status
                if answer is not None:
                    yard.jobs.answer(job_id, f"{answer}\n")
                    _mail_lead(f"My job {job_id} asked something, and I answered: {answer}.")
    raise Failed(f"nothing was heard of {job_id}")


def _mail_lead(text: str) -> None:
    with taskyard.open(is_main=False) as yard:
        yard.mail.send(yard.agent or "", "lead", text)


def _kill_my_teammate() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()  # until the keeper ends what is left of it


def _say(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _result(text: str = "", *, error: str = "") -> int:
    _say(type="result", text=text, error=error)
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.read()))
