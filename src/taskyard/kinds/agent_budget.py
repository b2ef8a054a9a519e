"""How much an agent may use up: by itself, with all that are below the same outermost job, with all of the day."""

from __future__ import annotations

from taskyard.errors import Busy, StorageError
from taskyard.runtime import spending
from taskyard.runtime.spending import Budget, Spent
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.config import Settings


class Purse(NamedTuple):
    """A budget that others draw on too."""

    name: str  #: as `spending` knows it
    words: str  #: as people do
    budget: Budget


def purses(settings: Settings, root: str) -> tuple[Purse, ...]:
    """Those that count for an agent below `root`; only what has a limit."""
    tree = Budget(settings.agent_tree_tokens, settings.agent_tree_cost)
    day = Budget(settings.agent_day_tokens, settings.agent_day_cost)
    found = (
        Purse(spending.of_tree(root), f"the budget of all agents below {root}", tree),
        Purse(spending.of_today(), "today's budget for agents", day),
    )
    return tuple(purse for purse in found if purse.budget.is_set)


class Budgets:
    """What one agent draws on."""

    def __init__(self, home: str, own: Budget, shared: tuple[Purse, ...]) -> None:
        self._home, self._own, self._shared = home, own, shared
        self._booked = Spent()

    def over(self) -> str:
        """Why there is nothing left even before it began; nothing if there is."""
        for purse in self._shared:
            if what := purse.budget.over(spending.spent(self._home, purse.name)):
                return f"{purse.words} is used up: {what}"
        return ""

    def used(self, spent: Spent) -> str:
        """Count what it has used so far; why it may not go on, if so."""
        reason = f"its budget is used up: {what}" if (what := self._own.over(spent)) else ""
        more = Spent(max(spent.tokens - self._booked.tokens, 0), max(spent.usd - self._booked.usd, 0.0))
        if not any(more):
            return reason
        for purse in self._shared:
            try:
                sums = spending.spend(self._home, purse.name, more)
            except (Busy, StorageError):
                continue  # its own limits hold; others' are as good as the disk
            if not reason and (what := purse.budget.over(sums)):
                reason = f"{purse.words} is used up: {what}"
        self._booked = Spent(self._booked.tokens + more.tokens, self._booked.usd + more.usd)
        return reason
