"""Maintenance commands: `taskyard doctor`, `gc`, `db`, `trust`, `lists` and `remote`."""

from __future__ import annotations

import os

from taskyard import config
from taskyard.cli.main import Command, CommandEntry
from taskyard.cli.output import (
    announce_waits,
    answer,
    confirm,
    list_source,
    open_yard,
    print_info,
    print_json,
    print_line,
    style,
    warn,
)
from taskyard.cli.parser import seconds, task_id
from taskyard.core.system import now_ms
from taskyard.core.text import colorize, cut, duration, escape_control, padded, size, width
from taskyard.core.values import NamedTuple, as_object, folder_name, nearest
from taskyard.errors import ListNotFound, NotFound, StoreAway, TaskyardError, UsageError
from taskyard.jobs.remote.remotes import find_remote, load_remotes
from taskyard.storage import trust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypedDict

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.core.text import Style
    from taskyard.jobs.gc import EndedJob, GcResult
    from taskyard.jobs.remote.check import CheckResult
    from taskyard.jobs.remote.remotes import Remote
    from taskyard.jobs.worktrees import SettledWorktree
    from taskyard.postgres.connection import PgConnection
    from taskyard.postgres.schema import Migration
    from taskyard.tasks.doctor.finding import Finding, Repair
    from taskyard.tasks.lists import Lists
    from taskyard.tasks.model import Task
    from taskyard.yard import Yard


#: Findings of one kind shown to people; `--json` has them all.
MAX_PER_KIND = 5


def _doctor_arguments(parser: Parser) -> None:
    parser.add(
        "--fix",
        nargs="*",
        metavar="PROBLEM",
        help="Repair problems that can be fixed without data loss, or only the named ones. Originals are kept.",
    )


def _run_doctor(args: Args) -> int:
    from taskyard.yard.doctor import doctor

    with doctor(tasks_dir=args.tasks_dir, list=args.list, agent=args.by) as list_doctor:
        repairs = list_doctor.repair(args.fix) if args.fix is not None else ()
        refused = [(finding, str(error)) for finding, error in list_doctor.refused]
        found = list_doctor.examine()
        place = list_doctor.folder
    answer(
        args,
        lambda: {
            "list": place,
            "healthy": not _problems(found),
            "findings": [_finding_json(finding) for finding in found],
            "repairs": [repair._asdict() for repair in repairs],
            "refused": [{**_finding_json(finding), "error": error} for finding, error in refused],
        },
        lambda: _doctor_lines(found, repairs, refused, place, style(args)),
        ids=(finding.name for finding in found),
    )
    return 1 if _problems(found) or refused else 0


def _problems(found: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in found if not finding.kind.is_note]


def _finding_json(finding: Finding) -> dict[str, object]:
    kind = finding.kind
    return {
        "name": finding.name,
        "severity": "note" if kind.is_note else "problem",
        "file": finding.file,
        "task_id": finding.task_id,
        "why": finding.why,
        "fix": finding.fix or None,
        "repair": "safe" if kind.is_safe else "named" if kind.can_fix else None,
    }


def _doctor_lines(
    found: Sequence[Finding],
    repairs: Sequence[Repair],
    refused: Sequence[tuple[Finding, str]],
    place: str,
    look: Style,
) -> Iterator[str]:
    for repair in repairs:
        kept = f"; the original is kept in {escape_control(repair.kept)}" if repair.kept else ""
        told = f"{escape_control(repair.file)}: {escape_control(repair.done)}{kept}"
        yield f"{colorize('repaired', 'pass', look)} {repair.name}  {told}"
    for finding, error in refused:
        why = f"{escape_control(finding.file)}: {escape_control(error)}"
        yield f"{colorize('not repaired', 'fail', look)} {finding.name}  {why}"
    yield from _finding_lines(found, look)
    problems = len(_problems(found))
    if not problems:
        yield f"No problems found in {escape_control(place)}."
        return
    easy = sum(finding.kind.is_safe for finding in found)
    yield f"{problems} {'problem' if problems == 1 else 'problems'} in {escape_control(place)} and Taskyard's data."
    if easy:
        yield f"`taskyard doctor --fix` repairs {'it' if easy == problems == 1 else easy} without data loss."


def _finding_lines(found: Sequence[Finding], look: Style) -> Iterator[str]:
    names = list(dict.fromkeys(finding.name for finding in found))
    for name in names:
        same = [finding for finding in found if finding.name == name]
        for finding in same[:MAX_PER_KIND]:
            token = "muted" if finding.kind.is_note else "warn"
            yield f"{colorize(name, token, look)}  {escape_control(finding.file)}"
            yield f"    {escape_control(finding.why)}"
            if finding.fix:
                kind = finding.kind
                how = "--fix" if kind.is_safe else f"--fix {name}" if kind.can_fix else "manually"
                yield f"    {how}: {escape_control(finding.fix)}"
        if len(same) > MAX_PER_KIND:
            yield f"    … and {len(same) - MAX_PER_KIND} more of {name}"


DOCTOR = Command(
    _run_doctor,
    _doctor_arguments,
    "Check the files of a list, Taskyard's data beside them, and Taskyard's own state, and report problems.\n"
    "Checking changes nothing. --fix makes repairs without data loss; a damaged file is rewritten only if "
    "the\n"
    "problem is named, and cycles are never broken automatically. Originals are kept in .taskyard/doctor.",
    examples=("taskyard doctor", "taskyard doctor --fix", "taskyard doctor --fix damaged-task held-task"),
    exits=("0  done: no problems, or all repaired", "1  problems were found"),
)


_MAX_WIDTH = 60  #: columns of a description


def _gc_arguments(parser: Parser) -> None:
    parser.add("--dry-run", action="store_true", help="Only print what would be removed.")
    parser.add(
        "--older-than",
        type=seconds,
        metavar="TIME",
        help="Remove jobs that ended longer ago than this, such as 7d; default: the setting job_age_limit.",
    )


def _run_gc(args: Args) -> int:
    from taskyard.jobs.gc import collect
    from taskyard.jobs.worktrees import settle_ended

    settings = config.load_settings()
    age_limit = settings.job_age_limit if args.older_than is None else args.older_than
    done = collect(
        config.home(),
        quota=settings.job_store_quota,
        age_limit=age_limit,
        dry_run=args.dry_run,
        timeout=settings.lock_timeout,
    )
    trees = settle_ended(config.home(), dry_run=args.dry_run)
    return answer(
        args,
        lambda: {
            **_gc_json(done, quota=settings.job_store_quota, dry_run=args.dry_run),
            "worktrees": [{**tree._asdict(), "kept": tree.kept or None} for tree in trees],
        },
        lambda: [
            *_gc_lines(done, quota=settings.job_store_quota, dry_run=args.dry_run),
            *_tree_lines(trees, dry_run=args.dry_run),
        ],
        ids=(one.job.id for one in done.removed),
    )


def _gc_json(done: GcResult, *, quota: int, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "removed": [_job_json(one) for one in done.removed],
        "freed": done.freed,
        "left": done.left,
        "quota": quota,
        "running": done.store.running,
        "unread": done.store.unread,
        "not_understood": done.store.strange,
        "half_made": done.incomplete,
    }


def _job_json(one: EndedJob) -> dict[str, object]:
    return {
        "id": one.job.id,
        "description": one.job.description,
        "status": one.end.status.value,
        "ended_at": one.at,
        "bytes": one.size,
    }


def _gc_lines(done: GcResult, *, quota: int, dry_run: bool) -> Iterator[str]:
    now = now_ms()
    for one in done.removed:
        age = duration((now - one.at) / 1000)
        words = cut(escape_control(one.job.description), _MAX_WIDTH)
        yield f"{one.job.id}  {one.end.status.value:<9}  {age:>7} ago  {size(one.size):>7}  {words}".rstrip()
    count = len(done.removed)
    jobs = f"{count} ended {'job' if count == 1 else 'jobs'}"
    verb, freed = ("Would remove", "free") if dry_run else ("Removed", "freed")
    kept = [f"{done.store.running} running", f"{done.store.unread} unread"]
    if done.store.strange:
        kept.append(f"{done.store.strange} unreadable")
    yield f"{verb} {jobs}, {freed} {size(done.freed)}. {size(done.left)} of {size(quota)} are used."
    yield f"Kept: {', '.join(kept)}."
    if done.incomplete:
        yield f"{verb} {done.incomplete} incomplete job {'directory' if done.incomplete == 1 else 'directories'}."


def _tree_lines(trees: Sequence[SettledWorktree], *, dry_run: bool) -> Iterator[str]:
    for tree in trees:
        if tree.kept:
            yield f"Kept the worktree {escape_control(tree.path)}: {escape_control(tree.kept)}."
        else:
            done = "Would remove" if dry_run else "Removed"
            yield f"{done} the worktree {escape_control(tree.path)}: it had no changes."


GC = Command(
    _run_gc,
    _gc_arguments,
    "Delete files of ended jobs: first those older than the age limit, then the oldest until the rest fits "
    "into the\n"
    "quota. Running jobs and jobs with unread notices are kept; the result of each job stays known. Worktrees "
    "of\n"
    "ended agents are removed too, unless they contain changes.",
    examples=("taskyard gc --dry-run", "taskyard gc --older-than 7d"),
)


DB_ROWS = {
    "status": CommandEntry("taskyard.cli.admin:STATUS", "Check the connection to the database and its schema version"),
    "upgrade": CommandEntry("taskyard.cli.admin:UPGRADE", "Create or upgrade the tables"),
}


def _db_arguments(parser: Parser) -> None:
    parser.add("--store", metavar="ADDRESS", help="postgresql://…; default: $TASKYARD_STORE or the setting `store`.")


def _address(args: Args) -> str:
    """Return the address of the configured database.

    Raises:
        UsageError: none is configured.
    """
    from taskyard.config import is_database_url

    found = args.store if args.store is not None else config.load_settings().store
    if not is_database_url(found):
        raise UsageError(
            "No database is configured.",
            "Set TASKYARD_STORE=postgresql://user@host/database, or `store` in config.toml.",
        )
    return str(found)


def _status(args: Args) -> int:
    from taskyard.config import database_label
    from taskyard.postgres import schema
    from taskyard.postgres.connection import connect, translate_errors

    address, known = _address(args), schema.expected_version()
    facts: dict[str, object] = {"where": database_label(address), "known": known}
    try:
        link = connect(address, check=False)
    except StoreAway as error:
        facts |= {"state": "disconnected", "why": error.why}
        return answer(args, lambda: facts, lambda: _db_lines(facts)) or error.exit_code
    try:
        with translate_errors(address):
            found = schema.version(link)
            facts |= {"state": _state(found, known), "schema": found, "server": link.info.server_version}
            facts |= _counts(link) if found == known else {}
    finally:
        link.close()
    return answer(args, lambda: facts, lambda: _db_lines(facts)) or (0 if facts["state"] == "ready" else 1)


def _state(found: int, known: int) -> str:
    return "ready" if found == known else "newer" if found > known else "older" if found else "empty"


def _counts(link: PgConnection) -> dict[str, object]:
    """Return the row counts, and the state `read_only` if this role may not write."""
    from taskyard.postgres import schema

    row = link.execute(
        "SELECT (SELECT count(*) FROM list), (SELECT count(*) FROM task WHERE NOT is_gone),"
        " (SELECT count(*) FROM instance WHERE until >= clock_timestamp()),"
        " (SELECT bool_and(has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'INSERT'))"
        "  FROM pg_tables WHERE schemaname = %s AND tablename <> 'migration')",
        [schema.SCHEMA],
    ).fetchone()
    assert row is not None
    return {"lists": row[0], "tasks": row[1], "agents": row[2], **({} if row[3] else {"state": "read_only"})}


def _db_lines(facts: dict[str, object]) -> list[str]:
    advice = {
        "ready": ", ".join(
            _count_text(facts.get(key), things)
            for key, things in (("lists", "lists"), ("tasks", "tasks"), ("agents", "live agents"))
        ),
        "read_only": "this role can read but not write: the owner of the tables can GRANT that",
        "empty": "no Taskyard tables yet: `taskyard db upgrade` creates them",
        "older": f"schema {facts.get('schema')}, this Taskyard requires {facts['known']}: run `taskyard db upgrade`",
        "disconnected": facts.get("why"),
        "newer": f"schema {facts.get('schema')}, this Taskyard supports {facts['known']}: install a newer one",
    }
    state = str(facts["state"])
    return [f"{state:<12}  {facts['where']}: {advice[state]}"]


def _count_text(count: object, things: str) -> str:
    return f"{count} {things[:-1] if count == 1 else things}"


def _upgrade(args: Args) -> int:
    from taskyard.config import database_label
    from taskyard.postgres import schema
    from taskyard.postgres.connection import connect, translate_errors

    address = _address(args)
    where = database_label(address)

    def tell(step: Migration) -> None:
        print_info(args, f"{step.number:04d} {step.name.replace('_', ' ')} …")

    link = connect(address, check=False)
    try:
        with translate_errors(address):
            taken = schema.upgrade(link, where, tell)
    finally:
        link.close()
    done = [{"number": step.number, "name": step.name} for step in taken]
    text = (
        f"{where} has schema {schema.expected_version()}."
        if taken
        else f"{where} already has schema {schema.expected_version()}."
    )
    return answer(args, lambda: {"where": where, "schema": schema.expected_version(), "taken": done}, lambda: [text])


STATUS = Command(
    _status,
    _db_arguments,
    "Check whether the database in the setting `store` can be reached and whether its tables have the schema "
    "of this\n"
    "version.",
    examples=("taskyard db status", "taskyard db status --json"),
    exits=("1  the tables have another version, or are not writable", "75  the database cannot be reached now"),
)

UPGRADE = Command(
    _upgrade,
    _db_arguments,
    "Create Taskyard's tables in a database, or upgrade them to this version. Concurrent upgrades are safe: "
    "one process\n"
    "does the work. Older Taskyard versions then refuse to use the database, with an error message.",
    examples=("TASKYARD_STORE=postgresql://ada@db.example/yard taskyard db upgrade",),
)


class TrustRequest(NamedTuple):
    """A set of commands that run once trusted."""

    kind: str  #: "project", "git" or "acceptance"
    path: str  #: the project's root, or the folder the command would run in
    commands: tuple[str, ...]
    is_trusted: bool
    of: str  #: what it belongs to, in words
    task: Task | None = None  #: the task of an acceptance command


def _trust_arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, nargs="?", metavar="ID", help="Task whose acceptance command to trust.")
    parser.add("--all", action="store_true", help="Trust the project's hooks and all acceptance commands on the list.")
    parser.add("--trusted", action="store_true", help="Only list what is trusted, in all projects.")
    parser.add("--revoke", action="store_true", help="Revoke the trust instead.")
    parser.add("--yes", "-y", action="store_true", help="Skip the confirmation.")


def _run_trust(args: Args) -> int:
    if args.trusted:
        return _show_trusted(args)
    if args.id and args.all:
        raise UsageError("Give either a task ID or --all.")
    with open_yard(args) as yard:
        found = list(_trust_requests(args, yard))
    if args.revoke:
        return _revoke_all(args, found)
    wanted = [one for one in found if not one.is_trusted]
    if not wanted:
        return answer(args, list, lambda: ["Nothing to trust here."])
    if not args.as_json:
        for line in _trust_lines(wanted):
            print_line(line)
    confirm(args, "Allow these commands to run as you?")
    for one in wanted:
        _allow(one)
    lines = [f"Trusted: {escape_control(one.of)}" for one in wanted]
    return answer(args, lambda: _trust_json(wanted), lambda: lines) or _complete_finished(args, wanted)


def _complete_finished(args: Args, wanted: Sequence[TrustRequest]) -> int:
    """Complete the tasks that were finished and only waited for this trust."""
    failed = False
    for one in wanted:
        waits = as_object(one.task.extra.get("awaiting")) if one.task is not None else None
        if one.task is None or waits is None or one.task.is_done:
            continue
        folder = str(waits.get("cwd") or "")
        cwd = folder if os.path.isdir(folder) else None
        try:
            with open_yard(args, cwd=cwd) as yard:
                yard.tasks.update(one.task.id, status="completed", clear=("awaiting",))
        except TaskyardError as error:
            failed = True
            warn(f"Task #{one.task.id} is not completed: {error}")
        else:
            print_info(args, f"Completed #{one.task.id}, which was waiting for this.")
    return 1 if failed else 0


def _revoke_all(args: Args, found: Sequence[TrustRequest]) -> int:
    done = [one for one in found if _revoke(one)]

    def lines() -> list[str]:
        return [f"No longer trusted: {escape_control(one.of)}" for one in done] or ["None of it was trusted."]

    return answer(args, lambda: _trust_json(done), lines)


def _trust_requests(args: Args, yard: Yard) -> Iterator[TrustRequest]:
    from taskyard.yard import current_project_root

    root = current_project_root()
    if args.id is None and root is not None:
        yield from _project_requests(root, even_without=args.revoke)
        yield from _git_requests(root, even_without=args.revoke)
    if args.id is not None:
        found = _task_request(yard.tasks.get(args.id))
        if found is None:
            raise NotFound(f"Task #{args.id} has no acceptance command.")
        yield found
    elif args.all:
        yield from (found for task in yard.tasks.list() if (found := _task_request(task)) is not None)


def _project_requests(root: str, *, even_without: bool) -> Iterator[TrustRequest]:
    """Yield the project's hooks; trust in hooks that have changed or are gone can be revoked too."""
    from taskyard.integrations.hooks import load_hooks

    commands = load_hooks(root).project_commands
    if commands or even_without:
        trusted = trust.is_project_trusted(root, commands)
        yield TrustRequest("project", os.path.realpath(root), commands, trusted, f"hooks of the project {root}")


def _git_requests(root: str, *, even_without: bool) -> Iterator[TrustRequest]:
    """Yield the programs named by the repository's own configuration, such as filters."""
    if not os.path.lexists(os.path.join(root, ".git")):
        return
    from taskyard.jobs.worktrees import repository_programs

    programs = repository_programs(root)
    if programs or even_without:
        trusted = trust.is_git_trusted(root, programs)
        yield TrustRequest(
            "git", os.path.realpath(root), programs, trusted, f"programs in the git configuration of {root}"
        )


def _task_request(task: Task) -> TrustRequest | None:
    from taskyard.integrations.acceptance import check_acceptance

    spec = task.extra.get("acceptance")
    if spec is None:
        return None
    try:
        found = check_acceptance(spec, folder=os.getcwd())
    except TaskyardError:
        return None  # an invalid command cannot run and needs no trust
    trusted = trust.is_command_trusted(found.command, found.trusted_at)
    of = f"acceptance of #{task.id} {task.subject}"
    return TrustRequest("acceptance", found.trusted_at, (found.command,), trusted, of, task)


def _allow(one: TrustRequest) -> None:
    if one.kind == "project":
        trust.trust_project(one.path, one.commands)
    elif one.kind == "git":
        trust.trust_git(one.path, one.commands)
    else:
        trust.trust_command(one.commands[0], one.path)


def _revoke(one: TrustRequest) -> bool:
    if one.kind == "acceptance":
        return trust.revoke(one.path, one.commands[0])
    return trust.revoke(one.path, kind=one.kind)


def _trust_lines(wanted: Sequence[TrustRequest]) -> Iterator[str]:
    for one in wanted:
        yield f"{escape_control(one.of)}, in {escape_control(one.path)}:"
        for command in one.commands:
            yield from (f"    {escape_control(line)}" for line in command.splitlines())


def _trust_json(wanted: Sequence[TrustRequest]) -> list[dict[str, object]]:
    return [{"kind": one.kind, "path": one.path, "commands": list(one.commands)} for one in wanted]


def _show_trusted(args: Args) -> int:
    found = trust.list_trusted()
    data = [one._asdict() for one in found]
    known = [TrustRequest(one.kind, one.path, one.commands, True, _kind_text(one.kind)) for one in found]
    return answer(args, lambda: data, lambda: list(_trust_lines(known)) or ["Nothing is trusted."])


def _kind_text(kind: str) -> str:
    names = {"project": "hooks of a project", "git": "programs in a project's git configuration"}
    return names.get(kind, "an acceptance command")


TRUST = Command(
    _run_trust,
    _trust_arguments,
    "Show the hooks and git filters that came with this project, or acceptance commands of tasks, and allow "
    "them to\n"
    "run. They were written by other people: read them first. After any change they must be trusted again.",
    examples=("taskyard trust", "taskyard trust 12", "taskyard trust --all --yes", "taskyard trust --trusted"),
    exits=(
        "1  a task that was waiting for this could not be completed",
        "2  no terminal to ask on: use --yes",
        "130  you declined",
    ),
)


if TYPE_CHECKING:

    class ListFacts(TypedDict):
        """One list, as `--json` shows it."""

        name: str
        open: int
        done: int
        damaged: int
        changed_at: int | None
        current: bool
        why: str | None


LISTS_ROWS = {
    "": CommandEntry("taskyard.cli.admin:LISTS", "List all task lists and show which one is current"),
    "use": CommandEntry("taskyard.cli.admin:USE", "Make a list the current one of this shell"),
}


def open_lists(args: Args) -> Lists:
    """Return the lists given by the arguments."""
    from taskyard.yard import default_lists

    announce_waits(args)
    return default_lists(args.tasks_dir)


def _run_lists(args: Args) -> int:
    lists = open_lists(args)
    current = config.list_name(args.list)
    found = [_lists_facts(lists, name, current, args.list) for name in lists.names()]
    if not any(facts["current"] for facts in found):
        print_info(args, f"The current list is {current!r}, by {list_source(args.list)}. It has no tasks yet.")
    return answer(args, lambda: found, lambda: _lists_lines(found), ids=(facts["name"] for facts in found))


def _lists_facts(lists: Lists, name: str, current: str, chosen: str | None) -> ListFacts:
    found = lists.count(name)
    is_current = name == current
    return {
        "name": name,
        "open": found.open,
        "done": found.done,
        "damaged": found.damaged,
        "changed_at": found.changed_at,
        "current": is_current,
        "why": list_source(chosen) if is_current else None,
    }


def _lists_lines(found: list[ListFacts]) -> Iterator[str]:
    from taskyard.core.system import now_ms

    widest = max((width(facts["name"]) for facts in found), default=0)
    for facts in found:
        age = "" if facts["changed_at"] is None else f"{duration((now_ms() - facts['changed_at']) / 1000)} ago"
        damaged = f", {facts['damaged']} unreadable" if facts["damaged"] else ""
        counts = f"{facts['open']} open, {facts['done']} done{damaged}"
        reason = f"  current, by {facts['why']}" if facts["current"] else ""
        mark = "*" if facts["current"] else " "
        yield f"{mark} {padded(escape_control(facts['name']), widest)}  {padded(counts, 20)}  {age}{reason}".rstrip()


def _use_arguments(parser: Parser) -> None:
    parser.add("name", metavar="LIST", help="List name; need not exist yet.")
    parser.add(
        "--shell",
        choices=("bash", "zsh", "fish"),
        default="bash",
        help="Shell to print the command for; default: bash.",
    )
    parser.add("--existing", action="store_true", help="Fail if the list does not exist.")


def _use(args: Args) -> int:
    if args.list is not None:
        raise UsageError("Give a list name: `taskyard lists use NAME`.")
    name = folder_name("a list", args.name)
    if args.existing and name not in (known := open_lists(args).names()):
        raise ListNotFound(name, nearest=nearest(name, known))
    # A folder name needs no quoting: it has only letters, digits, _ and -.
    command = (
        f"set -gx CLAUDE_CODE_TASK_LIST_ID {name}"
        if args.shell == "fish"
        else f"export CLAUDE_CODE_TASK_LIST_ID={name}"
    )
    if os.environ.get("TASKYARD_LIST"):
        print_info(args, "TASKYARD_LIST is set and takes precedence: unset it first.")
    return answer(args, lambda: {"list": name, "command": command}, lambda: [command], ids=[command])


LISTS = Command(
    _run_lists,
    about="List all task lists: open and completed tasks, last change, which list is current, and why.\n"
    "`taskyard lists use NAME` makes a list the current one.",
    examples=("taskyard lists", 'eval "$(taskyard lists use release)"'),
)
USE = Command(
    _use,
    _use_arguments,
    "Print the shell command that makes a list the current one, for Taskyard and Claude Code.",
    examples=('eval "$(taskyard lists use release)"', "taskyard lists use release --shell fish | source"),
)


REMOTE_ROWS = {
    "": CommandEntry("taskyard.cli.admin:LIST", "Remotes that run agents"),
    "list": CommandEntry("taskyard.cli.admin:LIST", "List the configured remotes"),
    "check": CommandEntry("taskyard.cli.admin:CHECK", "Test the connection to each remote"),
}

#: Exit codes of a check: a permanent problem, and one that may pass.
_EXIT_FAILED, _EXIT_AWAY = 1, 75

_NONE = "No remotes are configured. Add a table [remotes.NAME] with backend and url to config.toml."


def _list(args: Args) -> int:
    wrong: list[str] = []
    found = list(load_remotes(report=lambda _, error: wrong.append(str(error))).values())
    if not found and not wrong:
        print_info(args, _NONE)
    return answer(
        args,
        lambda: [_remote_facts(one) for one in found],
        lambda: _remote_lines(found),
        ids=(one.name for one in found),
        warnings=wrong,
    )


def _remote_facts(one: Remote) -> dict[str, object]:
    """Return a remote as JSON values; where its token is, never the token."""
    from taskyard.jobs.remote.check import redact_url

    return {
        "name": one.name,
        "backend": one.backend,
        "url": redact_url(one.url) or None,
        "token_env": one.token_env or None,
        "token_keyring": one.token_keyring or None,
        "command": one.command or None,
    }


def _remote_lines(found: Sequence[Remote]) -> Iterator[str]:
    from taskyard.jobs.remote.check import redact_url

    names = max((width(one.name) for one in found), default=0)
    kinds = max((width(one.backend) for one in found), default=0)
    for one in found:
        token = (
            f"  token in ${one.token_env}" if one.token_env else "  token in the keyring" if one.token_keyring else ""
        )
        yield (
            f"{padded(escape_control(one.name), names)}  {padded(escape_control(one.backend), kinds)}"
            f"  {escape_control(redact_url(one.url))}{token}"
        ).rstrip()


def _check_arguments(parser: Parser) -> None:
    parser.add("remote", nargs="?", metavar="REMOTE", help="Remote to check; default: all.")


def _check(args: Args) -> int:
    import asyncio

    from taskyard.jobs.remote.check import bad_table_result, check

    unread: list[CheckResult] = []

    def report(name: str, error: UsageError) -> None:
        unread.append(bad_table_result(name, error))

    wanted = list(load_remotes(report=report).values()) if args.remote is None else [find_remote(args.remote)]

    async def all_checked() -> list[CheckResult]:
        return await asyncio.gather(*map(check, wanted))

    found = [*asyncio.run(all_checked()), *unread]
    if not found:
        print_info(args, _NONE)
    wrong = [one for one in found if one.problem]
    if args.as_json:
        print_json({"data": [{**one._asdict(), "ok": not one.problem} for one in found]})
    else:
        for line in (one.remote for one in wrong) if args.quiet else _checked_lines(found):
            print_line(line)
    return 0 if not wrong else _EXIT_AWAY if all(one.is_away for one in wrong) else _EXIT_FAILED


def _checked_lines(found: Iterable[CheckResult]) -> Iterator[str]:
    for one in found:
        where = (
            f"{escape_control(one.backend)} at {escape_control(one.url)}" if one.url else escape_control(one.backend)
        )
        named = f"{escape_control(one.remote)} ({where})" if where else escape_control(one.remote)
        yield f"{'✗' if one.problem else '✓'} {named}: {escape_control(one.said)}"
        if one.problem and one.advice:
            yield f"  → {escape_control(one.advice)}"


LIST = Command(
    _list,
    about="List the remotes configured in config.toml. `taskyard remote check` tests the connection to each "
    "remote,\n"
    "`taskyard agent PROMPT --remote NAME` runs an agent on one.",
    examples=("taskyard remote list", "taskyard remote list --json"),
)

CHECK = Command(
    _check,
    _check_arguments,
    "Test the connection to remotes step by step: configuration, token, host, and the service behind it. No "
    "session is\n"
    "started. For each problem the next step is printed; with -q only the names of remotes with problems.",
    examples=("taskyard remote check", "taskyard remote check cluster", "taskyard remote check --json"),
    exits=(
        "1   a remote has a problem",
        "4   no such remote is configured",
        "75  a remote cannot be reached now",
    ),
)
