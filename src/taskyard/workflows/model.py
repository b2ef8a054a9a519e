"""A workflow as data: its steps, and how each of them stands."""

from __future__ import annotations

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: How a step can stand. The last three are final.
WAITING, RUNNING, COMPLETED, FAILED, SKIPPED = "waiting", "running", "completed", "failed", "skipped"

_FINAL = frozenset({COMPLETED, FAILED, SKIPPED})


class Wish(NamedTuple):
    """A task that a step puts on the shared list."""

    subject: str
    description: str = ""
    owner: str | None = None
    needs: tuple[int, ...] = ()  #: places in the same step of those it waits for


class Step(NamedTuple):
    """One step: a command, an agent's work or tasks for the list."""

    id: str
    run: str | None = None
    agent: Mapping[str, object] | None = None
    tasks: tuple[Wish, ...] = ()
    needs: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    timeout: float | None = None  #: seconds
    retries: int = 0
    retry_delay: float = 1.0  #: seconds before the second attempt; twice as long before each further one
    condition: str = ""  #: its `if`
    goes_on: bool = False  #: its failure is no reason to stop

    @property
    def kind(self) -> str:
        """What it does, in a word."""
        return "run" if self.run is not None else "agent" if self.agent is not None else "tasks"


class Definition(NamedTuple):
    """A workflow, checked: every step it names is there, and none waits for itself."""

    name: str
    steps: tuple[Step, ...]
    env: Mapping[str, str] = {}
    cwd: str | None = None
    most_at_once: int | None = None
    timeout: float | None = None  #: seconds for all of it

    def step(self, step_id: str) -> Step:
        """The step of an id that is there."""
        return next(step for step in self.steps if step.id == step_id)

    def all_needs(self, step: Step) -> set[str]:
        """Every step that must be over before this one, also those that others wait for in turn."""
        by_id = {each.id: each for each in self.steps}
        found: set[str] = set()
        waiting = list(step.needs)
        while waiting:
            need = waiting.pop()
            if need not in found:
                found.add(need)
                waiting += by_id[need].needs
        return found


#: Causes of an end that came from outside, with the end of the workflow: such a step is not finished.
CUT_SHORT = ("stopped", "lost")


class StepState(NamedTuple):
    """How a step stands."""

    status: str = WAITING
    job: str | None = None  #: the job that does it, or did
    exit_code: int | None = None
    output: str = ""  #: the end of what it printed, for steps that want to know
    why: str = ""  #: of one that failed or was skipped, in words
    at: int = 0  #: when it came to this, epoch ms

    @property
    def is_over(self) -> bool:
        """Whether it will not run any more."""
        return self.status in _FINAL
