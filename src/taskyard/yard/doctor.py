"""`taskyard doctor` in Python: checks of a list, jobs, settings, hooks, team records and inboxes.

    for finding in doctor(list="release").examine():
        print(finding.name, finding.file, finding.why)

Claude Code's own team records and inboxes are checked but never repaired.
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.agents import claude_mail, teams
from taskyard.errors import BadValue, Damaged, StorageError
from taskyard.tasks.doctor import Doctor
from taskyard.tasks.doctor.finding import Finding, Repair
from taskyard.yard import choose_store, current_project_root, open_list_files, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.agents.teams import ClaudeTeam
    from taskyard.postgres.doctor import PostgresDoctor


_CLAUDE_OWNED = "it is Claude Code's, and Taskyard writes nothing that it cannot read"


def check_teams(home: str) -> Iterator[Finding]:
    """Find unreadable records of our own teams."""
    try:
        damaged = teams.listing(home)[1]
    except StorageError as error:
        damaged = [Damaged(error.path, error.why)]
    for one in damaged:
        yield Finding("damaged-record", one.file, f"The team in it cannot be read: {one.why}.", "fix it, or remove it")


def check_claude(claude: str) -> Iterator[Finding]:
    """Find unreadable records and inboxes of Claude Code's teams."""
    for name in teams.claude_team_names(claude):
        team = None
        try:
            team = teams.read_claude_team(claude, name)
        except Damaged as error:
            why = f"Who is in team {name!r} cannot be read: {error.why}. Only members of ours get mail there."
            fix = f"{_CLAUDE_OWNED}: fix it by hand, or end the team in Claude Code and remove its folder"
            yield Finding("damaged-claude-team", error.file, why, fix)
        yield from _check_inboxes(f"{teams.team_folder(claude, name)}/inboxes", team)


def _check_inboxes(folder: str, team: ClaudeTeam | None) -> Iterator[Finding]:
    try:
        files = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return  # no inbox yet
    for file in files:
        agent = file.removesuffix(".json")
        member = team.member(agent) if team is not None else None
        is_theirs = team is None or (member is not None and not member.is_external)
        for error in claude_mail.check_inbox(f"{folder}/{file}", entries=not is_theirs):
            why = f"Mail of {agent!r} in it cannot be read: {error.why}. It is left as it is."
            fix = (
                f"{_CLAUDE_OWNED}: fix it by hand, or move it away while Claude Code does not run; a new one is created"
            )
            yield Finding("damaged-claude-inbox", error.file, why, fix)


def doctor(
    *,
    tasks_dir: str | os.PathLike[str] | None = None,
    list: str | None = None,
    agent: str | None = None,
    foreign_writers: bool | None = None,
) -> Doctor | PostgresDoctor:
    """Return the doctor of a list; the arguments are those of `taskyard.open`. It works where `open` refuses."""
    settings, wrong = _load_settings()

    def beyond() -> Iterator[Finding]:
        from taskyard.integrations.hooks import load_hooks

        if wrong is not None:
            yield wrong
        else:
            yield from _check_sinks()
        yield from check_teams(config.home())
        yield from check_claude(config.claude_folder())
        yield from _check_jobs()
        yield from _check_supervisors()
        for problem in load_hooks(current_project_root()).problems:
            yield Finding("hooks", problem.file, problem.text, "fix it; the other hooks are in force")

    folder, name = config.resolve_tasks_dir(tasks_dir), config.list_name(list)
    chosen = choose_store(None, has_folder=tasks_dir is not None, settings=settings)
    if isinstance(chosen, str) and chosen not in ("files", "memory:"):
        from taskyard.postgres.doctor import PostgresDoctor

        store = open_store(chosen, folder, name, settings, None)
        return PostgresDoctor(chosen, store, settings, config.home(), by=agent, beyond=beyond, repairs=_REPAIRS)
    files = open_list_files(folder, name, settings, foreign_writers)
    return Doctor(files, config.home(), by=agent, beyond=beyond, repairs=_REPAIRS)


def _check_jobs() -> Iterator[Finding]:
    """Find jobs that `taskyard ps` cannot show, or shows without details."""
    from taskyard.jobs.query import find_damage

    try:
        for error in find_damage(config.home()):
            file = error.file if isinstance(error, Damaged) else error.path
            yield Finding(
                "damaged-job", file, _sentence(error.why), "read what is beside it, then remove the job's folder"
            )
    except StorageError as error:  # the folder of all jobs
        yield Finding(
            "damaged-job", error.path, _sentence(error.why), "put the folder back, or remove what is in its place"
        )


def _check_supervisors() -> Iterator[Finding]:
    """Find jobs whose limits are not enforced."""
    from taskyard.jobs.query import stopped_supervisors

    try:
        for job_id, pid in stopped_supervisors(config.home()):
            why = f"Process {pid} is stopped by a signal: no time limit or output cap of the job is enforced."
            yield Finding("stopped-supervisor", f"{config.home()}/jobs/{job_id}", why, "send it SIGCONT")
    except StorageError:
        return  # the folder of all jobs: reported as `damaged-job`


def _repair_supervisor(finding: Finding) -> Repair | None:
    from taskyard.jobs.job_dir import JobPaths, resume_supervisor

    folder = JobPaths(config.home(), os.path.basename(finding.file))
    return Repair(finding.name, finding.file, "sent SIGCONT") if resume_supervisor(folder) else None


_REPAIRS = {"stopped-supervisor": _repair_supervisor}


def _sentence(why: str) -> str:
    return f"{why[:1].upper()}{why[1:]}."


def _check_sinks() -> Iterator[Finding]:
    """Find invalid sink settings, which disable every sink."""
    from taskyard.jobs.sinks import load_sinks

    try:
        load_sinks()
    except (BadValue, Damaged) as error:
        file = os.path.join(config.config_folder(os.environ), "config.toml")
        yield Finding("settings", file, str(error), "fix it, or TASKYARD_SINKS_…; until then no sink gets notices")


def _load_settings() -> tuple[config.Settings, Finding | None]:
    """Return the settings in force; if unreadable, the defaults and the finding."""
    try:
        return config.load_settings(), None
    except (BadValue, Damaged) as error:
        file = os.path.join(config.config_folder(os.environ), "config.toml")
        return config.Settings(), Finding("settings", file, str(error), "fix it; until then nothing else works")
