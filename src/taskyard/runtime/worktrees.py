"""
A git worktree for one job, and what becomes of it.

It is `worktrees/<job>` in Taskyard's home, on a branch `taskyard/<job>` that begins at the commit checked out where the
job was started. While the job works it is locked, so that nobody prunes it. When the job is over it is removed if
nothing of anybody's work is in it: no change, no file that git does not know, no commit that is in no other branch, no
merge or rebase half done. Else it is kept, and why is said. The same holds for each submodule in it: those have
repositories of their own inside the worktree's git folder, and go with it.

git itself does not keep two processes apart that add or remove worktrees of one repository. One lock in the git folder
of the repository keeps ours apart; where another program is in the way, git is run again for a while.

`worktrees/<job>.json` is written first and removed last: whatever was killed on the way, `settle` goes on with it.

    making     nobody has worked in it yet
    made       somebody may have
    removing   there was nothing in it

One that was kept for the work in it has `kept` there: a person decides about it, and only they have it looked at again.
"""

from __future__ import annotations

import json
import os
import re
import time

from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock
from taskyard.disk.processes import proc_folder
from taskyard.errors import Busy, StorageError
from taskyard.runtime.ending import read
from taskyard.runtime.git import Said, git, git_dir, untrusted_programs
from taskyard.runtime.ids import is_job_id
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Names of changed files that are told; there may be any number.
MOST_NAMES = 50

#: Seconds for a checkout, or for taking one away: a large repository takes its time.
_LONG = 600.0

#: The lock file in a repository's git folder for changes of its list of worktrees.
LOCK = "taskyard-worktrees.lock"

#: What git says when another process holds one of its lock files, or changes the list of worktrees at the same time.
_IN_THE_WAY = re.compile(r"\.lock'|could not lock|cannot lock|unable to lock|File exists|commondir|\.git/worktrees/")

#: Seconds for which git is run again while another program is in the way, and between two tries at first and at most.
_TRIES_FOR, _FIRST_PAUSE, _LONGEST_PAUSE = 30.0, 0.05, 1.0

#: What stands in a worktree's git folder while something is half done.
_HALF_DONE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")

#: Commits of a submodule that are looked for elsewhere: more do not fit into one command line.
_MOST_COMMITS = 1000

_MAKING, _MADE, _REMOVING = "making", "made", "removing"

#: Why one is kept that nothing else speaks for: it may be empty when they are gone.
_USED = "processes still use it"


class Worktree(NamedTuple):
    """A worktree as it was made; or why it could not be."""

    path: str = ""
    branch: str = ""
    base: str = ""  #: the commit it begins at
    cwd: str = ""  #: where in it the job works: as deep as where it was started
    dirty: tuple[str, ...] = ()  #: what was not committed there, and is not in it; the first names
    dirty_count: int = 0
    off: tuple[str, ...] = ()  #: programs of the repository's git configuration that did not run: not trusted
    why: str = ""  #: it could not be made

    def to_json(self) -> dict[str, object]:
        """As the job's record has it."""
        known: dict[str, object] = {
            "path": self.path,
            "branch": self.branch,
            "base": self.base,
            "dirty": list(self.dirty),
            "dirtyCount": self.dirty_count,
        }
        return {**known, "untrustedPrograms": list(self.off)} if self.off else known


class Settled(NamedTuple):
    """What became of a worktree."""

    job: str
    path: str
    branch: str
    kept: str = ""  #: why it is still there; nothing: it was removed


def make(home: str, job: str, cwd: str) -> Worktree:
    """A worktree for `job`, which works where `cwd` is in the repository around it."""
    top, head = git(cwd, "rev-parse", "--show-toplevel"), git(cwd, "rev-parse", "--verify", "HEAD^{commit}")
    if top.error or not top.text:
        return Worktree(why=f"{cwd} is in no git repository with files ({top.error or 'it is bare'})")
    if head.error:
        return Worktree(why=f"the repository {top.text} has no commit to begin at")
    names, count = _changed(top.text)
    if count is None:
        return Worktree(why=f"git cannot say what is not committed in {top.text}")
    path, branch = place(home, job)
    try:
        files.make_private_folder(_folder(home))
        _write(home, job, {"state": _MAKING, "repository": top.text, "branch": branch, "base": head.text})
        reason = ("--lock", "--reason", f"the job {job} works here")
        if _tip(top.text, branch):
            return Worktree(why=f"the branch {branch} already exists")
        # -B: a try before this one may have made the branch.
        added = _changing(top.text, "worktree", "add", "--quiet", *reason, "-B", branch, path, head.text)
        if added.error:
            return Worktree(why=added.error)
        inside = os.path.join(path, os.path.relpath(os.path.realpath(cwd), os.path.realpath(top.text)))
        if not os.path.isdir(inside):
            return Worktree(why=f"{cwd} is not in the last commit, so it is not in the worktree either")
        _write(home, job, {"state": _MADE, "repository": top.text, "branch": branch, "base": head.text})
    except (Busy, StorageError) as error:
        return Worktree(why=str(error))
    off = untrusted_programs(top.text)
    return Worktree(path, branch, head.text, os.path.normpath(inside), names, count, off)


def _changing(repository: str, *words: str) -> Said:
    """Run git where it changes the list of worktrees: under our lock, and again while another program is in the way.

    Raises:
        Busy: another process of ours takes longer than any checkout.
        StorageError: the lock file cannot be made.
    """
    shared = git(repository, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if shared.error:
        return shared
    with RangeLock(f"{shared.text}/{LOCK}") as lock:
        lock.take(0, timeout=_LONG, what=f"the worktrees of {repository}")
        until, pause = time.monotonic() + _TRIES_FOR, _FIRST_PAUSE
        while True:
            said = git(repository, *words, timeout=_LONG)
            if not said.error or not _IN_THE_WAY.search(said.error) or time.monotonic() >= until:
                return said
            time.sleep(pause)  # nobody tells when another program's lock file is gone
            pause = min(pause * 2, _LONGEST_PAUSE)


def settle(
    home: str, job: str, *, is_used: bool = False, dry_run: bool = False, timeout: float = _LONG
) -> Settled | None:
    """Remove the worktree of a job that is over, if no work is in it; None if it has none.

    Args:
        home: Taskyard's own folder.
        job: Its id.
        is_used: Somebody may still write in it: it is kept for now.
        dry_run: Only say what would become of it.
        timeout: Seconds to wait for others that are settled.

    Raises:
        Busy: others are settled at the moment, and take long.
        StorageError: the disk refused.
    """
    if not os.path.lexists(_record(home, job)):
        return None
    with RangeLock(f"{_folder(home)}/.lock") as lock:  # one at a time: two that hold the same commit are not both done
        lock.take(0, timeout=timeout, what="the worktrees of jobs")
        known = read(_record(home, job))
        if known is None:
            return None
        path, branch = place(home, job)
        why = _why_kept(path, branch, known, is_used=is_used)
        if dry_run:
            return Settled(job, path, branch, why)
        if why:
            _changing(path, "worktree", "unlock", path)  # its owner may do with it what they like
            if why != _USED:
                _write(home, job, {**known, "kept": why})
            return Settled(job, path, branch, why)
        return Settled(job, path, branch, _removed(home, job, known))


def recorded(home: str) -> list[str]:
    """The jobs that have a worktree, or had one and nobody settled it."""
    try:
        names = os.listdir(_folder(home))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(_folder(home), error) from error
    jobs = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(filter(is_job_id, jobs))


def is_kept(home: str, job: str) -> bool:
    """Whether somebody has looked at it since its job is over, and there was work in it."""
    return "kept" in (read(_record(home, job)) or {})


# -- is there work in it -------------------------------------------------------------------------


def _why_kept(path: str, branch: str, known: Mapping[str, object], *, is_used: bool) -> str:
    """What speaks against removing it; nothing if no work is lost by that."""
    if known.get("state") in (_MAKING, _REMOVING):
        return ""  # nobody has worked in it, or it was looked at
    if not os.path.isdir(path) or os.path.islink(path):
        return "" if not os.path.lexists(path) else "something else is in its place"
    if is_used or _is_used(path):
        return _USED
    names, count = _changed(path, untracked="all")
    if count:
        return f"{count} {'file is' if count == 1 else 'files are'} not committed: {', '.join(names[:3])}"
    if count is None:
        return "git cannot say whether there is work in it"
    return _half_done(path) or _unmerged(path, branch) or _own_in_submodules(path, str(known.get("repository")))


def _changed(folder: str, *, untracked: str = "normal") -> tuple[tuple[str, ...], int | None]:
    """Files that are not as the last commit has them: the first names, and how many; None: git cannot say."""
    names: list[str] = []
    count = 0
    # git would look into submodules by itself, with the programs of their configurations.
    quiet = ("--no-renames", "--ignore-submodules=dirty", f"--untracked-files={untracked}")
    for place in _checkouts(folder):
        said = git(f"{folder}/{place}", "status", "--porcelain=v1", "-z", *quiet)
        if said.error:
            return (), None
        entries = [os.path.join(place, os.fsdecode(entry[3:])) for entry in said.output.split(b"\0") if len(entry) > 3]
        names += (_plain(name) for name in entries[: MOST_NAMES - len(names)])
        count += len(entries)
    return tuple(names), count


def _checkouts(folder: str) -> list[str]:
    """The checkout `folder` and those of the submodules in it, at any depth, relative to it."""
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


def _own_in_submodules(path: str, repository: str) -> str:
    """Whether a submodule's repository that goes with the worktree has the only copy of a commit, or work half done."""
    place = git(path, "rev-parse", "--absolute-git-dir")
    if place.error:
        return "git cannot say whether there is work in it"
    inside = {os.path.relpath(one, f"{place.text}/modules"): one for one in _git_folders(f"{place.text}/modules")}
    inside |= {one: f"{path}/{one}/.git" for one in _checkouts(path)[1:] if os.path.isdir(f"{path}/{one}/.git")}
    for name, folder in sorted(inside.items()):
        why = _only_here(folder, f"{repository}/{name}")
        if not why and (half := [entry for entry in _HALF_DONE if os.path.lexists(f"{folder}/{entry}")]):
            why = f"something is half done ({half[0]})"
        if why:
            return f"in its submodule {_plain(name)} {why}"
    return ""


def _git_folders(folder: str) -> list[str]:
    """The git folders of submodules below a folder `modules`, those of their own submodules included."""
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        if "HEAD" in names and "objects" in folders:
            found += [place, *_git_folders(f"{place}/modules")]
            folders.clear()
    return found


def _only_here(folder: str, elsewhere: str) -> str:
    """What is in the git folder `folder` alone: on no branch of its remotes, and in no branch of `elsewhere`."""
    said = git_dir(folder, "rev-list", "HEAD", "--all", "--not", "--remotes")
    if said.error:
        return "git cannot say whether its commits are elsewhere"
    own = said.text.split()
    if not own or (os.path.isdir(elsewhere) and _has_all(elsewhere, own)):
        return ""
    return f"{len(own)} {'commit is' if len(own) == 1 else 'commits are'} in no other repository"


def _has_all(folder: str, commits: list[str]) -> bool:
    """Whether all of them are in branches or tags of the repository at `folder`."""
    top = git(folder, "rev-parse", "--show-toplevel")
    if top.error or os.path.realpath(top.text) != os.path.realpath(folder) or len(commits) > _MOST_COMMITS:
        return False
    said = git(folder, "rev-list", "--count", *commits, "--not", "--all")
    return not said.error and said.text == "0"


def _plain(name: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)[:200]


def _half_done(path: str) -> str:
    place = git(path, "rev-parse", "--absolute-git-dir")
    if place.error:
        return "git cannot say whether there is work in it"
    found = [name for name in _HALF_DONE if os.path.lexists(f"{place.text}/{name}")]
    return f"something is half done in it ({found[0]})" if found else ""


def _unmerged(folder: str, branch: str, *, head: bool = True) -> str:
    """Whether commits would be lost; those of a branch or tag of anybody else's are safe."""
    ours = [f"refs/heads/{branch}"] if _tip(folder, branch) else []
    tips = [*(["HEAD"] if head else []), *ours]
    if not tips:
        return ""
    others = (f"--exclude={branch}", "--branches", "--tags", "--remotes")
    said = git(folder, "rev-list", "--count", *tips, "--not", *others)
    if said.error or not said.text.isdecimal():
        return "git cannot say whether its commits are in another branch"
    count = int(said.text)
    return f"{count} {'commit is' if count == 1 else 'commits are'} in no other branch than {branch}" if count else ""


def _tip(folder: str, branch: str) -> str:
    said = git(folder, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    return "" if said.error else said.text


def _is_used(path: str) -> bool:
    """Whether a process that we can see works in it."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                place = os.readlink(f"{proc_folder(name)}/cwd")
            except OSError:
                continue
            if place == path or place.startswith(f"{path}/"):
                return True
    return False


# -- taking it away ------------------------------------------------------------------------------


def _removed(home: str, job: str, known: Mapping[str, object]) -> str:
    """Remove it, and then the branch where that holds nothing of its own; why it could not be, if so."""
    path, branch = place(home, job)
    repository = str(known.get("repository"))
    if not os.path.isdir(repository):
        return f"its repository {_plain(repository)} is gone"
    if f"worktree {path}\n" in git(repository, "worktree", "list", "--porcelain").text + "\n":
        if error := _taken_away(home, job, known, repository):
            return error
    elif os.path.lexists(path):
        return "git does not know it as a worktree"
    if (tip := _tip(repository, branch)) and not _unmerged(repository, branch, head=False):
        git(repository, "update-ref", "-d", f"refs/heads/{branch}", tip)
    files.remove(_record(home, job))
    return ""


def _taken_away(home: str, job: str, known: Mapping[str, object], repository: str) -> str:
    """Have git remove it; why it did not, if so. What was half made or half removed needs force, all else none."""
    path = f"{_folder(home)}/{job}"
    if known.get("state") != _MADE:
        return _changing(repository, "worktree", "remove", "--force", "--force", path).error
    _write(home, job, {**known, "state": _REMOVING})
    _changing(repository, "worktree", "unlock", path)
    # git removes none with submodules without force; ours were looked into.
    force = ("--force",) if len(_checkouts(path)) > 1 else ()
    error = _changing(repository, "worktree", "remove", *force, path).error
    if error:
        _write(home, job, known)
    return error


def place(home: str, job: str) -> tuple[str, str]:
    """Where a job's worktree is, and its branch."""
    return f"{_folder(home)}/{job}", f"taskyard/{job}"


def _folder(home: str) -> str:
    return f"{os.path.realpath(home)}/worktrees"  # as git writes it down


def _record(home: str, job: str) -> str:
    return f"{_folder(home)}/{job}.json"


def _write(home: str, job: str, known: Mapping[str, object]) -> None:
    files.replace(_record(home, job), json.dumps({"job": job, **known}).encode("utf-8", "surrogatepass"))
