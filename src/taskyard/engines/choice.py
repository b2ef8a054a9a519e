"""What an agent runs on, by what was asked for and, where nothing was, by the settings."""

from __future__ import annotations

from taskyard import config
from taskyard.engines.installed import model_for, resolved
from taskyard.errors import BadValue
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Choice(NamedTuple):
    """An engine with what it needs."""

    engine: str
    command: tuple[str, ...]  #: the program of engines that are one
    model: str | None


def chosen(engine: str, command: Sequence[str], model: str | None, settings: config.Settings | None = None) -> Choice:
    """The engine, the program it runs, and the model it runs on.

    Raises:
        BadValue: the program in the settings is no command.
    """
    settings = settings or config.load()
    found, program = resolved(engine or settings.engine)
    if command:
        program = tuple(command)
    elif not program and found == "command":
        program = words_of("agent_command", settings.agent_command)
    return Choice(found, program, model_for(found, model, usual=settings.agent_model))


def words_of(setting: str, command: str) -> tuple[str, ...]:
    """The words of a command in a setting, as a shell would read them.

    Raises:
        BadValue: no shell would.
    """
    import shlex

    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise BadValue(setting, command, f"a command as a shell would read it ({error})") from None
