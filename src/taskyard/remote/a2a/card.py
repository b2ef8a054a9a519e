"""
An agent's card: fetched from the address that a person named, and doubted.

It names the ways in. One of them must lead to that same address, or to the one that `interface` in config.toml allows:
otherwise the card could send the token to anybody.
"""

from __future__ import annotations

from a2a.client.card_resolver import A2ACardResolver
from a2a.types.a2a_pb2 import AgentCard
from a2a.utils.constants import TransportProtocol

from taskyard.errors import RemoteRefused
from taskyard.harmless import safe
from taskyard.remote.a2a.home import MOST, Home, origin_of

#: The ways of speaking that we know.
BINDINGS = [TransportProtocol.JSONRPC.value, TransportProtocol.HTTP_JSON.value]

#: Bytes of a card: hundreds of skills fit.
_LONGEST_CARD = 1_000_000

#: Skills, and characters of one text, that are shown to people.
_MOST_SHOWN, _LONGEST_SHOWN = 8, 80


async def fetch(home: Home, url: str) -> AgentCard:
    """The card of the agent at `url`, which is its address, or that of the card itself.

    Raises:
        AgentCardResolutionError, TooLarge: it cannot be had.
        ValueError, TypeError, AttributeError, KeyError: it is none.
    """
    resolver = A2ACardResolver(home, url)
    itself = "/" if url.endswith(".json") else None
    return await resolver.get_agent_card(itself, http_kwargs={"extensions": {MOST: _LONGEST_CARD}})


def ways_in(remote: str, card: AgentCard, origins: frozenset[str]) -> AgentCard:
    """The card with those ways in alone that we know and that lead where a person said.

    Raises:
        RemoteRefused: there are none.
    """
    known = [way for way in card.supported_interfaces if way.protocol_binding in BINDINGS]
    ours = [way for way in known if origin_of(way.url) in origins]
    if not ours:
        raise _no_way(remote, card, [origin_of(way.url) for way in known])
    kept = AgentCard()
    kept.CopyFrom(card)
    del kept.supported_interfaces[:]
    kept.supported_interfaces.extend(ours)
    return kept


def in_a_line(card: AgentCard) -> str:
    """What a card says, for people."""
    skills = [_short(skill.name or skill.id) for skill in card.skills]
    more = f" and {len(skills) - _MOST_SHOWN} more" if len(skills) > _MOST_SHOWN else ""
    name = " ".join(filter(None, (_short(card.name) or "an agent without a name", _short(card.version))))
    return f"{name}: {', '.join(skills[:_MOST_SHOWN])}{more}" if skills else name


def _no_way(remote: str, card: AgentCard, elsewhere: list[str]) -> RemoteRefused:
    places = sorted({place for place in elsewhere if place})
    if places:
        advice = f'If that is right, say so: `interface = "{places[0]}"` in [remotes.{remote}].'
        return RemoteRefused(remote, f"its card leads elsewhere: {', '.join(places[:3])}", advice)
    spoken = sorted({_short(way.protocol_binding) for way in card.supported_interfaces})
    why = f"it speaks {', '.join(spoken[:5])}" if spoken else "its card names no way in"
    return RemoteRefused(remote, f"{why}; needed is {' or '.join(BINDINGS)}")


def _short(text: str) -> str:
    shown = safe(text)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
