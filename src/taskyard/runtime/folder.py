"""Where a job lives: `$TASKYARD_HOME/jobs/<id>/`, private to its user."""

from __future__ import annotations

import os

from taskyard.disk import files
from taskyard.errors import StorageError
from taskyard.typed import NamedTuple

#: The file's name in a job's folder.
TRANSCRIPT = "transcript.jsonl"


class JobFolder(NamedTuple):
    """The files of one job."""

    home: str
    id: str

    @property
    def path(self) -> str:
        """The folder itself."""
        return f"{self.home}/jobs/{self.id}"

    @property
    def half_made(self) -> str:
        """What it is called until its keeper holds it: nobody ever sees a job without one."""
        return f"{self.home}/jobs/.new-{self.id}"

    @property
    def record(self) -> str:
        """What the job is, and what became of it so far; replaced by its keeper alone."""
        return f"{self.path}/job.json"

    @property
    def end(self) -> str:
        """How it ended; written once."""
        return f"{self.path}/end.json"

    @property
    def notice(self) -> str:
        """The news of its end, until that is in somebody's outbox."""
        return f"{self.path}/notice"

    @property
    def reserved_end(self) -> str:
        """An empty file for `end`, made with the job: at its end the disk may have no inode left."""
        return f"{self.path}/.end"

    @property
    def reserved_notice(self) -> str:
        """An empty file for `notice`, made with the job."""
        return f"{self.path}/.notice"

    @property
    def output(self) -> str:
        """What it printed."""
        return f"{self.path}/output"

    @property
    def transcript(self) -> str:
        """What an agent did and said, a line of JSON each; its output is a link to this."""
        return f"{self.path}/{TRANSCRIPT}"

    @property
    def lock(self) -> str:
        """Held by its keeper for as long as that lives."""
        return f"{self.path}/keeper.lock"

    @property
    def living(self) -> str:
        """Another name of its lock, there until its end is written and told: who looks for the living reads no more."""
        return f"{living_folder(self.home)}/{self.id}"

    @property
    def control(self) -> str:
        """A pipe into its keeper: stop, pause, answer."""
        return f"{self.path}/control"

    @property
    def arguments(self) -> str:
        """What a handler was asked for."""
        return f"{self.path}/arguments.json"

    @property
    def facts(self) -> str:
        """What the job's own process says of it."""
        return f"{self.path}/facts.json"

    @property
    def elsewhere(self) -> str:
        """Where its work goes on, if that is not here: by this its process finds it again; gone with its end."""
        return f"{self.path}/remote.json"

    @property
    def dismissed(self) -> str:
        """There once a person dismissed the ended job: views leave it out. In a folder that views follow."""
        return f"{dismissed_folder(self.home)}/{self.id}"

    @property
    def hooks(self) -> str:
        """There once the JobEnded hooks were started."""
        return f"{self.path}/hooks"

    @property
    def children(self) -> str:
        """The jobs that were started inside it, a file each."""
        return f"{self.path}/children"


def is_there(folder: JobFolder) -> bool:
    """Whether a job has its folder: a real one, and ours.

    Raises:
        StorageError: something else is in its place.
    """
    jobs = os.path.dirname(folder.path)
    try:
        files.check_folder(jobs, os.lstat(jobs))
        found = os.lstat(folder.path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise files.storage_error(folder.path, error) from error
    files.check_folder(folder.path, found)
    if found.st_uid != os.geteuid():
        raise StorageError(folder.path, f"it belongs to user {found.st_uid}, not to us")
    return True


def dismissed_folder(home: str) -> str:
    """Names of the ended jobs that a person dismissed."""
    return f"{home}/dismissed"


def living_folder(home: str) -> str:
    """Where every job has a name that is not over."""
    return f"{home}/jobs/.living"


def forget_living(folder: JobFolder) -> None:
    """Take away a job's name among the living, if it has one.

    Raises:
        StorageError: it cannot be, or their folder is a link.
    """
    names = living_folder(folder.home)
    try:
        files.check_folder(names, os.lstat(names))
    except FileNotFoundError:
        return
    files.remove(folder.living)


def outbox(home: str, recipient: str) -> str:
    """Where notices for `recipient` (the name of a box) wait."""
    return f"{home}/outbox/{recipient}"
