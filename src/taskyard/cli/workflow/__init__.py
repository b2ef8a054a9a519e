"""`taskyard workflow …`: steps that run as jobs, and go on after a crash."""

from __future__ import annotations

from taskyard.cli.command import Row

ROWS = {
    "run": Row("taskyard.cli.workflow.run:RUN", "Run the workflow in a file"),
    "resume": Row("taskyard.cli.workflow.run:RESUME", "Go on with a run that was cut short"),
    "list": Row("taskyard.cli.workflow.list:LIST", "The runs, the newest first, and how they stand"),
    "show": Row("taskyard.cli.workflow.show:SHOW", "The steps of a run or of a file, and how they stand"),
}
