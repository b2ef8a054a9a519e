"""An agent of the demo, run by the engine `command`: `python -m taskyard.cli.demo_agent < PROMPT`.

It is a program, not a model, so that the demo needs neither a key nor a network; its work is real. It finds its
task in the prompt, writes files, runs longer work as background jobs and waits for their notices, answers one
that asks for input, and fixes its work when a check refuses it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import taskyard
from taskyard.cli import demo
from taskyard.cli.demo import PYTHON
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.output import Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taskyard.yard import Yard

#: Timeout in seconds for a notice of a job or a short command.
_TIMEOUT = 30.0


class StepFailed(Exception):
    """The task could not be done; the text is the reason."""


def main(prompt: str) -> int:
    """Do the task in a prompt; return the exit code."""
    found = re.search(r"^Task #\d+: (.+)$", prompt, re.MULTILINE)
    step = fix_count if "it was refused" in prompt else STEPS.get(found[1] if found is not None else "")
    if step is None:
        return _result("This prompt contains no task for me.")
    try:
        return _result(step())
    except StepFailed as error:
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
    return "Created an empty repository."


def write_tests() -> str:
    _write("tests/test_words.py", demo.TEST_WORDS)
    _write("tests/test_count.py", demo.TEST_COUNT)
    return "Wrote two tests."


def write_words() -> str:
    _write("tally/words.py", demo.WORDS)
    return "Wrote the splitter."


def write_count() -> str:
    _write("tally/count.py", demo.COUNT)
    return "Wrote the counter."


def fix_count() -> str:
    """Fix what the check found: upper-case letters."""
    _mail_lead("The check failed: capitalised words are counted separately. Fixing it.")
    _write("tally/count.py", demo.COUNT_FIXED, tool="Edit")
    return "Words are now counted in lower case."


def write_manual() -> str:
    _write("README.md", demo.MANUAL)
    return "Wrote the manual."


def write_main() -> str:
    _write("tally/__main__.py", demo.MAIN)
    return "Wrote the command line."


def compile_sources() -> str:
    return _job("compile the sources", [PYTHON, "-m", "compileall", "-f", "tally"])


def run_tests() -> str:
    return _job("run every test", [PYTHON, "-m", "unittest"])


def measure() -> str:
    """Measure the speed; the first agent to try is killed meanwhile with its job, as if out of memory."""
    _write("measure.py", demo.MEASURE)
    is_first = not os.path.exists("measured")
    _write("measured", "")
    return _job("measure the speed", [PYTHON, "measure.py"], when_it_prints=_kill_my_teammate if is_first else None)


def build() -> str:
    _write("build.py", demo.BUILD)
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


#: Steps by the subject of their task, in the plan's order.
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


# -- tools of the agent ------------------------------------------------------------------------


def _write(path: str, text: str, *, tool: str = "Write") -> None:
    _emit(type="tool", name=tool, input={"file_path": path})
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _program(*words: str) -> str:
    """Run a short command."""
    _emit(type="tool", name="Bash", input={"command": " ".join(words)})
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode:
        raise StepFailed(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def _job(
    name: str, words: Sequence[str], *, answer: str | None = None, when_it_prints: Callable[[], None] | None = None
) -> str:
    """Run longer work in the background and wait for its notice; return its last line of output."""
    with taskyard.open(is_main=False) as yard:
        shell = taskyard.Shell(words, name=name, stdin=answer is not None)
        job = yard.jobs.start(shell)
        _emit(type="tool", name="Bash", input={"command": name, "run_in_background": True})
        if when_it_prints is not None:
            from taskyard.jobs.output import follow_output

            next(follow_output(Output(JobPaths(yard.home, job.id)), timeout=_TIMEOUT), None)
            when_it_prints()
        status = _wait_for_notice(yard, job.id, answer)
        last = Output(JobPaths(yard.home, job.id)).last_line().decode("utf-8", "replace")
    if status != "completed":
        raise StepFailed(f"{name}: {last}")
    return last


def _wait_for_notice(yard: Yard, job_id: str, answer: str | None) -> str:
    """Return the status of a job from its exit notice; send `answer` if it waits for input."""
    with yard.notices() as outbox:
        while outbox.wait(_TIMEOUT):
            for notice in outbox.take():
                outbox.ack([notice.id])
                _emit(type="text", text=f"Notice: {notice.summary}")
                if notice.task_id != job_id:
                    continue
                if notice.status:
                    return notice.status
                if answer is not None:
                    yard.jobs.answer(job_id, f"{answer}\n")
                    _mail_lead(f"Job {job_id} asked a question; I answered: {answer}.")
    raise StepFailed(f"no notice arrived for {job_id}")


def _mail_lead(text: str) -> None:
    with taskyard.open(is_main=False) as yard:
        yard.mail.send(yard.agent or "", "lead", text)


def _kill_my_teammate() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()  # until the supervisor kills the rest


def _emit(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _result(text: str = "", *, error: str = "") -> int:
    _emit(type="result", text=text, error=error)
    return 1 if error else 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.read()))
