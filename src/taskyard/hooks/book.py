"""
The hooks in force: read from settings files, checked, remembered until a file changes.

    user      $CLAUDE_CONFIG_DIR/settings.json       $XDG_CONFIG_HOME/taskyard/hooks.json
    project   <root>/.claude/settings.json           <root>/.taskyard/hooks.json
              <root>/.claude/settings.local.json

A user's hooks come before a project's, and the same command is kept once. What is wrong in a file is
named with its place and leaves the rest of the file in force: a typing error in one hook must neither
switch off the others in silence nor stop the work.
"""

from __future__ import annotations

import os
import time

from taskyard.config import config_folder
from taskyard.disk.files import read_open, storage_error
from taskyard.errors import Damaged, StorageError
from taskyard.hooks.check import Hook, HookProblem, check_settings
from taskyard.paths import claude_folder
from taskyard.plain_file import open_plain
from taskyard.typed import NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Settings people write are a few kilobytes; a megabyte is no settings file.
LARGEST_SETTINGS = 1024 * 1024

#: A file this young may change again without its time changing: it is read anew at the next look.
YOUNG_NS = 20_000_000


class HookBook:
    """The hooks of one user and project, as their files were when it was loaded."""

    __slots__ = ("_by_event", "env", "problems", "root")

    def __init__(
        self, root: str | None, env: Mapping[str, str], hooks: tuple[Hook, ...], problems: tuple[HookProblem, ...]
    ) -> None:
        self.root = root
        self.env = env
        self.problems = problems
        self._by_event: dict[str, tuple[Hook, ...]] = {}
        for hook in hooks:
            self._by_event[hook.event] = (*self._by_event.get(hook.event, ()), hook)

    def any_for(self, event: str) -> bool:
        """Whether `event` has a hook; with none configured, this is all that hooks cost."""
        return event in self._by_event

    def hooks_for(self, event: str) -> tuple[Hook, ...]:
        """The hooks of `event`, in the order they run."""
        return self._by_event.get(event, ())

    @property
    def project_commands(self) -> tuple[str, ...]:
        """The commands that came with the project: what `taskyard trust` shows and allows."""
        hooks = (hook for found in self._by_event.values() for hook in found if hook.of_project)
        return tuple(sorted({hook.command for hook in hooks}))


class _Source(NamedTuple):
    path: str
    of_project: bool
    is_ours: bool  #: nobody else's: an event we do not know is a typing error there


class _Found(NamedTuple):
    """What one version of a file says."""

    version: tuple[int, ...]
    hooks: tuple[Hook, ...] = ()
    problems: tuple[HookProblem, ...] = ()


#: Projects one process is likely to work for; more only means joining paths again.
MOST_PLACES = 64

_places: dict[tuple[str | None, ...], list[_Source]] = {}
_remembered: dict[_Source, _Found] = {}
_reported: dict[_Source, tuple[HookProblem, ...]] = {}


def load(
    project_root: str | None,
    env: Mapping[str, str] | None = None,
    *,
    report: Callable[[HookProblem], None] | None = None,
) -> HookBook:
    """The hooks in force for the project at `project_root`.

    Files that have not changed are not read again. `report` is told what is wrong in a file once, and
    again when that changes; `HookBook.problems` always has it.
    """
    env = os.environ if env is None else env
    hooks: list[Hook] = []
    problems: list[HookProblem] = []
    seen: set[tuple[int, ...]] = set()
    for source in _sources(project_root, env):
        found = _look(source)
        if found is None or found.version in seen:
            continue  # the home folder as project: its settings are the user's own
        seen.add(found.version)
        hooks += found.hooks
        problems += found.problems
        if report is not None and _reported.get(source, ()) != found.problems:
            _reported[source] = found.problems
            for problem in found.problems:
                report(problem)
    # Resolved only for those who have hooks: it costs as much as all the looking.
    root = os.path.realpath(project_root) if project_root is not None and hooks else project_root
    return HookBook(root, env, _once_each(hooks), tuple(problems))


def places(root: str | None, env: Mapping[str, str] | None = None) -> list[str]:
    """The files that may hold hooks."""
    return [source.path for source in _sources(root, os.environ if env is None else env)]


def _sources(root: str | None, env: Mapping[str, str]) -> list[_Source]:
    """The places to look; joining the paths is done once, as every change of a task asks for them."""
    key = (root, env.get("CLAUDE_CONFIG_DIR"), env.get("XDG_CONFIG_HOME"), env.get("HOME"))
    if (known := _places.get(key)) is not None:
        return known
    sources = [
        _Source(os.path.join(claude_folder(env), "settings.json"), of_project=False, is_ours=False),
        _Source(os.path.join(config_folder(env), "hooks.json"), of_project=False, is_ours=True),
    ]
    if root is not None:
        sources += [
            _Source(os.path.join(root, ".claude", "settings.json"), of_project=True, is_ours=False),
            _Source(os.path.join(root, ".claude", "settings.local.json"), of_project=True, is_ours=False),
            _Source(os.path.join(root, ".taskyard", "hooks.json"), of_project=True, is_ours=True),
        ]
    if len(_places) >= MOST_PLACES:
        _places.clear()
    _places[key] = sources
    return sources


def _once_each(hooks: list[Hook]) -> tuple[Hook, ...]:
    """Without repetitions, the first kept: a command both the user and the project name is the user's."""
    kept: dict[tuple[str, str, str], Hook] = {}
    for hook in hooks:
        kept.setdefault((hook.event, hook.matcher, hook.command), hook)
    return tuple(kept.values())


def _look(source: _Source) -> _Found | None:
    """What `source` says now; None if there is no such file."""
    try:
        version = _version(os.stat(source.path))
        known = _remembered.get(source)
        if known is not None and known.version == version:
            return known
        found = _read(source)
    except (FileNotFoundError, NotADirectoryError):
        _remembered.pop(source, None)
        return None
    except OSError as error:
        return _Found((hash(source),), problems=(HookProblem(source.path, "", storage_error(source.path, error).why),))
    except (Damaged, StorageError) as error:
        return _Found((hash(source),), problems=(HookProblem(source.path, "", error.why),))
    if time.time_ns() - max(found.version[:2]) > YOUNG_NS:
        _remembered[source] = found
    return found


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _read(source: _Source) -> _Found:
    """Links are followed: many keep their settings in a repository of dotfiles."""
    fd = open_plain(source.path, follow=True)
    try:
        version = _version(os.fstat(fd))
        data = read_open(fd, source.path, most=LARGEST_SETTINGS)
    finally:
        os.close(fd)
    hooks, problems = _parsed(source, data)
    return _Found(version, hooks, problems)


def _parsed(source: _Source, data: bytes) -> tuple[tuple[Hook, ...], tuple[HookProblem, ...]]:
    import json

    try:
        settings = cast("object", json.loads(data))
    except json.JSONDecodeError as error:
        return (), (HookProblem(source.path, f"line {error.lineno}, column {error.colno}", error.msg),)
    except UnicodeDecodeError as error:
        return (), (HookProblem(source.path, f"byte {error.start}", f"it is not {error.encoding.upper()}"),)
    except (ValueError, RecursionError) as error:
        return (), (HookProblem(source.path, "", str(error)),)
    return check_settings(source.path, settings, of_project=source.of_project, is_ours=source.is_ours)
