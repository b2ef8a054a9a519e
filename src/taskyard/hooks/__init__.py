"""
Hooks: other people's commands, asked before a task is created or completed and told what happened.

* `load`   the hooks in force for a project, from Claude Code's settings and ours
* `run`    ask those of one event; a refusal is an error

Settings, input and exit codes are Claude Code's, so one hook serves both programs.
"""

from __future__ import annotations

from taskyard.hooks.book import HookBook, load
from taskyard.hooks.check import EVENTS, Hook, HookProblem
from taskyard.hooks.runner import REFUSABLE, HookResult, HookRun, run

__all__ = ["EVENTS", "REFUSABLE", "Hook", "HookBook", "HookProblem", "HookResult", "HookRun", "load", "run"]
