"""`taskyard dream …`: an agent brings a memory folder in order."""

from __future__ import annotations

from taskyard.cli.command import Row

ROWS = {
    "": Row("taskyard.cli.dream.run:DREAM", "Bring the memory in order, if it is time"),
    "status": Row("taskyard.cli.dream.show:STATUS", "When the last one was, and what the next one waits for"),
    "history": Row("taskyard.cli.dream.show:HISTORY", "Earlier states of the memory"),
    "undo": Row("taskyard.cli.dream.show:UNDO", "Put an earlier state back"),
}
