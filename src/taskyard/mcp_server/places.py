"""
What can be read and watched as a resource, by its address, and where it lives.

    taskyard://lists/<name>         a list, as TaskList shows it
    taskyard://jobs/<id>/output     the end of what a job printed
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.shared.uri_template import UriTemplate

from taskyard.app import Yard
from taskyard.errors import BadValue, ListNotFound
from taskyard.mcp_server.resource_list import LIST, OUTPUT
from taskyard.names import nearest
from taskyard.runtime.folder import JobFolder, living_folder
from taskyard.tasklist.list_folder import ListFolder, is_list_name

_LIST, _OUTPUT = UriTemplate.parse(LIST), UriTemplate.parse(OUTPUT)

#: Seconds between two words on the same thing: a list changes step by step, an output all the time.
_AFTER_LIST, _AFTER_OUTPUT = 0.1, 1.0


class Place(NamedTuple):
    """What to follow, and what it means when something in it changes: a folder, or what a store tells."""

    event: ServerEvent
    folder: str = ""
    names: tuple[str, ...] = ()  #: ends of the names that matter; none: all do
    pause: float = _AFTER_LIST  #: seconds until the next word on it
    wait: Callable[[float], bool] | None = None  #: sleeps until there is news, where no folder shows it

    @property
    def is_there(self) -> bool:
        """Whether there is such a folder by now; a store tells only of what is there."""
        return self.wait is not None or os.path.isdir(self.folder)

    def concerns(self, names: Iterable[str] | None) -> bool:
        """Whether it is about one of these names; None: all may have changed."""
        return names is None or not self.names or any(name.endswith(self.names) for name in names)


def place_of(yard: Yard, uri: str) -> Place:
    """Where to look for changes of a resource. A list need not be there yet, a job must.

    Raises:
        BadValue: there can be no such resource.
        JobNotFound: there is no such job.
    """
    if (found := _LIST.match(uri)) is not None:
        return _list_place(yard, uri, _list_name(str(found["list"])))
    if (found := _OUTPUT.match(uri)) is not None:
        job = yard.jobs.get(str(found["id"]))
        return Place(ResourceUpdated(uri), JobFolder(yard.home, job.id).path, ("output", "end.json"), _AFTER_OUTPUT)
    raise BadValue("The resource", uri[:200], f"{LIST} or {OUTPUT}")


def resources_place(yard: Yard) -> Place:
    """Where to look for what can be read: jobs come and go."""
    return Place(ResourcesListChanged(), living_folder(yard.home))


def known_list(yard: Yard, name: str) -> str:
    """The name of a list there is.

    Raises:
        ListNotFound: there is none; names near ones.
    """
    known = yard.lists.names()
    if name not in known:
        raise ListNotFound(name[:200], nearest=nearest(name[:200], known))
    return name


def _list_name(name: str) -> str:
    if not is_list_name(name):
        raise BadValue("The list", name[:200], "the name of a list: letters, digits, - and _")
    return name


def _list_place(yard: Yard, uri: str, name: str) -> Place:
    if yard.lists.folder is not None:
        folder = ListFolder(yard.lists.folder, name)
        folder.exists()  # refuses what is no folder of ours
        return Place(ResourceUpdated(uri), folder.path, (".json",))
    other = yard if name == yard.tasks.name else yard.beside(name)
    return Place(ResourceUpdated(uri), wait=other.tasks.store.wait)
