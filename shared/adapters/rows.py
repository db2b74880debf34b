"""How each value of the core is written as a row, and read back. One place for both kinds of store.

What is absent, None or empty in a value is an absent attribute; an attribute this version does not know is
ignored, so that rows of a newer version can be read. Anything else that cannot be read is an
`UnreadableRow`, which names the field and never its value.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from shared.adapters import attributes
from shared.adapters.attributes import Attribute, Fields, Item
from shared.contract import table
from shared.core import moment
from shared.core.effects import EffectRow, EffectState
from shared.core.errors import BadInput
from shared.core.job import (
    DEFAULT_PRIORITY,
    MAX_TENANT,
    PRIORITIES,
    STATUS_ALIASES,
    Category,
    Job,
    Move,
    Status,
    identifier,
    name_of,
    read_status,
)
from shared.core.lane import LaneSpec
from shared.core.ports import WaitingEntry

FIELD_ALIASES = {"not_before_at": "scheduled_at", "attempt_count": "attempts", "last_error": "error_message"}
"""Field names of older systems: read, never written; every move removes them."""

_TEXTS = (
    *("lane", "tenant", "task", "key", "claimed_by", "last_error", "category", "signature", "blocked_by"),
    *("payload_ref", "payload_hash", "result", "result_ref", "plan_id", "route"),
)
_NUMBERS = ("task_version", "priority", "fence", "attempt_count", "max_attempts")
_ESTIMATES = ("estimated_tokens", "estimated_requests")
_TIMES = (
    *("created_at", "updated_at", "not_before_at", "claimed_at", "last_error_at", "waiting_since"),
    *("completed_at", "permit_at", "taken_from"),
)
_texts, _numbers = attrgetter(*_TEXTS), attrgetter(*_NUMBERS)
_times, _estimates = attrgetter(*_TIMES), attrgetter(*_ESTIMATES)


def spellings(status: Status) -> tuple[str, ...]:
    """Every stored word that means this status; the first is the one that is written."""
    return (status.value, *(word for word, meant in STATUS_ALIASES.items() if meant is status))


# ------------------------------------------------------------------------------------------------- jobs
def lane_wpk(job: Job, lane: LaneSpec) -> str:
    """The partition of the waiting index a job stands in while it has a due time."""
    if lane.admission == "scheduled" and job.status is Status.PROCESSING:
        return table.claimed_wpk(lane.name)
    if lane.admission == "fair":
        return table.fair_wpk(lane.name, job.tenant, job.priority)
    return table.ordered_wpk(lane.line_of(job), lane.shard_of(job.job_id), job.priority)


def job_wsk(job: Job) -> str | None:
    """Its key in the waiting index: the one that was read, else the one its times make. None: it has none.

    A failed job that waits for nothing stands there by the time of its failure, which makes it due for nobody: so they
    are found without a scan."""
    if job.place_as_read is not None:
        return job.place_as_read or None
    at = job.updated_at if job.due is None and job.status is Status.FAILED else job.due
    return None if at is None else table.waiting_sk(moment.iso(at), moment.iso(job.created_at), job.job_id)


def _failed_wpk(job: Job) -> str:
    """A failed job stands among those that ask for their letter, or among all the others of its lane."""
    return table.letters_wpk(job.lane) if job.waits else table.failed_wpk(job.lane)


def job_item(job: Job, wpk: str | None = None) -> Item:
    """A job's row. `wpk` (see `lane_wpk`) is needed when the job waits, and ignored when not."""
    item: Item = {
        table.PK: attributes.text(table.job_pk(job.job_id)),
        "status": attributes.text(job.status.value),
    }
    item |= {name: attributes.text(str(value)) for name, value in zip(_TEXTS, _texts(job), strict=True) if value}
    item |= {name: attributes.whole(number) for name, number in zip(_NUMBERS, _numbers(job), strict=True)}
    item |= {name: attributes.time(at) for name, at in zip(_TIMES, _times(job), strict=True) if at is not None}
    estimates = zip(_ESTIMATES, _estimates(job), strict=True)
    item |= {name: attributes.whole(amount) for name, amount in estimates if amount is not None}
    if job.replay_count:
        item["replay_count"] = attributes.whole(job.replay_count)
    if job.expires_at is not None:
        item[table.TTL] = attributes.expiry(job.expires_at)
    if job.routing_decision:
        item["routing_decision"] = attributes.from_json(job.routing_decision, "routing_decision")
    if job.facts:
        item["facts"] = attributes.from_json(job.facts, "facts")
    if job.withheld:
        item["withheld"] = {"M": {what: attributes.text(by) for what, by in job.withheld.items()}}
    if job.moves:
        item["moves"] = {"L": [move_attribute(move) for move in job.moves]}
    if (wsk := job_wsk(job)) is not None:
        if job.status is Status.FAILED:
            wpk = _failed_wpk(job)
        if wpk is None:
            raise ValueError("a waiting job needs the partition of its lane")
        item[table.WAITING_PK] = attributes.text(wpk)
        item[table.WAITING_SK] = attributes.text(wsk)
    return item


def move_attribute(move: Move) -> Attribute:
    """One step of the history: `<time>|<status>|<reason>`."""
    return attributes.text(f"{moment.iso(move.at)}|{move.to.value}|{move.reason}")


def job_from_item(item: Item) -> Job:
    """The job a row says, older names included. Raises UnreadableRow."""
    fields = Fields(key_of(item), item)
    pk = fields.text(table.PK)
    if not is_job(item):
        fields.unreadable(table.PK, "is not the key of a job")
    status = _status(fields, "status", fields.text("status"))
    place = fields.text_or_none(table.WAITING_SK)
    due = table.due_from(place) if place is not None and _waits(item, status) else None
    category = fields.text_or_none("category")
    priority = fields.whole("priority", DEFAULT_PRIORITY)
    if priority not in PRIORITIES:
        fields.unreadable("priority", "is not one this version knows")
    if category is not None and category not in tuple(Category):
        fields.unreadable("category", "is not one this version knows")
    job = Job(
        job_id=table.job_id_from(pk),
        lane=_well_formed(fields, "lane"),
        tenant=_well_formed(fields, "tenant"),
        task=_well_formed(fields, "task"),
        key=fields.text("key"),
        created_at=fields.time("created_at"),
        updated_at=fields.time("updated_at"),
        status=status,
        task_version=fields.whole("task_version", 1),
        priority=priority,
        not_before_at=fields.time_or_none(_older(fields, "not_before_at")),
        claimed_at=fields.time_or_none("claimed_at"),
        claimed_by=fields.text_or_none("claimed_by"),
        taken_from=fields.time_or_none("taken_from"),
        fence=fields.whole("fence", 0),
        attempt_count=fields.whole(_older(fields, "attempt_count"), 0),
        max_attempts=fields.whole("max_attempts", 3),
        last_error=fields.text_or_none(_older(fields, "last_error")),
        last_error_at=fields.time_or_none("last_error_at"),
        category=None if category is None else Category(category),
        signature=fields.text_or_none("signature"),
        blocked_by=fields.text_or_none("blocked_by"),
        waiting_since=fields.time_or_none("waiting_since"),
        permit_at=fields.time_or_none("permit_at"),
        estimated_tokens=fields.whole_or_none("estimated_tokens"),
        estimated_requests=fields.whole_or_none("estimated_requests"),
        due=None if due is None else fields.as_time(table.WAITING_SK, due),
        payload_ref=fields.text_or_none("payload_ref"),
        payload_hash=fields.text_or_none("payload_hash") or "",
        result=fields.text_or_none("result"),
        result_ref=fields.text_or_none("result_ref"),
        completed_at=fields.time_or_none("completed_at"),
        expires_at=fields.expiry_or_none(table.TTL),
        replay_count=fields.whole("replay_count", 0),
        plan_id=fields.text_or_none("plan_id"),
        route=fields.text_or_none("route"),
        routing_decision=fields.mapping("routing_decision"),
        facts=fields.mapping("facts"),
        withheld=_withheld(fields),
        moves=tuple(_move(fields, step) for step in fields.texts("moves")),
    )
    return job if place == job_wsk(job) else replace(job, place_as_read=place or "")


def _waits(item: Item, status: Status) -> bool:
    """True where a key in the index is a time at which something is due. Half a key is no place: without its partition
    the row is in no index, whatever time it tells. Failed jobs wait for their letter and for nothing else."""
    wpk = key_of(item, table.WAITING_PK)
    if status is Status.FAILED:
        return wpk.startswith(table.letters_wpk(""))
    return table.WAITING_PK in item and not wpk.startswith(table.failed_wpk(""))


def status_from_item(item: Item) -> Status:
    """The status a row says, whatever else stands in it. Raises UnreadableRow."""
    fields = Fields(key_of(item), item)
    return _status(fields, "status", fields.text("status"))


def _well_formed(fields: Fields, name: str) -> str:
    """A name or an id that goes on into messages, queue groups and metrics: nothing else may stand there."""
    value = fields.text(name)
    try:
        return identifier(name, value, MAX_TENANT) if name == "tenant" else name_of(name, value)
    except BadInput as refused:
        fields.unreadable(name, refused.problem)


def is_job(item: Item) -> bool:
    """True for a job's row: the table holds other rows, too."""
    return key_of(item).startswith(table.job_pk(""))


def claimed_item(item: Item, *, by: str, now: datetime, run: tuple[str, str] | None = None) -> Item:
    """A claimable row after its claim: what the one conditional update makes of it. `run`: its place among the claims
    of runs, when a run has claimed it."""
    fields = Fields(key_of(item), item)
    gone = (table.WAITING_PK, table.WAITING_SK, "blocked_by", "route")
    after = {name: value for name, value in item.items() if name not in gone}
    claim = move_attribute(Move(at=now, to=Status.PROCESSING, reason="claim"))
    after["status"] = attributes.text(Status.PROCESSING.value)
    after["claimed_at"] = after["updated_at"] = attributes.time(now)
    after["claimed_by"] = attributes.text(by)
    after["fence"] = attributes.whole(fields.whole("fence", 0) + 1)
    after["moves"] = {"L": [*map(attributes.text, fields.texts("moves")), claim]}
    if run is not None:
        after[table.WAITING_PK], after[table.WAITING_SK] = map(attributes.text, run)
    return after


def run_place(lane: LaneSpec, entry: WaitingEntry, now: datetime) -> tuple[str, str]:
    """Where a job that a run claims now stands in the index: among the claims of runs, by the time of the claim."""
    sk = table.waiting_sk(moment.iso(now), moment.iso(entry.created), entry.job_id)
    return table.claimed_wpk(lane.name), sk


def waiting_entry(item: Item) -> WaitingEntry:
    """What one entry of the waiting index nominates. Raises UnreadableRow, as reading its row would."""
    fields = Fields(key_of(item), item)
    place = fields.text(table.WAITING_SK)
    due = fields.as_time(table.WAITING_SK, table.due_from(place))
    # The partition ends with the priority; jobs claimed by a run have none, and none is needed.
    priority = fields.text(table.WAITING_PK).rpartition("#")[2]
    return WaitingEntry(
        job_id=table.job_id_from(fields.text(table.PK)),
        due=due,
        created=_created(place) or due,
        priority=int(priority) if priority in map(str, PRIORITIES) else 0,
        timed=table.timed_in(place),
    )


def _created(place: str) -> datetime | None:
    """What follows the due time only orders those due together: a key that does not tell it hides no job."""
    try:
        return moment.whole_ms(moment.parse(table.created_in(place)))
    except ValueError:
        return None


# ---------------------------------------------------------------------------------------------- effects
def effect_item(row: EffectRow) -> Item:
    """An effect's row: ids, states and times; it expires 400 days after its first intent."""
    optional = {"vendor_id": row.vendor_id, "reason": row.reason, "fingerprint": row.fingerprint}
    item: Item = {
        table.PK: attributes.text(table.job_pk(row.job_id)),
        table.SK: attributes.text(table.effect_sk(row.name)),
        "effect_id": attributes.text(row.effect_id),
        "vendor": attributes.text(row.vendor),
        "state": attributes.text(row.state.value),
        "fence": attributes.whole(row.fence),
        "first_intent_at": attributes.time(row.first_intent_at),
        "intent_at": attributes.time(row.intent_at),
        table.TTL: attributes.expiry(row.expires_at),
        "customer_visible": {"BOOL": row.customer_visible},
        **{name: attributes.text(value) for name, value in optional.items() if value},
    }
    if row.recorded_at is not None:
        item["recorded_at"] = attributes.time(row.recorded_at)
    if row.taken_over:
        item["taken_over"] = {"BOOL": True}
    if row.also_accepted:
        item["also_accepted"] = attributes.text_set(row.also_accepted)
    return item


def effect_from_item(item: Item) -> EffectRow:
    """The effect a row says. Raises UnreadableRow."""
    fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
    state = fields.text("state")
    if state not in tuple(EffectState):
        fields.unreadable("state", "is not one this version knows")
    return EffectRow(
        effect_id=fields.text("effect_id"),
        job_id=table.job_id_from(fields.text(table.PK)),
        name=fields.text(table.SK).removeprefix(table.effect_sk("")),
        vendor=fields.text("vendor"),
        state=EffectState(state),
        fence=fields.whole("fence"),
        first_intent_at=fields.time("first_intent_at"),
        intent_at=fields.time("intent_at"),
        recorded_at=fields.time_or_none("recorded_at"),
        vendor_id=fields.text_or_none("vendor_id"),
        reason=fields.text_or_none("reason"),
        taken_over=fields.flag("taken_over", default=False),
        fingerprint=fields.text_or_none("fingerprint") or "",
        customer_visible=fields.flag("customer_visible", default=True),
        also_accepted=fields.text_set("also_accepted"),
    )


def key_of(item: Item, name: str = table.PK) -> str:
    key: Any = item.get(name)
    value = key.get("S") if isinstance(key, dict) else None
    return value if isinstance(value, str) else "?"


def _withheld(fields: Fields) -> dict[str, str] | None:
    told = fields.mapping("withheld")
    if told is not None and not all(isinstance(by, str) for by in told.values()):
        fields.unreadable("withheld", "holds something that is not the name of a scope")
    return told


def _older(fields: Fields, name: str) -> str:
    return fields.under(name, FIELD_ALIASES[name])


def _status(fields: Fields, name: str, word: str) -> Status:
    try:
        return read_status(word)
    except ValueError:
        fields.unreadable(name, "is not one this version knows")


def _move(fields: Fields, step: str) -> Move:
    at, _, rest = step.partition("|")
    word, bar, reason = rest.partition("|")
    if not bar:
        fields.unreadable("moves", "holds a step that cannot be read")
    return Move(at=fields.as_time("moves", at), to=_status(fields, "moves", word), reason=reason)


def stored(job: Job) -> Job:
    """The job as its row will be read back: an expiry keeps whole seconds only."""
    expires = job.expires_at
    return job if expires is None else replace(job, expires_at=moment.from_epoch_s(moment.epoch_s(expires)))
