"""Where a support event goes, decided by rules alone."""

from __future__ import annotations

from dataclasses import dataclass

TIER_0 = ("legal", "safety", "payment_dispute", "account_security")
"""Topics a person always answers."""
TEAMS = {"billing": "billing", "shipping": "logistics", "returns": "logistics"}
DEFAULT_TEAM = "front_desk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The team a conversation goes to, and whether it may be answered without a person."""

    team: str
    auto_reply: bool


def route(topic: str) -> Route:
    """The route of a topic; Tier 0 topics are never answered by the machine."""
    if topic in TIER_0:
        return Route(team="specialists", auto_reply=False)
    return Route(team=TEAMS.get(topic, DEFAULT_TEAM), auto_reply=True)
