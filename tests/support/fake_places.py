"""A fake place that runs agents, served by a process of its own, and its switches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.wait import until
from taskyard.jobs.remote.remotes import Remote
from taskyard.testing.fake_remote import FakeBackend


class FakePlace:
    """A place in a folder, while its process lives."""

    def __init__(self, folder: Path, *, token: str = "") -> None:
        self.folder = folder
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if token:
            (folder / "token").write_text(token)
        self._process: subprocess.Popen[bytes] | None = None
        self.open()

    def open(self) -> None:
        """Begin to serve, with no memory of any session."""
        (self.folder / "address").unlink(missing_ok=True)
        self._process = subprocess.Popen([sys.executable, "-P", "-m", "taskyard.testing.fake_remote", str(self.folder)])
        until((self.folder / "address").exists)

    def kill(self) -> None:
        """End its process, and all sessions."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def switch(self, name: str, text: str = "") -> None:
        """Set a switch."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def clear(self, name: str) -> None:
        """Take a switch back."""
        (self.folder / name).unlink()

    def remote(self, name: str = "here") -> Remote:
        """The place, as it would be set up."""
        return Remote(name, "fake", url=f"file://{self.folder}")

    def backend(self, token: str = "") -> FakeBackend:
        """What speaks to it."""
        return FakeBackend(self.remote(), token)


def set_up(place: FakePlace, name: str = "here", *, token_env: str = "", **more: str) -> None:
    """Name a place in this test's config.toml; it is polled often, as tests are short."""
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "taskyard" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"[remotes.{name}]", 'backend = "fake"', f'url = "file://{place.folder}"', "poll_seconds = 0.03"]
    lines += [f'token_env = "{token_env}"'] if token_env else []
    lines += [f'{key} = "{value}"' for key, value in more.items()]
    with config.open("a") as file:
        file.write("\n".join(lines) + "\n")
