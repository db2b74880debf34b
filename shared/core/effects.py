"""Never twice: what an outside action is, what a vendor may answer, and what an open intent means.

    CLAIM → INTENT → VENDOR → RECORD → SETTLE

An intent is one way. Once its row stands without a result, the only licence to send again is a vendor that
deduplicates by our key, inside its window; a look-up that finds the send is a record, one that does not is
evidence for an operator. A refusal speaks of its own request: only an intent that was begun, and not taken over
from an earlier request, is refused by it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from shared.core.errors import BadInput
from shared.core.feedback import NOTHING, Report
from shared.core.job import derived_id, name_of
from shared.core.sensitive import Sensitive

EFFECT_NAMESPACE = uuid.UUID("c2d1f0aa-37b4-5b7e-8f35-0a4f6b1d9e77")
KEPT_DAYS = 400
"""Nothing but this expiry removes an effect row."""
REPLAY_HORIZON_DAYS = 380
"""A job whose first intent is older than this is not replayed."""
RATE_LIMITED, UNREACHABLE = "429", "unreachable"
WINDOW_MARGIN = timedelta(minutes=5)
"""Kept free at the end of a vendor's deduplication window: clocks differ, requests take time."""
BY_OPERATOR = "operator:"
"""How the reason of a result begins that two people recorded."""
FOUND_OUT = f"{BY_OPERATOR}accepted:"
"""The same for an acceptance; the evidence follows."""


class Lookup(StrEnum):
    """How well a vendor can tell whether it accepted a key."""

    NONE = "none"
    EVENTUAL = "eventual"
    EXACT = "exact"


class EffectState(StrEnum):
    """What an effect row says."""

    INTENT = "intent"
    ACCEPTED = "accepted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An action with consequences: a customer sees it, or it cannot be undone. Only `ctx.effect` takes it."""

    vendor: str
    action: str
    target: str
    """Opaque id the action is aimed at; part of the vendor's path."""
    body: Sensitive[Mapping[str, Any]]
    customer_visible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A read or computation that may be repeated. Only `ctx.call` takes it."""

    vendor: str
    action: str
    body: Sensitive[Mapping[str, Any]]
    paid: bool = True
    tokens: int = 0
    """The estimate this call is charged with; its answer tells the true use."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The vendor took it. Parsing what it said comes after this verdict and cannot undo it."""

    vendor_id: str
    body: Sensitive[Any] | None = None
    report: Report = NOTHING


@dataclass(frozen=True, slots=True)
class Refused:
    """The vendor certainly did not take this request. Of an earlier one under the same intent that says nothing."""

    reason: str
    retry_after_s: float | None = None
    permanent: bool = False
    auth: bool = False
    unsent: bool = False
    """It never left this machine: it says nothing about the vendor."""
    report: Report = NOTHING

    @property
    def rate_limited(self) -> bool:
        """The vendor's limit said no; the request is as good as before."""
        return self.reason == RATE_LIMITED

    @property
    def unreachable(self) -> bool:
        """Nobody was there to refuse it."""
        return self.reason == UNREACHABLE


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody can tell: a read time-out, a 5xx, a lost connection."""

    reason: str
    report: Report = NOTHING


Answer = Accepted | Refused | Unknown


@dataclass(frozen=True, slots=True)
class Found:
    """The look-up knows the key. `times`: how often it was accepted under it; None: the vendor does not say."""

    vendor_id: str
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """The look-up does not know the key (yet)."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The look-up itself failed."""

    reason: str


LookupAnswer = Found | Absent | NoAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow:
    """The durable memory of one effect: no text, only ids, states and times."""

    effect_id: str
    job_id: str
    name: str
    vendor: str
    state: EffectState
    fence: int
    first_intent_at: datetime
    intent_at: datetime
    recorded_at: datetime | None = None
    vendor_id: str | None = None
    reason: str | None = None
    taken_over: bool = False
    """The open intent was begun by an earlier request, whose end nobody knows; a later one was made under it."""
    fingerprint: str = ""
    """What it is besides its name: a hash of vendor, action and target. An older row has none: its vendor counts."""
    customer_visible: bool = True
    """Whether a customer sees it; an older row does not say, and counts as seen."""
    also_accepted: tuple[str, ...] = ()
    """Ids under which the vendor took it once more: each is a duplicate."""

    @property
    def open(self) -> bool:
        """True for an intent without a result: the outcome is unknown until someone proves it."""
        return self.state is EffectState.INTENT

    @property
    def contradicted(self) -> bool:
        """True when the vendor took it although a refusal was written down, or took it more than once.

        An acceptance leaves the reason of a refusal it is written over, so the row keeps telling.
        """
        refused = self.reason is not None and not self.reason.startswith(FOUND_OUT)
        return self.state is EffectState.ACCEPTED and (refused or bool(self.also_accepted))

    def is_of(self, request: Effect) -> bool:
        """True when the row is of this very effect; the body is no part of it."""
        if not self.fingerprint:
            return self.vendor == request.vendor
        return self.fingerprint == fingerprint_of(self.effect_id, request)

    @property
    def expires_at(self) -> datetime:
        """When the row may go."""
        return self.first_intent_at + timedelta(days=KEPT_DAYS)


@dataclass(frozen=True, slots=True)
class Sent:
    """The effect stands at the vendor. `replayed`: an earlier attempt had sent it."""

    vendor_id: str
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Withheld:
    """A switch forbids it; nothing was sent and nothing will be sent later by itself."""

    by: str


@dataclass(frozen=True, slots=True)
class SendAgain:
    """The vendor deduplicates by our key and its window is open."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """Ask the vendor; until `give_up_at` an absent key is asked for again."""

    give_up_at: datetime


@dataclass(frozen=True, slots=True)
class Park:
    """Nothing more can be learnt by a machine: `outcome_unknown`, an operator decides with evidence."""


def effect_id_of(job_id: str, name: str) -> str:
    """The vendor's idempotency key: one per job and effect, the same on every attempt."""
    return str(derived_id(EFFECT_NAMESPACE, job_id, name_of("effect", name)))


def fingerprint_of(effect_id: str, request: Effect) -> str:
    """What an effect is besides its name. A hash: a target may be somebody's address."""
    parts: tuple[object, ...] = (request.vendor, request.action, request.target)
    texts = [part for part in parts if isinstance(part, str) and part]
    if len(texts) < len(parts):
        raise BadInput("effect", "needs a vendor, an action and a target, each a text that is not empty")
    return derived_id(EFFECT_NAMESPACE, effect_id, *texts).hex


def with_acceptance(row: EffectRow, acceptance: EffectRow) -> EffectRow:
    """What a row says once the vendor is known to have taken it, whatever stood there.

    Over an intent of any fence and over a refusal it is the result. Over another acceptance under another id it is
    kept beside it. An id takes the place of what people gave as evidence, and of nothing.
    """
    if row.state is not EffectState.ACCEPTED:
        accepted_at, vendor_id = acceptance.recorded_at, acceptance.vendor_id
        return replace(row, state=EffectState.ACCEPTED, recorded_at=accepted_at, vendor_id=vendor_id, taken_over=False)
    new = acceptance.vendor_id
    if new is None or new in (row.vendor_id, *row.also_accepted):
        return row
    if row.vendor_id is None or row.reason == FOUND_OUT + row.vendor_id:
        return replace(row, vendor_id=new)
    return replace(row, also_accepted=tuple(sorted((*row.also_accepted, new))))


def resolve_open_intent(
    row: EffectRow, *, dedupes_by_key: timedelta | None, lookup: Lookup, grace_s: float, now: datetime
) -> SendAgain | LookUp | Park:
    """What an attempt may do about an intent whose outcome is unknown."""
    if dedupes_by_key is not None and now < row.first_intent_at + dedupes_by_key - WINDOW_MARGIN:
        return SendAgain()
    if lookup is not Lookup.NONE:
        return LookUp(give_up_at=row.intent_at + timedelta(seconds=grace_s))
    return Park()
