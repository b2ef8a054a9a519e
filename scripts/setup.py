"""
Make this checkout ready to work in: a virtual environment, and what the tests need beside Python.

    python3 scripts/setup.py            everything: `make setup`, `make test`, `make check`, `make bench`
    python3 scripts/setup.py package    only the package and its Python tools: `make demo`
    python3 scripts/setup.py ray        a Ray of its own, for the tests that run agents on a cluster: `make setup-ray`

Each part leaves a stamp with a digest of what it was made from, and is not made again until that
changes. System packages are installed by apt-get for root; anybody else is shown the one command.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
RAY_VENV = os.path.join(ROOT, ".venv-ray")
NODE_FOLDER = os.path.join(ROOT, "tests", "node")

OLDEST_PYTHON = (3, 11)

#: What is fetched for the tests that need a real cluster; 2.52 is the first that knows tokens.
RAY = "ray[default]>=2.52"

#: Where Debian puts each version of PostgreSQL: no folder of it is on the PATH.
DEBIAN_POSTGRES = "/usr/lib/postgresql"

#: The oldest Node that still reads the lock file's format and runs the writers of the tests.
OLDEST_NODE = 18


class Stop(Exception):
    """Set-up cannot go on; the message says what to do."""


class Need(NamedTuple):
    """Something from outside Python: how it is called, which Debian package brings it, what for."""

    command: str
    package: str
    why: str


NEEDS = (
    Need("node", "nodejs", "the second writer of the interop tests, and what the bench compares with"),
    Need("npm", "npm", "fetches that writer's lock library"),
    Need("git", "git", "worktrees and repositories that tests make"),
    Need("strace", "strace", "kills a writer between two of its system calls"),
    Need("tmux", "tmux", "teams and the terminal view are tried in it"),
    Need("chromium", "chromium", "the web page is tried in it"),
    Need("zsh", "zsh", "the completions are tried in it"),
    Need("fish", "fish", "the completions are tried in it"),
    Need("ip", "iproute2", "machines of their own network, for what crosses one"),
    Need("postgres", "postgresql", "a private cluster of it keeps the lists of several machines in tests"),
)
VENV_NEED = Need("ensurepip", "python3-venv", "makes the virtual environment")


class Part(NamedTuple):
    """One thing to make, once: where its stamp lies, and the files that it is made from."""

    stamp: str
    inputs: tuple[str, ...]

    def digest(self) -> str:
        """What a stamp says: the inputs, this Python and this place (a moved environment is broken)."""
        found = hashlib.sha256(f"{sys.version}\0{ROOT}\0".encode())
        for path in (*self.inputs, __file__):
            with open(path, "rb") as file:
                found.update(hashlib.sha256(file.read()).digest())
        return found.hexdigest()

    def is_made(self) -> bool:
        """Whether the stamp fits the inputs as they are now."""
        try:
            with open(self.stamp, encoding="ascii") as file:
                return file.read() == self.digest()
        except OSError:
            return False

    def mark_made(self) -> None:
        """Remember that it is made from the inputs as they are now."""
        with open(self.stamp, "w", encoding="ascii") as file:
            file.write(self.digest())


PACKAGE = Part(os.path.join(VENV, "ready"), (os.path.join(ROOT, "pyproject.toml"),))
RAY_PART = Part(os.path.join(RAY_VENV, "ready"), ())
NODE = Part(
    os.path.join(NODE_FOLDER, "node_modules", ".ready"),
    (os.path.join(NODE_FOLDER, "package.json"), os.path.join(NODE_FOLDER, "package-lock.json")),
)


def main(arguments: list[str]) -> int:
    """Make what is asked for; 0 if it is ready, 1 if a person must do something first."""
    if arguments not in ([], ["package"], ["ray"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        check_python(sys.version_info[:2])
        if arguments == ["ray"]:
            make_ray()
            return 0
        install_system([] if PACKAGE.is_made() else missing([VENV_NEED]))
        make_package()
        if not arguments:
            install_system(missing(NEEDS))
            make_node()
    except Stop as stop:
        print(f"setup: {stop}", file=sys.stderr)
        return 1
    return 0


def check_python(version: tuple[int, ...]) -> None:
    """Refuse a Python that is too old."""
    if version < OLDEST_PYTHON:
        raise Stop(f"Python {dotted(OLDEST_PYTHON)} or newer is needed, this is {dotted(version)}. Try: make PYTHON=…")


def missing(needs: tuple[Need, ...] | list[Need]) -> list[Need]:
    """Those of `needs` that this machine does not have."""
    return [need for need in needs if not is_there(need)]


def is_there(need: Need) -> bool:
    """Whether a command is on the PATH, or a Python module can be found."""
    if need is VENV_NEED:
        importlib.invalidate_caches()  # apt-get may have brought it since the last look
        return importlib.util.find_spec(need.command) is not None
    if need.command == "postgres":
        return postgres_folder() is not None
    return shutil.which(need.command) is not None


def postgres_folder() -> str | None:
    """Where the programs of a PostgreSQL server are: as pg_config says, or where Debian puts them, the newest first."""
    told = output_of(["pg_config", "--bindir"]).strip()
    versions = sorted((name for name in listed(DEBIAN_POSTGRES) if name.isdigit()), key=int, reverse=True)
    for folder in (told, *(os.path.join(DEBIAN_POSTGRES, version, "bin") for version in versions)):
        if folder and os.access(os.path.join(folder, "initdb"), os.X_OK):
            return folder
    return None


def listed(folder: str) -> list[str]:
    """The names in a folder; none if it is not there."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def install_system(needs: list[Need]) -> None:
    """Install system packages if that is ours to do; otherwise say the one command that does."""
    if not needs:
        return
    for need in needs:
        say(f"needs {need.package}: {need.why}")
    packages = [need.package for need in needs]
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if shutil.which("apt-get") is None:
        raise Stop(f"install {', '.join(packages)} with this system's package manager, then run make again.")
    if os.geteuid() != 0:
        raise Stop(f"run this, then make again:\n\n    sudo {shlex.join(install)}\n")
    run(["apt-get", "update"], env={"DEBIAN_FRONTEND": "noninteractive"})
    run(install, env={"DEBIAN_FRONTEND": "noninteractive"})
    if still := missing(needs):
        raise Stop(f"apt-get brought no {', '.join(need.command for need in still)}.")


def make_package() -> None:
    """The virtual environment with the package, editable, and the tools of the `dev` group."""
    if PACKAGE.is_made():
        return
    say("makes .venv")
    run([sys.executable, "-m", "venv", "--clear", VENV])
    python = os.path.join(VENV, "bin", "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    run([*pip, "--upgrade", "pip>=25.1"])  # the first that knows dependency groups
    run([*pip, "--editable", ".[mcp,otel,workflows,agents,tui,web,postgres,remote,keyring]", "--group", "dev"])
    PACKAGE.mark_made()


def make_ray() -> None:
    """A virtual environment with Ray alone: nothing of ours imports it, tests start it as a cluster."""
    if RAY_PART.is_made():
        return
    install_system(missing([VENV_NEED]))
    say("makes .venv-ray: Ray and what it needs, about 400 MB; nothing else is changed")
    run([sys.executable, "-m", "venv", "--clear", RAY_VENV])
    python = os.path.join(RAY_VENV, "bin", "python")
    run([python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", RAY])
    RAY_PART.mark_made()


def make_node() -> None:
    """The npm packages of the tests, exactly as locked."""
    if NODE.is_made():
        return
    check_node(output_of(["node", "--version"]))
    say("fetches the npm packages of tests/node")
    run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder=NODE_FOLDER)
    NODE.mark_made()


def check_node(answer: str) -> None:
    """Refuse a Node that is too old; `answer` is what `node --version` prints."""
    major = answer.strip().lstrip("v").split(".")[0]
    if not major.isdigit() or int(major) < OLDEST_NODE:
        raise Stop(f"Node {OLDEST_NODE} or newer is needed, the one on the PATH says {answer.strip() or 'nothing'}.")


def run(command: list[str], *, folder: str = ROOT, env: dict[str, str] | None = None) -> None:
    """Run `command`, shown first; it must succeed."""
    say(f"$ {shlex.join(command)}")
    try:
        code = subprocess.call(command, cwd=folder, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Stop(f"{command[0]} could not be run: {error.strerror}.") from error
    if code != 0:
        raise Stop(f"{shlex.join(command)} ended with exit code {code}.")


def output_of(command: list[str]) -> str:
    """What `command` prints; empty if it cannot be run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def say(text: str) -> None:
    """One line of progress, in order with what the commands print."""
    print(f"setup: {text}", flush=True)


def dotted(version: tuple[int, ...]) -> str:
    """`(3, 11)` as people write it."""
    return ".".join(str(part) for part in version)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
