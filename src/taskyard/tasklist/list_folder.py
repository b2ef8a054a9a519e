"""
One list's folder: where its files are, and how it comes to be.

    <list>/N.json            task N                       <list>/.lock            npm's lock target
    <list>/.highwatermark    the highest id given out     <list>/tasks.json       older consolidated form
    <list>/.taskyard/        lock  ledger  log/  leases/  tmp/
"""

from __future__ import annotations

import os

from taskyard.disk import files
from taskyard.errors import BadName
from taskyard.names import LARGEST_ID, folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class ListFolder:
    """The paths of one list."""

    def __init__(self, tasks_dir: str, name: str) -> None:
        self.name = name
        self.tasks_dir = tasks_dir
        self.path = os.path.join(tasks_dir, name)
        self.mark = os.path.join(self.path, ".highwatermark")
        self.npm_target = os.path.join(self.path, ".lock")
        self.consolidated = os.path.join(self.path, "tasks.json")
        self.ours = os.path.join(self.path, ".taskyard")
        self.lock = os.path.join(self.ours, "lock")
        self.ledger = os.path.join(self.ours, "ledger")
        self.log = os.path.join(self.ours, "log")
        self.leases = os.path.join(self.ours, "leases")
        self.tmp = os.path.join(self.ours, "tmp")

    def task(self, task_id: str) -> str:
        """The file of a task."""
        return f"{self.path}/{task_id}.json"

    def draft(self, task_id: str) -> str:
        """Where a task's next content is written before it takes its place."""
        return f"{self.tmp}/{task_id}.json"

    def lease(self, task_id: str) -> str:
        """The lease record of a task."""
        return f"{self.leases}/{task_id}.json"

    def lease_draft(self, task_id: str) -> str:
        """Where a task's next lease record is written before it takes its place."""
        return f"{self.tmp}/{task_id}.lease"

    def exists(self) -> bool:
        """Whether there is such a list; refuses folders that are files or links.

        Raises:
            StorageError: something else stands in its place.
        """
        for path in (self.tasks_dir, self.path):
            try:
                found = os.lstat(path)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise files.storage_error(path, error) from error
            files.check_folder(path, found)
        return True

    def make(self) -> None:
        """Make what is missing of the list's folder and of ours in it."""
        files.make_folder(self.tasks_dir, mode=0o755)
        files.make_folder(self.path, mode=0o755)
        for path in (self.ours, self.log, self.leases, self.tmp):
            files.make_folder(path, mode=0o700)
        if not os.access(self.npm_target, os.F_OK):
            try:
                files.create(self.npm_target, b"", mode=0o644)
            except FileExistsError:
                pass

    def ids_on_disk(self) -> Iterator[int]:
        """The ids for which there is something called `N.json`, whatever it is."""
        try:
            names = os.listdir(self.path)
        except OSError as error:
            raise files.storage_error(self.path, error) from error
        for name in names:
            number = name[:-5]
            if name.endswith(".json") and number.isascii() and number.isdigit() and int(number) <= LARGEST_ID:
                yield int(number)


def list_names(tasks_dir: str) -> list[str]:
    """The lists in a folder, by name; none if it is not there. Links are passed over: a list is a folder of its own.

    Raises:
        StorageError: it is a file or a link, or not ours to read.
    """
    try:
        files.check_folder(tasks_dir, os.lstat(tasks_dir))
        with os.scandir(tasks_dir) as entries:
            found = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(tasks_dir, error) from error
    return sorted(name for name in found if is_list_name(name))


def is_list_name(name: str) -> bool:
    """Whether a list's folder can be called so."""
    try:
        return folder_name("a list", name) == name
    except BadName:
        return False
