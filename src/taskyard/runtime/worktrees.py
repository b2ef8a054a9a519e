"""
A git worktree for one job, and what becomes of it.

It is `worktrees/<job>` in Taskyard's home, on a branch `taskyard/<job>` that begins at the commit checked out where the
job was started. While the job works it is locked, so that nobody prunes it. When the job is over it is removed if
nothing of anybody's work is in it: no change, no file that git does not know, no commit that is in no other branch, no
merge or rebase half done. Else it is kept, and why is said.

`worktrees/<job>.json` is written first and removed last: whatever was killed on the way, `settle` goes on with it.

    making     nobody has worked in it yet
    made       somebody may have
    removing   there was nothing in it

One that was kept for the work in it has `kept` there: a person decides about it, and only they have it looked at again.
"""

from __future__ import annotations

import json
import os

from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock
from taskyard.disk.processes import proc_folder
from taskyard.errors import StorageError
from taskyard.runtime.ending import read
from taskyard.runtime.git import git
from taskyard.runtime.ids import is_job_id
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Names of changed files that are told; there may be any number.
MOST_NAMES = 50

#: Seconds for a checkout, or for taking one away: a large repository takes its time.
_LONG = 600.0

#: What stands in a worktree's git folder while something is half done.
_HALF_DONE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")

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
    why: str = ""  #: it could not be made

    def to_json(self) -> dict[str, object]:
        """As the job's record has it."""
        return {
            "path": self.path,
            "branch": self.branch,
            "base": self.base,
            "dirty": list(self.dirty),
            "dirtyCount": self.dirty_count,
        }


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
        added = git(top.text, "worktree", "add", "--quiet", *reason, "-b", branch, path, head.text, timeout=_LONG)
        if added.error:
            return Worktree(why=added.error)
        inside = os.path.join(path, os.path.relpath(os.path.realpath(cwd), os.path.realpath(top.text)))
        if not os.path.isdir(inside):
            return Worktree(why=f"{cwd} is not in the last commit, so it is not in the worktree either")
        _write(home, job, {"state": _MADE, "repository": top.text, "branch": branch, "base": head.text})
    except StorageError as error:
        return Worktree(why=str(error))
    return Worktree(path, branch, head.text, os.path.normpath(inside), names, count)


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
            git(path, "worktree", "unlock", path)  # its owner may do with it what they like
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
    return _half_done(path) or _unmerged(path, branch)


def _changed(folder: str, *, untracked: str = "normal") -> tuple[tuple[str, ...], int | None]:
    """Files that are not as the last commit has them: the first names, and how many; None: git cannot say."""
    said = git(folder, "status", "--porcelain=v1", "-z", "--no-renames", f"--untracked-files={untracked}")
    if said.error:
        return (), None
    entries = [os.fsdecode(entry[3:]) for entry in said.output.split(b"\0") if len(entry) > 3]
    shown = tuple(_plain(name) for name in entries[:MOST_NAMES])
    return shown, len(entries)


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
        return git(repository, "worktree", "remove", "--force", "--force", path, timeout=_LONG).error
    _write(home, job, {**known, "state": _REMOVING})
    git(repository, "worktree", "unlock", path)
    error = git(repository, "worktree", "remove", path, timeout=_LONG).error
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
