"""Shell completion: `taskyard __complete -- WORDS…` and the scripts of `taskyard completions`.

The last word is the one being typed, perhaps empty. Prints lines of `candidate<TAB>description`; nothing, with
exit code 0, if nothing is known or on any failure: Tab must never print an error. All lookups are read-only:
they create, lock and log nothing.
"""

from __future__ import annotations

import argparse
import os

from taskyard import config
from taskyard.cli.main import Command, CommandEntry, ResolvedCommand
from taskyard.cli.output import answer, print_line
from taskyard.cli.parser import id_list, task_id
from taskyard.core.text import escape_control
from taskyard.core.values import as_object, as_text
from taskyard.errors import TaskyardError
from taskyard.jobs.job_text import state_text
from taskyard.jobs.model import JobStatus, is_job_id
from taskyard.jobs.query import peek

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from taskyard.agents.teams import Team
    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.model import Job
    from taskyard.tasks.lists import Lists
    from taskyard.tasks.model import Listing, Task


if TYPE_CHECKING:
    Candidate = tuple[str, str]  #: text to insert, and its description

#: Kind of value by metavar. Others, such as NAME for a new name, are left to the shell.
_KINDS = {
    "AGENT": "agents",
    "LIST": "lists",
    "WORD": "labels",
    "STATUS": "statuses",
    "ID": "ids",
    "JOB": "jobs",
    "RUN": "runs",
    "TEAM": "teams",
    "ENGINE": "engines",
    "CALLER": "callers",
    "SKILL": "skills",
    "REMOTE": "remotes",
    "PROBLEM": "problems",
}

#: The same for the options that may precede any command.
_COMMON = {"--list": "lists", "--by": "agents", "--tasks-dir": ""}

_MAX_CANDIDATES = 200  #: more candidates are of no use

_TIMEOUT = 1.0  #: seconds after which completion is given up


def candidates(words: Sequence[str]) -> list[Candidate]:
    """Return the candidates for the last of `words`."""
    from taskyard.cli.main import find_command

    *before, current = words or [""]
    try:
        if before and (kind := _COMMON.get(before[-1])) is not None:
            return _with_prefix(current, _values_of_kind(kind, before, ""))
        found, rest, names = find_command(before)
        if not isinstance(found, ResolvedCommand):
            return _with_prefix(current, _commands(found)) if not current.startswith("-") else []
        parser = _parser(found)
        offered = list(_verbs(names)) if before[-1:] == [names[-1]] else []
        return [*_with_prefix(current, offered), *_complete_arguments(parser, found, rest, current, before)]
    except (TaskyardError, SystemExit, OSError):
        return []


def _candidates_in_time(words: Sequence[str]) -> list[Candidate]:
    """Return the candidates within `_TIMEOUT`: a database may be slow or unavailable."""
    from taskyard import config

    try:
        if config.load_settings().store == "files":
            return candidates(words)
    except TaskyardError:
        return []
    import threading

    from taskyard.postgres.deadline import max_wait

    found: list[Candidate] = []

    def look() -> None:
        with max_wait(0.0):
            found.extend(candidates(words))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_TIMEOUT)
    return found if not thread.is_alive() else []


def _run_complete(args: Args) -> int:
    for text, meaning in _candidates_in_time(args.words)[:_MAX_CANDIDATES]:
        print_line(f"{text}\t{escape_control(meaning)}")
    return 0


def _parser(found: ResolvedCommand) -> Parser:
    from taskyard.cli.parser import Parser

    return Parser(found)


def _commands(table: Mapping[str, CommandEntry]) -> Iterator[Candidate]:
    for name, row in table.items():
        if name and not row.hidden:
            yield name, row.help


def _verbs(names: tuple[str, ...]) -> Iterator[Candidate]:
    """Yield the verbs of a group that is also a command, such as `lists`."""
    from taskyard.cli.main import COMMANDS, load_entry

    if len(names) == 1 and not isinstance(table := load_entry(COMMANDS[names[0]]), Command):
        yield from _commands(table)


def _complete_arguments(
    parser: Parser, found: ResolvedCommand, rest: Sequence[str], current: str, words: Sequence[str]
) -> Iterator[Candidate]:
    if "--" in rest:
        return  # the words of another command: the shell completes files
    option, typed = _open_option(parser, rest), current
    if current.startswith("--") and "=" in current:
        name, _, typed = current.partition("=")
        option = parser.options.get(name)
        prefix = f"{name}="
        if option is not None:
            yield from ((prefix + text, meaning) for text, meaning in _values(option, typed, words))
        return
    if option is not None and not current.startswith("-"):
        yield from _values(option, current, words)
        if not (option.nargs in ("?", "*", "+") or parser.takes_ids(option)):
            return
    if current.startswith("-"):
        shown = ((name, action.help or "") for name, action in parser.options.items() if name.startswith("--"))
        yield from _with_prefix(current, shown)
    elif option is None and (positional := _positional(parser, rest)) is not None:
        yield from _values(positional, current, words, verb=found.words[-1])


def _open_option(parser: Parser, rest: Sequence[str]) -> argparse.Action | None:
    """Return the option whose value is being typed."""
    for word in reversed(rest):
        action = parser.options.get(word)
        if action is not None:
            return action if action.nargs != 0 and _still_takes(parser, action, rest, word) else None
        if word.startswith("-"):
            return None
    return None


def _still_takes(parser: Parser, action: argparse.Action, rest: Sequence[str], word: str) -> bool:
    given = len(rest) - 1 - max(at for at, text in enumerate(rest) if text == word)
    return given == 0 or action.nargs in ("*", "+") or parser.takes_ids(action)


def _positional(parser: Parser, rest: Sequence[str]) -> argparse.Action | None:
    """Return the next positional argument."""
    taken, skip = 0, False
    for word in rest:
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            action = parser.options.get(word)
            skip = action is not None and action.nargs != 0
        else:
            taken += 1
    positionals = [action for action in parser.known if not action.option_strings]
    if taken < len(positionals):
        return positionals[taken]
    return positionals[-1] if positionals and positionals[-1].nargs in ("*", "+") else None


def _values(action: argparse.Action, typed: str, words: Sequence[str], *, verb: str = "") -> Iterator[Candidate]:
    if action.choices is not None:
        yield from _with_prefix(typed, ((str(choice), "") for choice in action.choices))
        return
    kind = "ids" if action.type in (task_id, id_list) else _KINDS.get(str(action.metavar), "")
    done, _, last = typed.rpartition(",") if action.type is id_list else ("", "", typed)
    lead = f"{done}," if done else ""
    if kind == "jobs":
        yield from job_candidates(verb, typed)
        return
    for text, meaning in _values_of_kind(kind, words, verb):
        if text.startswith(last):
            yield lead + text, meaning


def _values_of_kind(kind: str, words: Sequence[str], verb: str) -> Iterable[Candidate]:
    if kind == "lists":
        return [(name, "") for name in _lists(words)]
    if kind == "statuses":
        return [("pending", ""), ("in_progress", ""), ("completed", "")]
    if kind == "runs":
        return [(name, "") for name in _runs()]
    if kind in ("teams", "engines"):
        return team_candidates() if kind == "teams" else engine_candidates()
    if kind in ("callers", "skills"):
        return caller_candidates() if kind == "callers" else skill_candidates()
    if kind in ("problems", "remotes"):
        return _problems() if kind == "problems" else _remotes()
    if kind not in ("ids", "agents", "labels"):
        return []
    listing = _listing(words)
    if kind == "ids":
        return [(task.id, task.subject) for task in listing if _task_matches(task, verb)]
    if kind == "labels":
        from taskyard.tasks.model import labels_of

        return [(label, "") for label in sorted({label for task in listing for label in labels_of(task)})]

    names = {task.owner for task in listing if task.owner} | member_names(words)
    return [(name, "") for name in sorted(names | {name for name in [os.environ.get("TASKYARD_AGENT")] if name})]


def _problems() -> list[Candidate]:
    """Return what `doctor --fix` repairs by name."""
    from taskyard.tasks.doctor.finding import FINDING_KINDS

    return [(name, found.about) for name, found in FINDING_KINDS.items() if found.can_fix]


def _remotes() -> list[Candidate]:
    from taskyard.jobs.remote.remotes import load_remotes

    return [(one.name, f"{one.backend} {one.url}") for one in load_remotes(report=lambda _name, _error: None).values()]


def _task_matches(task: Task, verb: str) -> bool:
    """Return whether a verb applies to this task: a completed one cannot be started."""
    if task.is_internal:
        return False
    if verb in ("start", "claim", "done", "release", "renew", "block"):
        return not task.is_done
    return task.is_done if verb == "reopen" else True


def _named_lists(words: Sequence[str]) -> tuple[Lists, str | None]:
    """Return all lists of the place given by the words before the cursor, and the list."""
    from taskyard.yard import default_lists

    given: dict[str, str] = {}
    for before, after in zip(words, (*words[1:], "")):
        given[before] = after
    for word in words:
        name, sign, value = word.partition("=")
        if sign:
            given[name] = value
    return default_lists(given.get("--tasks-dir") or None), given.get("--list")


def _lists(words: Sequence[str]) -> list[str]:
    return _named_lists(words)[0].names()


def _runs() -> list[str]:
    """Return the known workflow runs, newest first."""
    from taskyard import config

    try:
        with os.scandir(f"{config.home()}/workflows") as entries:
            return [entry.name for entry in sorted(entries, key=lambda entry: -entry.stat().st_mtime)]
    except OSError:
        return []


def _listing(words: Sequence[str]) -> Listing:
    """Return the tasks by a read that creates, locks and logs nothing."""
    from taskyard import config

    lists, chosen = _named_lists(words)
    return lists.look(config.list_name(chosen))


def _with_prefix(typed: str, found: Iterable[Candidate]) -> list[Candidate]:
    return [(text, meaning) for text, meaning in found if text.startswith(typed)]


def _take_words(parser: Parser) -> None:
    parser.add("words", nargs="*", metavar="WORD", help="Words of the command line up to the cursor.")


COMPLETE = Command(_run_complete, _take_words, "Print completion candidates for the last word, one per line.")


def caller_candidates() -> list[tuple[str, str]]:
    """Return all callers that have a token."""
    from taskyard.servers.a2a import skills

    return [(name, "") for name in skills.list_callers(config.home())]


def skill_candidates() -> list[tuple[str, str]]:
    """Return the skills in config.toml."""
    found = as_object((as_object(config.read_config_file(os.environ).get("a2a")) or {}).get("skills")) or {}
    return [(name, as_text((as_object(table) or {}).get("description"))) for name, table in found.items()]


#: Verbs that apply to an ended job.
_ENDED_VERBS = ("logs", "wait")

#: Maximum jobs read: for an older one the user knows the id.
_MAX_JOBS = 200


def job_candidates(verb: str, typed: str) -> list[tuple[str, str]]:
    """Return ids that begin with `typed`, with descriptions; for `logs` and `wait` also ended jobs, last."""
    found = list(_jobs(typed, ended=verb in _ENDED_VERBS))
    found = [job for job in found if _job_matches(job, verb)]
    found.sort(key=lambda job: (job.is_final, -job.start_time))
    return [(job.id, f"{state_text(job)}: {job.description}") for job in found]


def _jobs(typed: str, *, ended: bool) -> Iterator[Job]:
    home = config.home()
    try:
        with os.scandir(f"{home}/jobs") as entries:
            folders = [
                (entry.stat(follow_symlinks=False).st_mtime, entry.name)
                for entry in entries
                if _entry_matches(entry, typed)
            ]
    except OSError:
        return
    if not ended:
        folders = [(at, name) for at, name in folders if not os.path.lexists(f"{home}/jobs/{name}/end.json")]
    for _, name in sorted(folders, reverse=True)[:_MAX_JOBS]:
        if (job := peek(home, name)) is not None:
            yield job


def _entry_matches(entry: os.DirEntry[str], typed: str) -> bool:
    return entry.name.startswith(typed) and is_job_id(entry.name)


def _job_matches(job: Job, verb: str) -> bool:
    """Return whether a verb applies to this job: `send` needs one that reads input."""
    if verb in _ENDED_VERBS:
        return True
    if job.is_final:
        return False
    if verb == "send":
        return job.takes_input and job.status is JobStatus.RUNNING
    if verb == "resume":
        return job.is_paused
    return job.status is JobStatus.RUNNING and not job.is_paused if verb == "pause" else True


def team_candidates() -> list[tuple[str, str]]:
    """Return every team, ours and Claude Code's, with its number of members."""
    return [(team.name, f"{len(team.members)} members") for team in _all_teams()]


def member_names(words: Sequence[str]) -> set[str]:
    """Return the members of the teams named before the cursor."""
    return {member.name for team in _all_teams() if team.name in words for member in team.members}


def engine_candidates() -> list[tuple[str, str]]:
    """Return the engines available here."""
    from taskyard.agents.engines.provider import list_engines

    return [(one.name, one.about) for one in list_engines() if one.is_ready]


def _all_teams() -> tuple[Team, ...]:
    from taskyard.yard import open_teams

    return open_teams(config.load_settings()._replace(database_patience=0), config.home()).list()


# Each script passes the words up to and including the one under the cursor, and reads lines of
# `candidate<TAB>description`. Words are passed as arguments, never through `eval`.
_BASH = r"""# bash completion for taskyard; in ~/.bashrc: eval "$(taskyard completions bash)"
_taskyard() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")")
    done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 0 ]] && compopt -o default
    return 0
}
complete -F _taskyard taskyard
"""

_ZSH = r"""#compdef taskyard
# zsh completion for taskyard; in ~/.zshrc, after compinit: eval "$(taskyard completions zsh)"
_taskyard() {
    local line
    local -a candidates
    while IFS= read -r line; do
        candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <("${words[1]}" __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( ${#candidates} )); then
        _describe -V 'taskyard' candidates
    else
        _files
    fi
}
compdef _taskyard taskyard
"""

_FISH = r"""# fish completion for taskyard; in config.fish: taskyard completions fish | source
function __taskyard_complete
    set -l words (commandline -opc) (commandline -ct)
    command $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c taskyard -f -k -a '(__taskyard_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def _completions_arguments(parser: Parser) -> None:
    parser.add("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="Shell: bash, zsh or fish.")


def _run_completions(args: Args) -> int:
    script = SCRIPTS[args.shell].rstrip("\n")
    return answer(args, lambda: {"shell": args.shell, "script": script}, lambda: [script], ids=[script])


COMPLETIONS = Command(
    _run_completions,
    _completions_arguments,
    "Print the completion script for a shell. It completes commands, options, lists, agents, task ids with "
    "their\n"
    "subjects and job ids with their descriptions, as of the moment you press Tab.",
    examples=('eval "$(taskyard completions bash)"', "taskyard completions fish | source"),
)
