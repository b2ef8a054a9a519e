"""The team of `page_scene`, in a home of its own, with its page served: for tests that only look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import taskyard
from support.page_scene import LIST
from support.repo import SOURCE, TESTS
from support.wall_clock import WallClock
from support.web import WebServer


class PageTeam:
    """A team an hour into its work, for the length of a `with` block."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._patched = pytest.MonkeyPatch()
        for name, below in {"HOME": "", "TASKYARD_HOME": "taskyard", "CLAUDE_CONFIG_DIR": ".claude"}.items():
            self._patched.setenv(name, str(folder / below))
        self._patched.setenv("PYTHONPATH", f"{SOURCE}:{TESTS}")
        self._patched.setenv("TASKYARD_STALL_AFTER", "0.3")
        try:
            with pytest.MonkeyPatch.context() as clock:
                WallClock(folder, clock)
                scene = [sys.executable, str(TESTS / "support" / "page_scene.py")]
                subprocess.run(scene, env={**os.environ}, check=True, timeout=50)
            self.server = WebServer(*words, list=LIST)
        finally:
            self._home = {name: os.environ[name] for name in ("HOME", "TASKYARD_HOME", "CLAUDE_CONFIG_DIR")}
            self._patched.undo()

    def __enter__(self) -> PageTeam:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        with pytest.MonkeyPatch.context() as patched:
            for name, value in self._home.items():
                patched.setenv(name, value)
            with taskyard.open(list=LIST, is_person=True) as yard:
                if running := [job.id for job in yard.jobs.list()]:
                    yard.jobs.stop(*running)


def at(page: Page, view: str) -> None:
    """Go to a view as a person would, and wait until it shows something."""
    page.keyboard.press({"board": "b", "graph": "g", "background": "o", "timeline": "t", "panel": "b"}[view])
    if view == "panel":
        page.locator('.card[data-id="12"]').click()
        expect(page.locator(".panel .history")).to_be_visible()
    elif view == "background":
        page.locator(".jobs .row", has_text="npm test").click()
        expect(page.locator(".out").last).to_contain_text("keeps unknown columns")
    else:
        shown = {"board": ".card", "graph": ".node", "timeline": ".bar"}[view]
        expect(page.locator(f"{shown}:visible").first).to_be_visible()
