"""Git worktrees of jobs: create them, and remove or keep them when the job has ended.

git is run with timeouts, without prompts, and without programs named by a repository's own configuration
(hooks, file system monitor, filters, ssh commands): the author of an archive, or of a bare repository
hidden in a clone, may have chosen them. Filters and the like of `.git/config` run once the user trusts them
(`taskyard trust`): git-lfs is such a filter. Hooks and the monitor stay off. Programs of the user's and the
system's settings are used.

A worktree is `worktrees/<job>` in Taskyard's home, on a branch `taskyard/<job>` that begins at the commit
checked out where the job was started. While the job runs it is locked against pruning. When the job has
ended it is removed if no work is in it: no change, no untracked file, no commit that is in no other branch,
no unfinished merge or rebase. Otherwise it is kept, with the reason. The same holds for each submodule in
it: those have repositories of their own inside the worktree's git folder, and are removed with it.

git does not synchronise processes that add or remove worktrees of one repository. A lock file in the
repository's git folder serialises ours; on conflicts with another program git is retried for a while.

`worktrees/<job>.json` is written first and removed last: after a crash, `settle_worktree` continues from
its state.

    making     not used by the job yet
    made       may have work in it
    removing   was found to have no work in it

A worktree kept for the work in it has `kept` there: the user decides about it, and it is checked again only
on the user's request.
"""

from __future__ import annotations

import json
import os
import re
import time

from taskyard import config
from taskyard.core import files
from taskyard.core.system import proc_folder
from taskyard.core.values import NamedTuple
from taskyard.errors import Busy, JobNotFound, StorageError, TaskyardError
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.model import is_job_id
from taskyard.jobs.query import read_job
from taskyard.storage.locks import RangeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


#: Settings of every call, whatever the repository configures.
_FIXED = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "gc.auto=0",
    "maintenance.auto=false",
    "log.showSignature=false",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
)

#: Most characters kept of git's error message.
_MAX_ERROR = 500

#: Seconds for a query.
GIT_TIMEOUT = 60.0

#: Settings that name a program, each with its replacement where the repository's value is not trusted. git
#: writes section and variable in lower case.
_PROGRAMS = (
    (re.compile(r"filter\..*\.(clean|smudge|process)"), ""),
    (re.compile(r"diff\.(.*\.)?(command|textconv|external)"), ""),
    (re.compile(r"merge\..*\.driver"), ""),
    (re.compile(r"core\.(gitproxy|askpass|alternaterefscommand)"), ""),
    (re.compile(r"credential\.(.*\.)?helper"), ""),
    (re.compile(r"trailer\..*\.(command|cmd)"), ""),
    (re.compile(r"core\.sshcommand"), "ssh"),
    (re.compile(r"(core|sequence)\.editor"), ":"),
    (re.compile(r"gpg\.(.*\.)?program"), "false"),
    (re.compile(r"gpg\.ssh\.defaultkeycommand"), ""),
    (re.compile(r"remote\..*\.uploadpack"), "git-upload-pack"),
    (re.compile(r"remote\..*\.receivepack"), "git-receive-pack"),
    (re.compile(r"submodule\..*\.update"), "checkout"),
)

#: git's variables that define identity and settings files. Those that define locations are not passed on.
_PASSED_VARS = (
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM",
)  # fmt: skip


class GitResult(NamedTuple):
    """Result of a git command."""

    output: bytes
    error: str = ""  #: why it failed; empty if it did not

    @property
    def text(self) -> str:
        """The output without its final newline."""
        return os.fsdecode(self.output).rstrip("\n")


class _Setting(NamedTuple):
    scope: str
    key: str
    value: str

    @property
    def is_of_repository(self) -> bool:
        return self.scope not in ("system", "global", "command")


def git(folder: str, *words: str, timeout: float = GIT_TIMEOUT) -> GitResult:
    """Run git on the repository around `folder`; programs in its own configuration run only if trusted."""
    if bare := _enclosing_bare(folder):
        return GitResult(b"", f"{bare} is a bare repository inside another folder, and not used")
    listed = _settings(folder)
    if isinstance(listed, GitResult):
        return listed
    return _run(folder, words, timeout, () if _is_trusted(folder, listed) else _overrides(listed))


def git_dir(folder: str, *words: str, timeout: float = GIT_TIMEOUT) -> GitResult:
    """Query the history in the git folder `folder`, such as a submodule's; no files are read or written."""
    return _run(folder, (f"--git-dir={folder}", f"--work-tree={folder}", *words), timeout)


def repository_programs(folder: str) -> tuple[str, ...]:
    """Return the programs named by the configuration of the repository around `folder`, as `key = value`."""
    listed = () if _enclosing_bare(folder) else _settings(folder)
    return () if isinstance(listed, GitResult) else _programs(listed)


def untrusted_programs(folder: str) -> tuple[str, ...]:
    """Return those of `repository_programs` that do not run, because the user does not trust them."""
    listed = () if _enclosing_bare(folder) else _settings(folder)
    return () if isinstance(listed, GitResult) or _is_trusted(folder, listed) else _programs(listed)


def _is_trusted(folder: str, listed: tuple[_Setting, ...]) -> bool:
    programs = _programs(listed)
    if not programs:
        return True
    from taskyard.storage.trust import is_git_trusted

    try:
        return is_git_trusted(config.project(folder).root, programs)
    except TaskyardError:
        return False


def _programs(listed: Iterable[_Setting]) -> tuple[str, ...]:
    found = (one for one in listed if one.is_of_repository and one.value and _neutral_value(one.key) is not None)
    return tuple(sorted({f"{one.key} = {one.value}" for one in found}))


def _overrides(listed: tuple[_Setting, ...]) -> list[tuple[str, str]]:
    """Return overrides that replace the repository's programs by the user's settings, or neutral ones."""
    found: list[tuple[str, str]] = []
    for key in dict.fromkeys(one.key for one in listed if one.is_of_repository):
        if (neutral := _neutral_value(key)) is not None:
            found.append((key, neutral))
            found += ((key, one.value) for one in listed if one.key == key and not one.is_of_repository)
            if key.startswith("filter."):
                found.append((f"{key.rpartition('.')[0]}.required", "false"))
    return found


def _neutral_value(key: str) -> str | None:
    return next((value for pattern, value in _PROGRAMS if pattern.fullmatch(key)), None)


def _settings(folder: str) -> tuple[_Setting, ...] | GitResult:
    said = _run(folder, ("config", "--list", "--show-scope", "-z"), GIT_TIMEOUT)
    if said.error:
        return said
    parts = os.fsdecode(said.output).split("\0")
    pairs = zip(parts[::2], parts[1::2], strict=False)
    return tuple(_Setting(scope, *_split(entry)) for scope, entry in pairs)


def _split(entry: str) -> tuple[str, str]:
    key, _, value = entry.partition("\n")
    return key, value


def _enclosing_bare(folder: str) -> str:
    """Return the bare repository that git older than 2.38 would find around `folder` before a `.git`; "" if none."""
    here = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(here, ".git")):
        looks_bare = os.path.lexists(os.path.join(here, "HEAD")) and (
            os.path.isdir(os.path.join(here, "objects")) or os.path.lexists(os.path.join(here, "commondir"))
        )
        if looks_bare and os.path.basename(here) != ".git":
            return here
        parent = os.path.dirname(here)
        if parent == here:
            break
        here = parent
    return ""


def _run(folder: str, words: tuple[str, ...], timeout: float, overrides: Iterable[tuple[str, str]] = ()) -> GitResult:
    import subprocess

    fixed = [word for setting in _FIXED for word in ("-c", setting)]
    try:
        done = subprocess.run(  # an argument list, no shell
            ["git", "-C", folder, *fixed, *words],  # the user's own git
            env=_environment(list(overrides)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        return GitResult(b"", "git is not installed")
    except subprocess.TimeoutExpired:
        return GitResult(b"", f"git {words[0]} took longer than {timeout:g} s")
    except OSError as error:
        return GitResult(b"", f"git cannot be started: {error.strerror}")
    if done.returncode == 0:
        return GitResult(done.stdout)
    message = " ".join(done.stderr.decode("utf-8", "replace").split())[-_MAX_ERROR:]
    return GitResult(done.stdout, message or f"git {words[0]} ended with exit code {done.returncode}")


def _environment(overrides: list[tuple[str, str]]) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {name: value for name in _PASSED_VARS if (value := os.environ.get(name)) is not None}
    env |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    if overrides:
        env["GIT_CONFIG_COUNT"] = str(len(overrides))
        for number, (key, value) in enumerate(overrides):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


#: Most names of changed files that are reported.
MAX_NAMES = 50

#: Seconds for adding or removing a checkout of a large repository.
_CHECKOUT_TIMEOUT = 600.0

#: Name of the lock file in a repository's git folder for changes of its list of worktrees.
LOCK = "taskyard-worktrees.lock"

#: Errors of git when another process has one of its lock files, or changes the list of worktrees meanwhile.
_LOCK_CONFLICT = re.compile(r"\.lock'|could not lock|cannot lock|unable to lock|File exists|commondir|\.git/worktrees/")

#: Seconds for which git is retried on a conflict; first and longest backoff between two attempts.
_RETRY_TIMEOUT, _FIRST_PAUSE, _MAX_PAUSE = 30.0, 0.05, 1.0

#: Files in a worktree's git folder while an operation is unfinished.
_IN_PROGRESS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")

#: Most commits of a submodule that are searched elsewhere: more do not fit into one command line.
_MAX_COMMITS = 1000

_MAKING, _MADE, _REMOVING = "making", "made", "removing"

#: Reason for keeping a worktree that may turn out empty once these processes are gone.
_IN_USE = "processes still use it"


class Worktree(NamedTuple):
    """A worktree as created; or why it could not be."""

    path: str = ""
    branch: str = ""
    base: str = ""  #: the commit it begins at
    cwd: str = ""  #: the job's working folder in it, matching where it was started
    dirty: tuple[str, ...] = ()  #: uncommitted files of the original checkout, which are not in it; the first names
    dirty_count: int = 0
    off: tuple[str, ...] = ()  #: programs of the repository's git configuration that did not run: not trusted
    why: str = ""  #: why it could not be created

    def to_json(self) -> dict[str, object]:
        """Return it as stored in the job's record."""
        known: dict[str, object] = {
            "path": self.path,
            "branch": self.branch,
            "base": self.base,
            "dirty": list(self.dirty),
            "dirtyCount": self.dirty_count,
        }
        return {**known, "untrustedPrograms": list(self.off)} if self.off else known


class SettledWorktree(NamedTuple):
    """What was done with a worktree."""

    job: str
    path: str
    branch: str
    kept: str = ""  #: why it is still there; empty: it was removed


def create_worktree(home: str, job: str, cwd: str) -> Worktree:
    """Create a worktree for `job`, whose working folder corresponds to `cwd` in its repository."""
    top, head = git(cwd, "rev-parse", "--show-toplevel"), git(cwd, "rev-parse", "--verify", "HEAD^{commit}")
    if top.error or not top.text:
        return Worktree(why=f"{cwd} is in no git repository with files ({top.error or 'it is bare'})")
    if head.error:
        return Worktree(why=f"the repository {top.text} has no commit to begin at")
    names, count = _uncommitted(top.text)
    if count is None:
        return Worktree(why=f"git cannot say what is not committed in {top.text}")
    path, branch = worktree_location(home, job)
    try:
        files.make_private_folder(_worktrees_folder(home))
        _write_record(home, job, {"state": _MAKING, "repository": top.text, "branch": branch, "base": head.text})
        reason = ("--lock", "--reason", f"the job {job} works here")
        if _branch_tip(top.text, branch):
            return Worktree(why=f"the branch {branch} already exists")
        # -B: an earlier attempt may have created the branch.
        added = _git_locked(top.text, "worktree", "add", "--quiet", *reason, "-B", branch, path, head.text)
        if added.error:
            return Worktree(why=added.error)
        inside = os.path.join(path, os.path.relpath(os.path.realpath(cwd), os.path.realpath(top.text)))
        if not os.path.isdir(inside):
            return Worktree(why=f"{cwd} is not in the last commit, so it is not in the worktree either")
        _write_record(home, job, {"state": _MADE, "repository": top.text, "branch": branch, "base": head.text})
    except (Busy, StorageError) as error:
        return Worktree(why=str(error))
    off = untrusted_programs(top.text)
    return Worktree(path, branch, head.text, os.path.normpath(inside), names, count, off)


def _git_locked(repository: str, *words: str) -> GitResult:
    """Run a git command that changes the list of worktrees: under our lock, with retries on conflicts.

    Raises:
        Busy: another Taskyard process takes longer than any checkout.
        StorageError: the lock file cannot be created.
    """
    shared = git(repository, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if shared.error:
        return shared
    with RangeLock(f"{shared.text}/{LOCK}") as lock:
        lock.take(0, timeout=_CHECKOUT_TIMEOUT, what=f"the worktrees of {repository}")
        until, pause = time.monotonic() + _RETRY_TIMEOUT, _FIRST_PAUSE
        while True:
            said = git(repository, *words, timeout=_CHECKOUT_TIMEOUT)
            if not said.error or not _LOCK_CONFLICT.search(said.error) or time.monotonic() >= until:
                return said
            time.sleep(pause)  # nothing reports when another program's lock file is gone
            pause = min(pause * 2, _MAX_PAUSE)


def settle_worktree(
    home: str, job: str, *, is_used: bool = False, dry_run: bool = False, timeout: float = _CHECKOUT_TIMEOUT
) -> SettledWorktree | None:
    """Remove the worktree of an ended job, if no work is in it; return None if it has none.

    Args:
        home: Taskyard's home folder.
        job: The job's id.
        is_used: A process may still write in it: keep it for now.
        dry_run: Only return what would be done.
        timeout: Seconds to wait for other worktrees being settled.

    Raises:
        Busy: others are being settled, and take longer.
        StorageError: a disk error.
    """
    if not os.path.lexists(_record_path(home, job)):
        return None
    with RangeLock(
        f"{_worktrees_folder(home)}/.lock"
    ) as lock:  # one at a time: of two that share an unmerged commit, one must stay
        lock.take(0, timeout=timeout, what="the worktrees of jobs")
        known = read_json(_record_path(home, job))
        if known is None:
            return None
        path, branch = worktree_location(home, job)
        why = _keep_reason(path, branch, known, is_used=is_used)
        if dry_run:
            return SettledWorktree(job, path, branch, why)
        if why:
            _git_locked(path, "worktree", "unlock", path)  # the user may do with it as they like
            if why != _IN_USE:
                _write_record(home, job, {**known, "kept": why})
            return SettledWorktree(job, path, branch, why)
        return SettledWorktree(job, path, branch, _remove_worktree(home, job, known))


def recorded_jobs(home: str) -> list[str]:
    """Return the jobs that have a worktree, or an unsettled record of one."""
    try:
        names = os.listdir(_worktrees_folder(home))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(_worktrees_folder(home), error) from error
    jobs = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(filter(is_job_id, jobs))


def is_kept(home: str, job: str) -> bool:
    """Return whether it was checked since its job ended, and has work in it."""
    return "kept" in (read_json(_record_path(home, job)) or {})


# -- check for work ------------------------------------------------------------------------------


def _keep_reason(path: str, branch: str, known: Mapping[str, object], *, is_used: bool) -> str:
    """Return why it must be kept; "" if no work would be lost."""
    if known.get("state") in (_MAKING, _REMOVING):
        return ""  # no work was done in it, or it was checked before
    if not os.path.isdir(path) or os.path.islink(path):
        return "" if not os.path.lexists(path) else "something else is in its place"
    if is_used or _is_used(path):
        return _IN_USE
    names, count = _uncommitted(path, untracked="all")
    if count:
        return f"{count} {'file is' if count == 1 else 'files are'} not committed: {', '.join(names[:3])}"
    if count is None:
        return "git cannot say whether there is work in it"
    return (
        _in_progress_reason(path)
        or _unmerged_reason(path, branch)
        or _submodule_reason(path, str(known.get("repository")))
    )


def _uncommitted(folder: str, *, untracked: str = "normal") -> tuple[tuple[str, ...], int | None]:
    """Return the first names and the number of uncommitted files; None: git cannot determine it."""
    names: list[str] = []
    count = 0
    # git itself would check submodules with the programs of their configurations.
    quiet = ("--no-renames", "--ignore-submodules=dirty", f"--untracked-files={untracked}")
    for place in _checkouts(folder):
        said = git(f"{folder}/{place}", "status", "--porcelain=v1", "-z", *quiet)
        if said.error:
            return (), None
        entries = [os.path.join(place, os.fsdecode(entry[3:])) for entry in said.output.split(b"\0") if len(entry) > 3]
        names += (_plain(name) for name in entries[: MAX_NAMES - len(names)])
        count += len(entries)
    return tuple(names), count


def _checkouts(folder: str) -> list[str]:
    """Return the checkout `folder` and those of its submodules at any depth, relative to it."""
    found, waiting = [""], [""]
    while waiting:
        outer = waiting.pop()
        listed = git(f"{folder}/{outer}", "ls-files", "--stage", "-z").output.split(b"\0")
        for entry in listed:
            if entry.startswith(b"160000 "):
                inner = os.path.join(outer, os.fsdecode(entry.partition(b"\t")[2]))
                if os.path.lexists(f"{folder}/{inner}/.git") and not os.path.islink(f"{folder}/{inner}"):
                    found.append(inner)
                    waiting.append(inner)
    return found


def _submodule_reason(path: str, repository: str) -> str:
    """Return why a submodule's repository must be kept: unfinished work, or the only copy of a commit."""
    place = git(path, "rev-parse", "--absolute-git-dir")
    if place.error:
        return "git cannot say whether there is work in it"
    inside = {os.path.relpath(one, f"{place.text}/modules"): one for one in _git_folders(f"{place.text}/modules")}
    inside |= {one: f"{path}/{one}/.git" for one in _checkouts(path)[1:] if os.path.isdir(f"{path}/{one}/.git")}
    for name, folder in sorted(inside.items()):
        why = _unshared_commits(folder, f"{repository}/{name}")
        if not why and (half := [entry for entry in _IN_PROGRESS if os.path.lexists(f"{folder}/{entry}")]):
            why = f"something is half done ({half[0]})"
        if why:
            return f"in its submodule {_plain(name)} {why}"
    return ""


def _git_folders(folder: str) -> list[str]:
    """Return the git folders of submodules below a folder `modules`, nested ones included."""
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        if "HEAD" in names and "objects" in folders:
            found += [place, *_git_folders(f"{place}/modules")]
            folders.clear()
    return found


def _unshared_commits(folder: str, elsewhere: str) -> str:
    """Return a reason if commits exist in the git folder `folder` alone: in no remote's branch, nor in `elsewhere`."""
    said = git_dir(folder, "rev-list", "HEAD", "--all", "--not", "--remotes")
    if said.error:
        return "git cannot say whether its commits are elsewhere"
    own = said.text.split()
    if not own or (os.path.isdir(elsewhere) and _has_all(elsewhere, own)):
        return ""
    return f"{len(own)} {'commit is' if len(own) == 1 else 'commits are'} in no other repository"


def _has_all(folder: str, commits: list[str]) -> bool:
    """Return whether all commits are in branches or tags of the repository at `folder`."""
    top = git(folder, "rev-parse", "--show-toplevel")
    if top.error or os.path.realpath(top.text) != os.path.realpath(folder) or len(commits) > _MAX_COMMITS:
        return False
    said = git(folder, "rev-list", "--count", *commits, "--not", "--all")
    return not said.error and said.text == "0"


def _plain(name: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)[:200]


def _in_progress_reason(path: str) -> str:
    place = git(path, "rev-parse", "--absolute-git-dir")
    if place.error:
        return "git cannot say whether there is work in it"
    found = [name for name in _IN_PROGRESS if os.path.lexists(f"{place.text}/{name}")]
    return f"something is half done in it ({found[0]})" if found else ""


def _unmerged_reason(folder: str, branch: str, *, head: bool = True) -> str:
    """Return a reason if commits would be lost; those in any other branch or tag are safe."""
    ours = [f"refs/heads/{branch}"] if _branch_tip(folder, branch) else []
    tips = [*(["HEAD"] if head else []), *ours]
    if not tips:
        return ""
    others = (f"--exclude={branch}", "--branches", "--tags", "--remotes")
    said = git(folder, "rev-list", "--count", *tips, "--not", *others)
    if said.error or not said.text.isdecimal():
        return "git cannot say whether its commits are in another branch"
    count = int(said.text)
    return f"{count} {'commit is' if count == 1 else 'commits are'} in no other branch than {branch}" if count else ""


def _branch_tip(folder: str, branch: str) -> str:
    said = git(folder, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    return "" if said.error else said.text


def _is_used(path: str) -> bool:
    """Return whether a visible process has its working folder in it."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                place = os.readlink(f"{proc_folder(name)}/cwd")
            except OSError:
                continue
            if place == path or place.startswith(f"{path}/"):
                return True
    return False


# -- removal -------------------------------------------------------------------------------------


def _remove_worktree(home: str, job: str, known: Mapping[str, object]) -> str:
    """Remove it, then its branch if that has no commits of its own; return why it could not be removed, if so."""
    path, branch = worktree_location(home, job)
    repository = str(known.get("repository"))
    if not os.path.isdir(repository):
        return f"its repository {_plain(repository)} is gone"
    if f"worktree {path}\n" in git(repository, "worktree", "list", "--porcelain").text + "\n":
        if error := _remove_checkout(home, job, known, repository):
            return error
    elif os.path.lexists(path):
        return "git does not know it as a worktree"
    if (tip := _branch_tip(repository, branch)) and not _unmerged_reason(repository, branch, head=False):
        git(repository, "update-ref", "-d", f"refs/heads/{branch}", tip)
    files.remove(_record_path(home, job))
    return ""


def _remove_checkout(home: str, job: str, known: Mapping[str, object], repository: str) -> str:
    """Have git remove it; return git's error. Half created or half removed ones need force, others do not."""
    path = f"{_worktrees_folder(home)}/{job}"
    if known.get("state") != _MADE:
        return _git_locked(repository, "worktree", "remove", "--force", "--force", path).error
    _write_record(home, job, {**known, "state": _REMOVING})
    _git_locked(repository, "worktree", "unlock", path)
    # git refuses to remove a worktree with submodules without force; ours were checked.
    force = ("--force",) if len(_checkouts(path)) > 1 else ()
    error = _git_locked(repository, "worktree", "remove", *force, path).error
    if error:
        _write_record(home, job, known)
    return error


def worktree_location(home: str, job: str) -> tuple[str, str]:
    """Return the path of a job's worktree, and its branch."""
    return f"{_worktrees_folder(home)}/{job}", f"taskyard/{job}"


def _worktrees_folder(home: str) -> str:
    return f"{os.path.realpath(home)}/worktrees"  # as git records it


def _record_path(home: str, job: str) -> str:
    return f"{_worktrees_folder(home)}/{job}.json"


def _write_record(home: str, job: str, known: Mapping[str, object]) -> None:
    files.replace(_record_path(home, job), json.dumps({"job": job, **known}).encode("utf-8", "surrogatepass"))


def settle_ended(home: str, *, dry_run: bool = False) -> list[SettledWorktree]:
    """Settle the worktrees of all ended jobs, however they ended; return the results."""
    found: list[SettledWorktree] = []
    for job in recorded_jobs(home):
        try:
            if not _is_over(home, job):
                continue
        except TaskyardError as error:
            found.append(SettledWorktree(job, *worktree_location(home, job), str(error)))
            continue
        if (settled := settle_worktree(home, job, dry_run=dry_run)) is not None:
            found.append(settled)
    return found


def settle_abandoned(home: str, *, seconds: float) -> None:
    """Settle worktrees not checked since their jobs ended. None is begun after `seconds`.

    Failures are left for the next time: `taskyard gc` reports them.
    """
    until = time.monotonic() + seconds
    for job in recorded_jobs(home):
        if time.monotonic() >= until:
            return
        try:
            if not is_kept(home, job) and _is_over(home, job):
                settle_worktree(home, job, timeout=0.0)
        except TaskyardError:
            continue


def _is_over(home: str, job: str) -> bool:
    try:
        return read_job(home, job).is_final
    except JobNotFound:
        return True  # the user removed all records of it
