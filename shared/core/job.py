"""What a job is: its identity, its record, and how it moves."""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

from shared.core.errors import BadInput

NAMESPACE = uuid.UUID("6f0c3a52-9a57-5d0e-9b1a-7e5b9f2d4c10")
PRIORITIES = (0, 1, 2, 3)
"""0 jumps ahead, 3 can wait longest; four at most, so a merge on read stays cheap."""
DEFAULT_PRIORITY = 2
LONGEST_WAIT_DAYS = 60
"""How far ahead a job with a payload may wait: text is kept this much longer than the longest retention of a job."""
MAX_PAYLOAD_BYTES = 256 * 1024
MAX_PAYLOAD_DEPTH = 32
MAX_WHOLE = 10**38
"""Whole numbers beyond this many digits are not kept exactly everywhere a payload passes through."""
CANARY, ENGINE_TENANT = "canary", "penstock"
"""A task that every lane's worker knows and no lane lists: it does nothing. The engine asks for it, in its own name."""
CANARY_KEPT_DAYS = 1
NATIVE = "native"
"""The route of a job whose ticket is its own dead letter, moved by SQS."""
KEPT_MOVES = 8
"""Moves kept on the row: enough to tell the story, few enough to keep the row in one write unit."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=/-]*")
MAX_TENANT = 64
MAX_KEY_PART = 128
MAX_KEY_PARTS = 4
MAX_DELAY_DAYS = 400
"""A job put off for longer is a mistake in a unit: its effects would be forgotten before it ran."""


class Status(StrEnum):
    """The six states of a job, and no others."""

    QUEUED = "queued"
    PROCESSING = "processing"
    BATCH_SUBMITTED = "batch_submitted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def ended(self) -> bool:
        """True when no worker will touch the job again by itself."""
        return self in (Status.COMPLETED, Status.FAILED, Status.CANCELED)


STATUS_ALIASES: Mapping[str, Status] = {
    "running": Status.PROCESSING,
    "succeeded": Status.COMPLETED,
    "pending": Status.QUEUED,
}
"""Words of older systems: read, never written."""


def read_status(word: str) -> Status:
    """The status a stored word means; an unknown word raises ValueError without repeating it."""
    alias = STATUS_ALIASES.get(word)
    if alias is not None:
        return alias
    try:
        return Status(word)
    except ValueError:
        raise ValueError("status is not one this version knows") from None


class Category(StrEnum):
    """Why a job failed: the closed list a dead letter is sorted by."""

    AUTH = "auth"
    MALFORMED = "malformed"
    VENDOR_PERMANENT = "vendor_permanent"
    RETRIES_EXHAUSTED = "retries_exhausted"
    OUTCOME_UNKNOWN = "outcome_unknown"
    POISON = "poison"
    INFRASTRUCTURE = "infrastructure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One step of a job's history: when, to which state, why."""

    at: datetime
    to: Status
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of work, exactly as its row says. Changed only by `lifecycle`; the payload is elsewhere."""

    job_id: str
    lane: str
    tenant: str
    task: str
    key: str
    created_at: datetime
    updated_at: datetime
    status: Status = Status.QUEUED
    task_version: int = 1
    priority: int = DEFAULT_PRIORITY
    not_before_at: datetime | None = None
    claimed_at: datetime | None = None
    claimed_by: str | None = None
    taken_from: datetime | None = None
    """When the claim was made from which a person took it back: until that claim's time is over, its worker may still
    be at work. A row from before that was noted says of nobody that he was."""
    fence: int = 0
    attempt_count: int = 0
    max_attempts: int = 3
    last_error: str | None = None
    last_error_at: datetime | None = None
    category: Category | None = None
    signature: str | None = None
    blocked_by: str | None = None
    waiting_since: datetime | None = None
    """First deferral of the present wait; `max_wait_s` counts from here."""
    permit_at: datetime | None = None
    """Its promised turn at a vendor account: it stands in front of everybody who was promised none."""
    estimated_tokens: int | None = None
    """What its next attempt needs of a vendor account, as far as is known."""
    estimated_requests: int | None = None
    """How many calls it must make in one attempt, where that is more than one."""
    due: datetime | None = None
    """Place in the waiting index: the time it is next looked at. None: not in the index."""
    place_as_read: str | None = None
    """Its key in the waiting index, empty for none, where what stood there is not what its times make: the next move
    asks for this one and writes the other."""
    payload_ref: str | None = None
    payload_hash: str = ""
    result: str | None = None
    result_ref: str | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    replay_count: int = 0
    plan_id: str | None = None
    route: str | None = None
    """`native` from its release until somebody claims or moves it on; None: the stream or the dispatcher sends it."""
    routing_decision: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] | None = None
    """What the lane's own record says of it: closed words and ids, never text."""
    withheld: Mapping[str, str] | None = None
    """What its last attempt did not do because of a switch: effect or call → the scope that forbids it."""
    moves: tuple[Move, ...] = field(default=())

    @property
    def waits(self) -> bool:
        """True when the job stands in the waiting index."""
        return self.due is not None

    @property
    def withdrawn(self) -> bool:
        """True for a job that failed again only because its plan stopped: its dead letter never left its queue."""
        return self.status is Status.FAILED and bool(self.moves) and self.moves[-1].reason == "withdraw"

    @property
    def runnable_at(self) -> datetime:
        """When the job may run: its own time if it has one, else since it exists."""
        return self.not_before_at or self.created_at

    def noted(self, to: Status, reason: str, now: datetime, **changes: Any) -> Job:
        """A copy with `changes`, its move written down. The law of who may go where is `lifecycle`'s."""
        moves = (*self.moves, Move(at=now, to=to, reason=reason))[-KEPT_MOVES:]
        return self.placed(status=to, updated_at=now, moves=moves, **changes)

    def placed(self, **changes: Any) -> Job:
        """A copy with `changes`, to be written under the key that its times make."""
        return replace(self, place_as_read=None, **changes)


def name_of(field_name: str, value: object) -> str:
    """A lane's or task's name: lower case, digits, underscores; it becomes part of resource names."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise BadInput(field_name, "must be lower-case letters, digits and _, starting with a letter, at most 32")
    return value


def identifier(field_name: str, value: object, max_length: int) -> str:
    """An opaque id given by a caller: present, short, printable, without blanks (prose is not an id)."""
    if not isinstance(value, str) or not value:
        raise BadInput(field_name, "is missing or empty")
    if len(value) > max_length:
        raise BadInput(field_name, f"has {len(value)} characters, at most {max_length} are allowed")
    if not _IDENTIFIER.fullmatch(value):
        raise BadInput(field_name, "may hold only letters, digits and . _ : @ + = / - (it is an id, not text)")
    return value


def one_line(field_name: str, text: str, max_length: int) -> str:
    """What a person says, in one line that can be kept; it may be empty."""
    line = " ".join(text.split())
    if len(line) > max_length:
        raise BadInput(field_name, f"has {len(line)} characters, at most {max_length} are allowed")
    try:
        line.encode()
    except UnicodeEncodeError:
        raise BadInput(field_name, "holds what is no text: write it in UTF-8") from None
    return line


def new_tenant(value: object) -> str:
    """The tenant of something new. One with a slash is refused, and read where it stands already: what may be written
    for `acme` is told apart from what is `acme/b`'s by the slash behind the name."""
    tenant = identifier("tenant", value, MAX_TENANT)
    if "/" in tenant:
        raise BadInput("tenant", "may not hold / in new jobs and documents: write it with another sign, such as :")
    return tenant


def key_parts(key: str | Sequence[str]) -> tuple[str, ...]:
    """The parts of a job's key, each required; the key names the cause of the job."""
    if isinstance(key, str):
        parts: tuple[str, ...] = (key,)
    elif isinstance(key, Sequence):
        parts = tuple(key)
    else:
        # A set or a mapping has no order of its own: the same cause would have several ids.
        raise BadInput("key", "is missing, or not text or a list of texts")
    if not parts:
        raise BadInput("key", "is missing or empty")
    if len(parts) > MAX_KEY_PARTS:
        raise BadInput("key", f"has {len(parts)} parts, at most {MAX_KEY_PARTS} are allowed")
    return tuple(identifier(f"key[{i}]", part, MAX_KEY_PART) for i, part in enumerate(parts))


def job_id_of(lane: str, tenant: str, task: str, key: str | Sequence[str]) -> str:
    """The id that lane, tenant, task and cause always give: a cause enqueued twice is one job."""
    parts = (
        name_of("lane", lane),
        identifier("tenant", tenant, MAX_TENANT),
        name_of("task", task),
        *key_parts(key),
    )
    return str(derived_id(NAMESPACE, *parts))


@lru_cache(maxsize=1 << 12)
def derived_id(namespace: uuid.UUID, *parts: str) -> uuid.UUID:
    """UUIDv5 over length-prefixed parts, so ("ab", "c") and ("a", "bc") differ."""
    return uuid.uuid5(namespace, "".join(f"{len(part)}:{part}" for part in parts))


def canonical_payload(payload: Mapping[str, Any]) -> bytes:
    """One byte form per payload; refuses what JSON cannot carry, by path and never by value."""
    if not isinstance(payload, Mapping):
        raise BadInput("payload", "must be an object")
    plain = _plain_json(payload, "payload", 1)
    text = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise BadInput("payload", "holds text that is not valid Unicode") from None
    if len(data) > MAX_PAYLOAD_BYTES:
        raise BadInput("payload", f"has {len(data)} bytes, at most {MAX_PAYLOAD_BYTES} are allowed")
    return data


def payload_hash(data: bytes) -> str:
    """What a payload is compared by: 128 bits of SHA-256 over its canonical form."""
    return hashlib.sha256(data).hexdigest()[:32]


def check_wait(field_name: str, at: datetime | None, stored_at: datetime) -> None:
    """Refuse a time at which the text, kept since `stored_at`, would no longer outlive its job."""
    if at is not None and at - stored_at > timedelta(days=LONGEST_WAIT_DAYS):
        raise BadInput(
            field_name,
            f"is more than {LONGEST_WAIT_DAYS} days after the payload was stored, which expires; "
            "enqueue the job later, or without a payload",
        )


def utc(field_name: str, value: datetime | None) -> datetime | None:
    """`value` in UTC; a naive datetime is refused, since nobody can tell when it is."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise BadInput(field_name, "must be a datetime with a time zone")
    if value.utcoffset() is None:
        raise BadInput(field_name, "has no time zone; give an aware datetime, for example one in UTC")
    try:
        moment = value.astimezone(UTC)
        if not datetime(2000, 1, 1, tzinfo=UTC) <= moment < datetime(2200, 1, 1, tzinfo=UTC):
            raise OverflowError
    except OverflowError:
        raise BadInput(field_name, "is not between the years 2000 and 2200") from None
    # Rows hold milliseconds: what is compared must be what was stored.
    return moment - timedelta(microseconds=moment.microsecond % 1000)


def time_after(field_name: str, delay_seconds: float, now: datetime) -> datetime:
    """The moment `delay_seconds` after `now`, 0 being now; a delay that cannot be meant is refused by name."""
    if isinstance(delay_seconds, bool) or not isinstance(delay_seconds, int | float):
        raise BadInput(field_name, "must be a number of seconds")
    # Written so that NaN, which compares with nothing, is refused, too.
    if not delay_seconds >= 0:
        raise BadInput(field_name, "must be 0 seconds (now) or more")
    if delay_seconds > MAX_DELAY_DAYS * 86_400:
        raise BadInput(field_name, f"is more than {MAX_DELAY_DAYS} days")
    return utc(field_name, now + timedelta(seconds=delay_seconds)) or now


def _plain_json(value: object, path: str, depth: int) -> object:
    """`value` in the types JSON has; anything else is refused by its place."""
    if depth > MAX_PAYLOAD_DEPTH:
        raise BadInput("payload", f"is nested deeper than {MAX_PAYLOAD_DEPTH} levels")
    match value:
        case None | bool() | str():
            return value
        case int() if abs(value) < MAX_WHOLE:
            return value
        case int():
            raise BadInput(path, "is a number too large to keep")
        case float():
            if not math.isfinite(value):
                raise BadInput(path, "is not a finite number")
            return value
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise BadInput(path, "has a field name that is not text")
            # A caller's field name could itself be customer text: the position names it.
            return {
                name: _plain_json(inner, f"{path}[{position}]", depth + 1)
                for position, (name, inner) in enumerate(value.items())
            }
        case list() | tuple():
            return [_plain_json(inner, f"{path}[{position}]", depth + 1) for position, inner in enumerate(value)]
    raise BadInput(path, f"is a {type(value).__name__}, which JSON cannot carry")
