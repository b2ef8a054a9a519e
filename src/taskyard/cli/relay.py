"""`taskyard relay`: keep the jobs of this machine within reach of others that share its database."""

from __future__ import annotations

from taskyard import config, paths
from taskyard.cli.command import Command
from taskyard.cli.output import answer, say
from taskyard.errors import UsageError
from taskyard.relay import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args


def _run(args: Args) -> int:
    settings = config.load()
    if not door.is_shared(settings):
        raise UsageError(
            "No database is set up, so there is nobody to tell.",
            "Set TASKYARD_STORE=postgresql://user@host/database, or `store` in config.toml.",
        )
    from taskyard.relay.host import host_of
    from taskyard.relay.life import run

    host = host_of(paths.home(), settings)
    say(args, f"The jobs of {host.name} are within reach. Ctrl+C ends this; they go on.")
    run(host, door.database_of(settings), settings, stay=True)
    return answer(args, lambda: {"host": host.name, "id": host.id}, list)


RELAY = Command(
    _run,
    None,
    "Bring what happens to the jobs of this machine to others that share its database, and do to them what those ask,\n"
    "until interrupted. Nobody has to run it: whoever starts a job or looks at one starts it, and it stays while jobs\n"
    "run. As a service it keeps a machine in reach also when none does: for the output of jobs that are over.",
    examples=("taskyard relay", "systemd-run --user taskyard relay"),
)
