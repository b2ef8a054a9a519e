"""Taskyard: the task engine for teams of AI agents.

import taskyard

with taskyard.open() as yard:
    task = yard.tasks.create("Port the importer")
    yard.tasks.claim(task.id, agent="ada")
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard import config, errors, testing
    from taskyard.agents import teammate
    from taskyard.agents.agent.kind import Agent as Agent
    from taskyard.agents.dream.kind import Dream as Dream
    from taskyard.agents.teammate.kind import Teammate as Teammate
    from taskyard.config import Settings as Settings
    from taskyard.errors import AcceptanceFailed as AcceptanceFailed
    from taskyard.errors import AgentBusy as AgentBusy
    from taskyard.errors import AlreadyClaimed as AlreadyClaimed
    from taskyard.errors import AlreadyExists as AlreadyExists
    from taskyard.errors import AlreadyResolved as AlreadyResolved
    from taskyard.errors import BackgroundDisabled as BackgroundDisabled
    from taskyard.errors import BadConfig as BadConfig
    from taskyard.errors import BadId as BadId
    from taskyard.errors import BadJobId as BadJobId
    from taskyard.errors import BadName as BadName
    from taskyard.errors import BadPlan as BadPlan
    from taskyard.errors import BadText as BadText
    from taskyard.errors import BadTransition as BadTransition
    from taskyard.errors import BadValue as BadValue
    from taskyard.errors import BadWorkflow as BadWorkflow
    from taskyard.errors import Blocked as Blocked
    from taskyard.errors import Busy as Busy
    from taskyard.errors import Cancelled as Cancelled
    from taskyard.errors import CannotListen as CannotListen
    from taskyard.errors import Conflict as Conflict
    from taskyard.errors import Cycle as Cycle
    from taskyard.errors import Damaged as Damaged
    from taskyard.errors import DreamHeld as DreamHeld
    from taskyard.errors import EngineNotFound as EngineNotFound
    from taskyard.errors import EventsGone as EventsGone
    from taskyard.errors import HookRefused as HookRefused
    from taskyard.errors import HostAway as HostAway
    from taskyard.errors import JobEnded as JobEnded
    from taskyard.errors import JobNotBegun as JobNotBegun
    from taskyard.errors import JobNotFound as JobNotFound
    from taskyard.errors import KindNotFound as KindNotFound
    from taskyard.errors import LeaseLost as LeaseLost
    from taskyard.errors import ListNotEmpty as ListNotEmpty
    from taskyard.errors import ListNotFound as ListNotFound
    from taskyard.errors import MemberNotStarted as MemberNotStarted
    from taskyard.errors import MissingExtra as MissingExtra
    from taskyard.errors import NoInput as NoInput
    from taskyard.errors import NotFound as NotFound
    from taskyard.errors import NotGenuine as NotGenuine
    from taskyard.errors import NothingFree as NothingFree
    from taskyard.errors import NothingToRestore as NothingToRestore
    from taskyard.errors import OutcomeUnknown as OutcomeUnknown
    from taskyard.errors import OutputGone as OutputGone
    from taskyard.errors import PathsOverlap as PathsOverlap
    from taskyard.errors import RecipientNotFound as RecipientNotFound
    from taskyard.errors import RemoteAway as RemoteAway
    from taskyard.errors import RemoteNotFound as RemoteNotFound
    from taskyard.errors import RemoteRefused as RemoteRefused
    from taskyard.errors import SchemaMismatch as SchemaMismatch
    from taskyard.errors import StillOpen as StillOpen
    from taskyard.errors import StorageError as StorageError
    from taskyard.errors import StoreAway as StoreAway
    from taskyard.errors import TaskNotFound as TaskNotFound
    from taskyard.errors import TaskyardError as TaskyardError
    from taskyard.errors import TeamHasLivingMembers as TeamHasLivingMembers
    from taskyard.errors import TeamNotFound as TeamNotFound
    from taskyard.errors import TooDeep as TooDeep
    from taskyard.errors import TooManyCallers as TooManyCallers
    from taskyard.errors import Untrusted as Untrusted
    from taskyard.errors import UsageError as UsageError
    from taskyard.integrations import model_context
    from taskyard.jobs.events import Event as Event
    from taskyard.jobs.kinds.monitor import Monitor as Monitor
    from taskyard.jobs.kinds.remote_agent import RemoteAgent as RemoteAgent
    from taskyard.jobs.kinds.shell import Shell as Shell
    from taskyard.jobs.kinds.workflow import Workflow as Workflow
    from taskyard.jobs.model import End as End
    from taskyard.jobs.model import Job as Job
    from taskyard.jobs.model import JobStatus as JobStatus
    from taskyard.jobs.notice import Notice as Notice
    from taskyard.jobs.remote.completion import register_completion_checker as register_completion_checker
    from taskyard.tasks.model import Change as Change
    from taskyard.tasks.model import Lease as Lease
    from taskyard.tasks.model import Listing as Listing
    from taskyard.tasks.model import Task as Task
    from taskyard.tasks.model import TaskStatus as TaskStatus
    from taskyard.yard import Yard as Yard
    from taskyard.yard import open as open
    from taskyard.yard.async_yard import AsyncYard as AsyncYard
    from taskyard.yard.async_yard import open_async as open_async
    from taskyard.yard.doctor import doctor as doctor

__version__ = "0.1.0"

#: The module of each public name. Every other name in `__all__` is an error.
_HOMES = {
    "taskyard.yard": ("Yard", "open"),
    "taskyard.yard.async_yard": ("AsyncYard", "open_async"),
    "taskyard.yard.doctor": ("doctor",),
    "taskyard.config": ("Settings",),
    "taskyard.agents.agent.kind": ("Agent",),
    "taskyard.agents.dream.kind": ("Dream",),
    "taskyard.jobs.kinds.monitor": ("Monitor",),
    "taskyard.jobs.kinds.remote_agent": ("RemoteAgent",),
    "taskyard.jobs.kinds.shell": ("Shell",),
    "taskyard.agents.teammate.kind": ("Teammate",),
    "taskyard.jobs.kinds.workflow": ("Workflow",),
    "taskyard.jobs.remote.completion": ("register_completion_checker",),
    "taskyard.jobs.events": ("Event",),
    "taskyard.jobs.model": ("End", "Job", "JobStatus"),
    "taskyard.jobs.notice": ("Notice",),
    "taskyard.tasks.model": ("Change", "Lease", "Listing", "Task", "TaskStatus"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

#: Public modules, loaded at first use.
_MODULES = {
    "config": "taskyard.config",
    "errors": "taskyard.errors",
    "model_context": "taskyard.integrations.model_context",
    "teammate": "taskyard.agents.teammate",
    "testing": "taskyard.testing",
}

__all__ = [
    "AcceptanceFailed",
    "Agent",
    "AgentBusy",
    "AlreadyClaimed",
    "AlreadyExists",
    "AlreadyResolved",
    "AsyncYard",
    "BackgroundDisabled",
    "BadConfig",
    "BadId",
    "BadJobId",
    "BadName",
    "BadPlan",
    "BadText",
    "BadTransition",
    "BadValue",
    "BadWorkflow",
    "Blocked",
    "Busy",
    "Cancelled",
    "CannotListen",
    "Change",
    "Conflict",
    "Cycle",
    "Damaged",
    "Dream",
    "DreamHeld",
    "End",
    "EngineNotFound",
    "Event",
    "EventsGone",
    "HookRefused",
    "HostAway",
    "Job",
    "JobEnded",
    "JobNotBegun",
    "JobNotFound",
    "JobStatus",
    "KindNotFound",
    "Lease",
    "LeaseLost",
    "ListNotEmpty",
    "ListNotFound",
    "Listing",
    "MemberNotStarted",
    "MissingExtra",
    "Monitor",
    "NoInput",
    "NotFound",
    "NotGenuine",
    "NothingFree",
    "NothingToRestore",
    "Notice",
    "OutcomeUnknown",
    "OutputGone",
    "PathsOverlap",
    "RecipientNotFound",
    "RemoteAgent",
    "RemoteAway",
    "RemoteNotFound",
    "RemoteRefused",
    "SchemaMismatch",
    "Settings",
    "Shell",
    "StillOpen",
    "StorageError",
    "StoreAway",
    "Task",
    "TaskNotFound",
    "TaskStatus",
    "TaskyardError",
    "TeamHasLivingMembers",
    "TeamNotFound",
    "Teammate",
    "TooDeep",
    "TooManyCallers",
    "Untrusted",
    "UsageError",
    "Workflow",
    "Yard",
    "__version__",
    "config",
    "doctor",
    "errors",
    "model_context",
    "open",
    "open_async",
    "register_completion_checker",
    "teammate",
    "testing",
]


def __getattr__(name: str) -> object:
    """Load a public name at first use."""
    if name not in __all__ and name not in _MODULES:
        raise AttributeError(f"module 'taskyard' has no attribute {name!r}")
    import importlib

    if name in _MODULES:
        module = globals()[name] = importlib.import_module(_MODULES[name])
        return module
    value = getattr(importlib.import_module(_HOME.get(name, "taskyard.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return what `dir(taskyard)` and completion show: all public names, loaded or not."""
    return sorted({*__all__, *_MODULES})
