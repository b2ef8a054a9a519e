"""`taskyard demo`: a team of three works through a plan of twelve tasks; one teammate is killed.

The agents are the program `demo_agent`; they are led by the same `TeamLead` as in `taskyard team up`. They
write, test, build and tag a small word counter in a git repository, for real: its first version is wrong and an
acceptance check finds it, one job asks for input, one teammate is killed. The outcome is verified against the
list's log and the jobs' records. Lists, state and settings are in one temporary folder, removed afterwards;
nothing of the user's is touched.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager

import taskyard
from taskyard.agents.lead.members import MemberSpec
from taskyard.agents.lead.plan_file import TeamPlan
from taskyard.agents.lead.team_lead import TeamLead, TeamOptions, create_team
from taskyard.cli.main import Command
from taskyard.cli.output import answer, columns, print_line, style
from taskyard.core.system import boottime
from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple, as_object
from taskyard.errors import UsageError
from taskyard.jobs import outbox
from taskyard.jobs.events import Events
from taskyard.jobs.model import JobStatus, job_json
from taskyard.storage.trust import trust_command
from taskyard.tasks.formats.exchange import check_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.events import Event
    from taskyard.jobs.model import Job
    from taskyard.tasks.formats.exchange import ImportedTask
    from taskyard.tasks.model import Change, Task
    from taskyard.yard import Yard


def _run(args: Args) -> int:
    from taskyard.cli.team import exit_on_signals

    tell = _make_printer(args)
    with exit_on_signals(), scratch() as folder:
        outcome = run_demo(folder, tell)
    answer(args, lambda: _json(outcome), lambda: _summary(args, outcome), ids=(task.id for task in outcome.tasks))
    return 1 if outcome.faults else 0


def _make_printer(args: Args) -> Callable[[str], None]:
    """Return a function that prints progress with the seconds since the start."""
    if args.as_json or args.quiet:
        return lambda _: None
    print_line("A plan of twelve tasks with dependencies. Three agents write, check, build and tag a small program.")
    print_line("One check fails, one job asks a question, and one agent is killed (kill -9).")
    print_line("")
    began = time.monotonic()

    def tell(text: str) -> None:
        print_line(f"{time.monotonic() - began:5.2f}  {text}")
        sys.stdout.flush()

    return tell


def _summary(args: Args, outcome: DemoResult) -> Iterator[str]:
    from taskyard.core.system import now_ms
    from taskyard.tasks.text import format_task_rows, sort_tasks

    yield ""
    rows = sorted(sort_tasks(outcome.tasks, now=now_ms()), key=lambda row: int(row.task.id))
    yield from format_task_rows(rows, now=now_ms(), columns=columns(), style=style(args))
    yield ""
    names = sorted(set(outcome.done_by.values()))
    shares = ", ".join(f"{name} {sum(who == name for who in outcome.done_by.values())}" for name in names)
    done = sum(task.is_done for task in outcome.tasks)
    yield f"{done} of {len(outcome.tasks)} tasks done in {outcome.seconds:.1f} s: {shares}."
    refused = ", ".join(f"#{task}" for task in outcome.refused)
    yield f"Refused by the acceptance command, fixed, then accepted: {refused}."
    yield f"Jobs that asked a question and got an answer: {outcome.answered}."
    yield _jobs_line(outcome)
    if outcome.faults:
        yield from (f"Fault: {fault}." for fault in outcome.faults)
    else:
        yield "Verified in the log: each task was completed exactly once, and none was started before its dependencies."


def _jobs_line(outcome: DemoResult) -> str:
    ends = Counter(job.status.value for job in outcome.jobs)
    told = ", ".join(f"{count} {status}" for status, count in sorted(ends.items()))
    return f"{len(outcome.jobs)} background jobs: {told}. Each end was reported once, and no process is left."


def _json(outcome: DemoResult) -> dict[str, object]:
    return {
        "tasks": [
            {
                "id": task.id,
                "subject": task.subject,
                "status": task.status.value,
                "done_by": outcome.done_by.get(task.id),
            }
            for task in outcome.tasks
        ],
        "members": [job_json(job) for job in outcome.members],
        "jobs": [job_json(job) for job in outcome.jobs],
        "refused": list(outcome.refused),
        "answered": outcome.answered,
        "seconds": round(outcome.seconds, 2),
        "faults": list(outcome.faults),
    }


def _no_arguments(_: Parser) -> None:
    pass


DEMO = Command(
    _run,
    _no_arguments,
    "Run a demo: a team of three agents completes twelve tasks of a release, with dependencies, in its own "
    "git\n"
    "repository. They write a small program, test it, build it and tag it. The agents are scripts, so no API "
    "key and no\n"
    "network is needed; the work is real. One check fails and is fixed. One job asks a question and gets an "
    "answer. One\n"
    "agent is killed (kill -9): its job ends, its task is released, and another agent replaces it. Everything "
    "happens\n"
    "in a temporary directory, which is removed afterwards.",
    examples=("taskyard demo", "taskyard demo --json"),
    exits=("0  done: each task completed once and in order", "1  a guarantee was violated"),
)


#: The interpreter used by checks and jobs.
PYTHON = sys.executable


class PlanStep(NamedTuple):
    """One task of the plan."""

    subject: str
    active_form: str
    after: tuple[int, ...] = ()  #: the steps it waits for, counted from 1
    check: tuple[str, ...] = ()  #: the acceptance command that must succeed


def _tests(module: str) -> tuple[str, ...]:
    return (PYTHON, "-B", "-m", "unittest", "-q", f"tests.{module}")


PLAN = (
    PlanStep("Start the repository", "Starting the repository"),
    PlanStep("Write the tests", "Writing the tests", (1,)),
    PlanStep("Write the word splitter", "Writing the word splitter", (2,), _tests("test_words")),
    PlanStep("Write the counter", "Writing the counter", (2,), _tests("test_count")),
    PlanStep("Write the manual", "Writing the manual", (1,)),
    PlanStep("Write the command line", "Writing the command line", (3, 4)),
    PlanStep("Compile the sources", "Compiling the sources", (6,)),
    PlanStep("Run every test", "Running every test", (6,)),
    PlanStep("Measure the speed", "Measuring the speed", (6,)),
    PlanStep("Build the archive", "Building the archive", (7,)),
    PlanStep("Sign the archive", "Signing the archive", (8, 10)),
    PlanStep("Tag the release", "Tagging the release", (5, 9, 11)),
)


TEAM = "release"

AGENTS = 3


class DemoResult(NamedTuple):
    """The outcome of the demo according to the log."""

    tasks: tuple[Task, ...]
    done_by: Mapping[str, str]  #: who completed each task
    members: tuple[Job, ...]  #: the teammates after their exit
    jobs: tuple[Job, ...]  #: their background jobs
    refused: tuple[str, ...]  #: tasks whose check failed at first
    answered: int  #: jobs that asked for input and got it
    seconds: float
    faults: tuple[str, ...]  #: violated guarantees; empty if none


def run_demo(folder: str, tell: Callable[[str], None]) -> DemoResult:
    """Work through the plan in `folder`, which belongs to the demo.

    Raises:
        UsageError: a required program is missing.
        MemberNotStarted: a teammate did not start.
    """
    if shutil.which("git") is None:
        raise UsageError("The demo needs git, which was not found: install it first.")
    began = boottime()
    repository = f"{folder}/repository"
    os.mkdir(repository)
    os.chdir(repository)
    command = (sys.executable, "-m", "taskyard.cli.demo_agent")
    wish = MemberSpec(TEAM, "Write small files.", "command", command, on_parent_exit="kill")
    with (
        taskyard.open(list=TEAM, agent="lead", is_main=True, report=tell) as yard,
        create_team(yard, TEAM, _plan(repository)),
    ):
        try:
            with _report_jobs(yard.home, tell):
                TeamLead(yard, TeamOptions(wish, AGENTS), tell=tell).lead()
            return _outcome(yard, boottime() - began)
        finally:
            yard.jobs.stop(*(job.id for job in yard.jobs.list()), grace=0)


def _plan(repository: str) -> TeamPlan:
    """Return the plan, as `taskyard team up --plan FILE` would read it, with its checks trusted as by a user."""
    tasks: list[ImportedTask] = []
    for number, step in enumerate(PLAN, 1):
        fields: dict[str, object] = {
            "subject": step.subject,
            "active_form": step.active_form,
            "blocked_by": [str(after) for after in step.after],
        }
        check = shlex.join(step.check)
        if check:
            trust_command(check, repository)
        extras: dict[str, object] = {"acceptance": {"command": check, "cwd": repository}} if check else {}
        tasks.append(check_imported(str(number), fields, where=step.subject, extras=extras))
    return TeamPlan(tuple(tasks), TEAM)


# -- progress of background jobs ---------------------------------------------------------------


@contextmanager
def _report_jobs(home: str, tell: Callable[[str], None]) -> Generator[None]:
    """Report the start and exit of background jobs until all events are printed."""
    events = Events(home, 0, follow=True)
    teller = threading.Thread(target=_print_events, args=(events, tell), daemon=True)
    teller.start()
    try:
        yield
    finally:
        events.close()
        teller.join()
        _print_events(Events(home, events.position), tell)


def _print_events(events: Events, tell: Callable[[str], None]) -> None:
    for event in events:
        if line := _format_event(event):
            tell(line)


def _format_event(event: Event) -> str:
    about = {name: escape_control(str(value)) for name, value in event.data.items()}
    if event.subtype == "task_started" and about.get("task_type") == "local_bash":
        return f"    job {event.task_id} started: {about['description']}"
    if event.subtype == "task_notification" and event.task_id.startswith("b"):
        return f"    job {event.task_id}, {about['status']}: {about['summary']}"
    return ""


# -- outcome ------------------------------------------------------------------------------------


def _outcome(yard: Yard, seconds: float) -> DemoResult:
    log = [change for change in yard.tasks.log() if not change.aborted]
    tasks = tuple(yard.tasks.list())
    completions = {task.id: _changes_of(log, task.id, "complete") for task in tasks}
    done_by = {task_id: str(found[-1].act.by) for task_id, found in completions.items() if found}
    everything = yard.jobs.list(ended=True)
    members = tuple(job for job in everything if job.type == "in_process_teammate")
    jobs = tuple(job for job in everything if job.type == "local_bash")
    said = [line for member in members for line in _transcript(member)]
    return DemoResult(
        tasks,
        done_by,
        members,
        jobs,
        tuple(str(line.get("task")) for line in said if line.get("type") == "refused"),
        sum("waiting for interactive input" in str(line.get("text")) for line in said),
        seconds,
        (*_faults(tasks, completions, log), *_job_faults(yard, members, jobs)),
    )


def _changes_of(log: Sequence[Change], task_id: str, *causes: str) -> list[Change]:
    return [change for change in log if change.act.cause in causes and task_id in change.tasks]


def _transcript(member: Job) -> list[dict[str, object]]:
    with open(member.output_file, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    return [found for line in lines if (found := as_object(line)) is not None]


def _faults(tasks: Sequence[Task], completions: Mapping[str, Sequence[Change]], log: Sequence[Change]) -> Iterator[str]:
    """Yield the guarantees violated according to the log."""
    for task in tasks:
        count = len(completions[task.id])
        if count != 1:
            yield f"#{task.id} was completed {count} times"
        begun = [change.id for change in _changes_of(log, task.id, "claim", "start")]
        for blocker in task.blocked_by:
            ends = [change.id for change in completions.get(blocker, ())]
            if begun and (not ends or begun[0] < ends[0]):
                yield f"#{task.id} was started before #{blocker} was completed"


def _job_faults(yard: Yard, members: Sequence[Job], jobs: Sequence[Job]) -> Iterator[str]:
    """Yield the guarantees violated according to the jobs' records."""
    for job in (*members, *jobs):
        if job.end is None or job.end.proof != "proved":
            yield f"processes of job {job.id} may be left"
    for job in jobs:
        count = sum(notice.is_end for notice in outbox.job_notices(yard.home, job.id))
        if count != 1:
            yield f"the end of job {job.id} was reported {count} times"
    died = sum(member.status is not JobStatus.COMPLETED for member in members)
    if died != 1:
        yield f"{died} agents failed instead of one"


#: Prefixes of variables that refer to the user's own lists, state, settings and hooks.
_ENV_PREFIXES = ("TASKYARD_", "CLAUDE_", "XDG_")


@contextmanager
def scratch() -> Generator[str]:
    """Create a temporary folder and confine this process and its children to it; removed in every case."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="taskyard-demo-")
    before, here = dict(os.environ), _current_folder()
    try:
        os.chdir(folder)  # avoid hooks of the surrounding project
        for name in [name for name in os.environ if name.startswith(_ENV_PREFIXES)]:
            del os.environ[name]
        os.environ |= {
            "TASKYARD_HOME": f"{folder}/home",
            "TASKYARD_TASKS_DIR": f"{folder}/tasks",
            "TASKYARD_STALL_AFTER": "1",  # instead of 45 seconds, to keep the demo short
            "CLAUDE_CONFIG_DIR": f"{folder}/claude",
            "XDG_CONFIG_HOME": f"{folder}/config",
            "PYTHONPATH": os.pathsep.join([_package(), *filter(None, [before.get("PYTHONPATH")])]),
        }
        yield folder
    finally:
        os.environ.clear()
        os.environ |= before
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"  # the current folder was removed


def _package() -> str:
    """Return the folder of the package, so that workers import the same one."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


WORDS = '''"""Words of a text."""

import re


def words(text: str) -> list[str]:
    """Every word, as it stands there."""
    return re.findall(r"[a-z]+", text, re.IGNORECASE)
'''

COUNT = '''"""How often words occur."""

from collections import Counter


def counted(words: list[str]) -> list[tuple[str, int]]:
    """Each word with its count, the most frequent first."""
    return Counter(words).most_common()
'''

#: The fix after the failed check: words are compared without case.
COUNT_FIXED = COUNT.replace("Counter(words)", "Counter(word.lower() for word in words)")

MAIN = '''"""python -m tally: count the words on standard input."""

import sys

from tally.count import counted
from tally.words import words

if __name__ == "__main__":
    for word, count in counted(words(sys.stdin.read())):
        print(count, word)
'''

TEST_WORDS = """import unittest

from tally.words import words


class Words(unittest.TestCase):
    def test_marks_are_no_words(self) -> None:
        self.assertEqual(words("To be, or not!"), ["To", "be", "or", "not"])
"""

TEST_COUNT = """import unittest

from tally.count import counted


class Count(unittest.TestCase):
    def test_a_capital_makes_no_other_word(self) -> None:
        self.assertEqual(counted(["The", "end", "the"]), [("the", 2), ("end", 1)])
"""

MANUAL = """# tally

`python -m tally < TEXT` prints every word with its count, the most frequent first.
"""

#: A typical build script: it asks before it overwrites.
BUILD = '''"""Build dist/tally.pyz."""

import os
import zipapp

if os.path.exists("dist/tally.pyz"):
    if input("dist/tally.pyz is there from an older build. Overwrite? (y/n) ") != "y":
        raise SystemExit("not built")
zipapp.create_archive("tally", "dist/tally.pyz", filter=lambda path: path.suffix == ".py")
print(os.path.getsize("dist/tally.pyz"), "bytes in dist/tally.pyz")
'''

#: Runs for a second, so that a worker can be killed meanwhile.
MEASURE = '''"""How many words a second."""

import time

from tally.count import counted
from tally.words import words

TEXT = "The quick brown fox jumps over the lazy dog. " * 1000
began, done = time.monotonic(), 0
while time.monotonic() < began + 1:
    done += sum(count for _, count in counted(words(TEXT)))
    print(f"{done:,} words", flush=True)
print(f"{done / (time.monotonic() - began):,.0f} words a second")
'''
