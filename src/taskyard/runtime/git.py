"""
Run the git program: bounded, without questions, and without programs that a repository brings along.

A repository's own configuration can name programs: hooks, a file system monitor, filters, ssh commands. Whoever made
the folder chose them, which may be the author of an archive, or of a bare repository hidden in a clone. They are off
for every call from here. Filters and the like of `.git/config` are on once a person allowed them (`taskyard trust`):
git-lfs is such a filter. Hooks and the monitor stay off. Programs of the user's and the system's settings are used.
"""

from __future__ import annotations

import os
import re

from taskyard import paths
from taskyard.errors import TaskyardError
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Settings of every call, whatever a repository says.
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

#: Characters of git's error message that are kept.
_LONGEST_ERROR = 500

#: Seconds for a question.
PATIENCE = 60.0

#: Settings that name a program, and what each is set to where the repository's value is not trusted.
#: git writes section and variable in lower case.
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

#: git's variables that say who acts and by which settings. Those that say where are not passed on.
_KEPT = (
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM",
)  # fmt: skip


class Said(NamedTuple):
    """What git answered."""

    output: bytes
    error: str = ""  #: why it failed; empty if it did not

    @property
    def text(self) -> str:
        """The output, without the line's end."""
        return os.fsdecode(self.output).rstrip("\n")


class _Setting(NamedTuple):
    scope: str
    key: str
    value: str

    @property
    def is_of_repository(self) -> bool:
        return self.scope not in ("system", "global", "command")


def git(folder: str, *words: str, timeout: float = PATIENCE) -> Said:
    """Run git on the repository around `folder`; programs that its own configuration names run only if trusted."""
    if bare := _bare_around(folder):
        return Said(b"", f"{bare} is a bare repository inside another folder, and not used")
    listed = _settings(folder)
    if isinstance(listed, Said):
        return listed
    return _run(folder, words, timeout, () if _is_trusted(folder, listed) else _overrides(listed))


def git_dir(folder: str, *words: str, timeout: float = PATIENCE) -> Said:
    """Ask git about the history in the git folder `folder`, such as a submodule's; no files are read or written."""
    return _run(folder, (f"--git-dir={folder}", f"--work-tree={folder}", *words), timeout)


def own_programs(folder: str) -> tuple[str, ...]:
    """The programs that the configuration of the repository around `folder` names, as `key = value`."""
    listed = () if _bare_around(folder) else _settings(folder)
    return () if isinstance(listed, Said) else _programs(listed)


def untrusted_programs(folder: str) -> tuple[str, ...]:
    """Those of `own_programs` that do not run, because no person allowed them."""
    listed = () if _bare_around(folder) else _settings(folder)
    return () if isinstance(listed, Said) or _is_trusted(folder, listed) else _programs(listed)


def _is_trusted(folder: str, listed: tuple[_Setting, ...]) -> bool:
    programs = _programs(listed)
    if not programs:
        return True
    from taskyard.trust import trusted_git

    try:
        return trusted_git(paths.project(folder).root, programs)
    except TaskyardError:
        return False


def _programs(listed: Iterable[_Setting]) -> tuple[str, ...]:
    found = (one for one in listed if one.is_of_repository and one.value and _neutral(one.key) is not None)
    return tuple(sorted({f"{one.key} = {one.value}" for one in found}))


def _overrides(listed: tuple[_Setting, ...]) -> list[tuple[str, str]]:
    """What puts the user's settings, or neutral ones, in the place of the repository's programs."""
    found: list[tuple[str, str]] = []
    for key in dict.fromkeys(one.key for one in listed if one.is_of_repository):
        if (neutral := _neutral(key)) is not None:
            found.append((key, neutral))
            found += ((key, one.value) for one in listed if one.key == key and not one.is_of_repository)
            if key.startswith("filter."):
                found.append((f"{key.rpartition('.')[0]}.required", "false"))
    return found


def _neutral(key: str) -> str | None:
    return next((value for pattern, value in _PROGRAMS if pattern.fullmatch(key)), None)


def _settings(folder: str) -> tuple[_Setting, ...] | Said:
    said = _run(folder, ("config", "--list", "--show-scope", "-z"), PATIENCE)
    if said.error:
        return said
    parts = os.fsdecode(said.output).split("\0")
    pairs = zip(parts[::2], parts[1::2], strict=False)
    return tuple(_Setting(scope, *_split(entry)) for scope, entry in pairs)


def _split(entry: str) -> tuple[str, str]:
    key, _, value = entry.partition("\n")
    return key, value


def _bare_around(folder: str) -> str:
    """The bare repository that git older than 2.38 would find around `folder` before a `.git`; empty if none."""
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


def _run(folder: str, words: tuple[str, ...], timeout: float, overrides: Iterable[tuple[str, str]] = ()) -> Said:
    import subprocess

    fixed = [word for setting in _FIXED for word in ("-c", setting)]
    try:
        done = subprocess.run(  # words, no shell
            ["git", "-C", folder, *fixed, *words],  # the user's own
            env=_environment(list(overrides)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        return Said(b"", "git is not installed")
    except subprocess.TimeoutExpired:
        return Said(b"", f"git {words[0]} took longer than {timeout:g} s")
    except OSError as error:
        return Said(b"", f"git cannot be started: {error.strerror}")
    if done.returncode == 0:
        return Said(done.stdout)
    message = " ".join(done.stderr.decode("utf-8", "replace").split())[-_LONGEST_ERROR:]
    return Said(done.stdout, message or f"git {words[0]} ended with exit code {done.returncode}")


def _environment(overrides: list[tuple[str, str]]) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {name: value for name in _KEPT if (value := os.environ.get(name)) is not None}
    env |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    if overrides:
        env["GIT_CONFIG_COUNT"] = str(len(overrides))
        for number, (key, value) in enumerate(overrides):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env
