"""
Taskyard: the task engine for teams of AI agents.

    import taskyard

    with taskyard.open() as yard:
        task = yard.tasks.create("Port the importer")
        yard.tasks.claim(task.id, agent="ada")
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard as Yard
    from taskyard.app import open as open
    from taskyard.config import Settings as Settings
    from taskyard.errors import AcceptanceFailed as AcceptanceFailed
    from taskyard.errors import AgentBusy as AgentBusy
    from taskyard.errors import AlreadyClaimed as AlreadyClaimed
    from taskyard.errors import AlreadyResolved as AlreadyResolved
    from taskyard.errors import BadTransition as BadTransition
    from taskyard.errors import Blocked as Blocked
    from taskyard.errors import Busy as Busy
    from taskyard.errors import Conflict as Conflict
    from taskyard.errors import Cycle as Cycle
    from taskyard.errors import Damaged as Damaged
    from taskyard.errors import HookRefused as HookRefused
    from taskyard.errors import LeaseLost as LeaseLost
    from taskyard.errors import NotFound as NotFound
    from taskyard.errors import StorageError as StorageError
    from taskyard.errors import TaskNotFound as TaskNotFound
    from taskyard.errors import TaskyardError as TaskyardError
    from taskyard.errors import Untrusted as Untrusted
    from taskyard.errors import UsageError as UsageError
    from taskyard.tasklist.model import Change as Change
    from taskyard.tasklist.model import Lease as Lease
    from taskyard.tasklist.model import Listing as Listing
    from taskyard.tasklist.model import Task as Task
    from taskyard.tasklist.model import TaskStatus as TaskStatus

__version__ = "0.1.0"

_HOMES = {
    "taskyard.app": ("Yard", "open"),
    "taskyard.config": ("Settings",),
    "taskyard.tasklist.model": ("Change", "Lease", "Listing", "Task", "TaskStatus"),
    "taskyard.errors": (
        "AcceptanceFailed",
        "AgentBusy",
        "AlreadyClaimed",
        "AlreadyResolved",
        "BadTransition",
        "Blocked",
        "Busy",
        "Conflict",
        "Cycle",
        "Damaged",
        "HookRefused",
        "LeaseLost",
        "NotFound",
        "StorageError",
        "TaskNotFound",
        "TaskyardError",
        "Untrusted",
        "UsageError",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AcceptanceFailed",
    "AgentBusy",
    "AlreadyClaimed",
    "AlreadyResolved",
    "BadTransition",
    "Blocked",
    "Busy",
    "Change",
    "Conflict",
    "Cycle",
    "Damaged",
    "HookRefused",
    "Lease",
    "LeaseLost",
    "Listing",
    "NotFound",
    "Settings",
    "StorageError",
    "Task",
    "TaskNotFound",
    "TaskStatus",
    "TaskyardError",
    "Untrusted",
    "UsageError",
    "Yard",
    "__version__",
    "open",
]


def __getattr__(name: str) -> object:
    """Load a public name from where it lives, when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'taskyard' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
