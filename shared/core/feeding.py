"""What feeds a lane's workers, and why its jobs stand still although every gate is open."""

from __future__ import annotations

from dataclasses import dataclass

from shared.core.capacity import EventSource

THROTTLED_MIN = 5
"""Refusals of so many minutes are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeding:
    """How the platform stands to a lane's workers now."""

    source: EventSource | None
    """None: there is none."""
    reserved: int | None = None
    """Workers that the platform lets run at once, where somebody said so."""
    throttled: int = 0
    """Starts it refused in the last minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedTrouble:
    """What is wrong, in a sentence that says what to do."""

    sentence: str
    stops: bool
    """True where no job of the lane starts until somebody does something."""


def feed_trouble(fed: Feeding, *, on_purpose: bool) -> FeedTrouble | None:
    """Why workers get nothing, or less than they could; None when they are fed. `on_purpose`: a halt or a pin of 0 has
    disabled the source, and whoever takes it away has it enabled again."""
    source = fed.source
    if source is None:
        return FeedTrouble(sentence="nothing feeds its workers: deploy the lane's stack", stops=True)
    if source.state == "Disabled" and on_purpose:
        return FeedTrouble(
            sentence="its event source is disabled, by a halt or a pin of 0: it is enabled when that is over",
            stops=True,
        )
    if source.state == "Disabled":
        return FeedTrouble(
            sentence="its event source was disabled by somebody, so its workers get nothing: enable it"
            " (`penstock doctor` has its id)",
            stops=True,
        )
    if fed.reserved == 0:
        return FeedTrouble(
            sentence="its worker's reserved concurrency is 0, so every start is refused and uses up a receive:"
            " set it as it is configured, or deploy the lane's stack",
            stops=True,
        )
    if not source.settled:
        return FeedTrouble(
            sentence=f"its event source is {source.state.lower()}: its workers may get nothing for a minute",
            stops=False,
        )
    if fed.throttled:
        return FeedTrouble(
            sentence=f"its worker was refused {fed.throttled:,} starts in the last {THROTTLED_MIN} minutes: what was"
            " refused comes back after its visibility timeout; `penstock doctor` shows quota and reserve",
            stops=False,
        )
    return None
