"""What the world is told of a server: its skills by name, how to ask, and that a token is wanted. Nothing of how."""

from __future__ import annotations

from collections.abc import Iterable

from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import PROTOCOL_VERSION_1_0, TransportProtocol

import taskyard
from taskyard.a2a_server.skills import Skill
from taskyard.remote.a2a import since

#: Where JSON-RPC and REST are spoken.
RPC, REST = "/rpc", "/rest"

#: What is taken, and what comes back.
MODES = ("text/plain", "application/json")


def card_of(skills: Iterable[Skill], url: str, *, name: str, description: str) -> AgentCard:
    """The card of a server at `url`."""
    base = url.rstrip("/")
    ways = [(RPC, TransportProtocol.JSONRPC.value), (REST, TransportProtocol.HTTP_JSON.value)]
    told = "A poll with an offset is told only what is new of the transcript."
    bearer = HTTPAuthSecurityScheme(scheme="Bearer", description="`taskyard a2a token` makes one for each caller.")
    return AgentCard(
        name=name,
        description=description,
        version=taskyard.__version__,
        supported_interfaces=[
            AgentInterface(url=base + path, protocol_binding=binding, protocol_version=PROTOCOL_VERSION_1_0)
            for path, binding in ways
        ],
        capabilities=AgentCapabilities(
            streaming=True,
            push_notifications=False,
            extensions=[AgentExtension(uri=since.URI, description=told, required=False)],
        ),
        security_schemes={"token": SecurityScheme(http_auth_security_scheme=bearer)},
        security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
        default_input_modes=MODES,
        default_output_modes=MODES,
        skills=[_skill(skill) for skill in skills],
    )


def _skill(skill: Skill) -> AgentSkill:
    tags = skill.tags or ("agent",)
    return AgentSkill(id=skill.name, name=skill.name, description=skill.description, tags=tags, examples=skill.examples)
