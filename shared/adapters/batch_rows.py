"""How batches and their members are written as rows of the ledger, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from shared.adapters import attributes
from shared.adapters.attributes import Fields, Item
from shared.adapters.rows import key_of
from shared.contract import table
from shared.core import moment
from shared.core.batch import KEPT_DAYS, Batch, BatchState, Group, Member
from shared.core.errors import UnreadableRow

PART = 1000
"""Jobs in one part of the list of members: about 60 KB."""
_GROUP = ("provider", "model", "prompt_version", "policy_version", "lane", "locales")


FORGOTTEN_DAYS = 1
"""How long an ended batch still stands among those under way, marked as ended: nobody deletes a row."""


def batch_key(lane: str, tag: str) -> Item:
    """Where a batch stands from its intent on."""
    return {table.PK: attributes.text(table.batch_pk(lane)), table.SK: attributes.text(table.open_batch_sk(tag))}


def batch_item(batch: Batch) -> Item:
    """A batch's row; it expires soon after its end, of which another one tells."""
    item: Item = {
        **batch_key(batch.lane, batch.tag),
        "tag": attributes.text(batch.tag),
        "run_id": attributes.text(batch.run_id),
        "state": attributes.text(batch.state.value),
        "count": attributes.whole(batch.count),
        "tokens": attributes.whole(batch.tokens),
        "intent_at": attributes.time(batch.intent_at),
        **{name: attributes.text(getattr(batch.group, name)) for name in _GROUP},
    }
    for name in ("provider_id", "ending"):
        if value := getattr(batch, name):
            item[name] = attributes.text(value)
    for name in ("submitted_at", "ended_at"):
        if (at := getattr(batch, name)) is not None:
            item[name] = attributes.time(at)
    if batch.ended_at is not None:
        item[table.TTL] = attributes.expiry(batch.ended_at + timedelta(days=FORGOTTEN_DAYS))
    return item


def ended_item(batch: Batch) -> Item:
    """What is remembered of an ended batch."""
    at = batch.ended_at or batch.intent_at
    return batch_item(batch) | {
        table.SK: attributes.text(table.ended_batch_sk(moment.iso(batch.intent_at), batch.tag)),
        table.TTL: attributes.expiry(at + timedelta(days=KEPT_DAYS)),
    }


def batch_from_item(item: Item) -> Batch:
    """The batch a row says. Raises UnreadableRow."""
    fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
    state = fields.text("state")
    if state not in tuple(BatchState):
        fields.unreadable("state", "is not one this version knows")
    return Batch(
        tag=fields.text("tag"),
        run_id=fields.text("run_id"),
        group=Group(**{name: fields.text(name) for name in _GROUP}),
        state=BatchState(state),
        count=fields.whole("count"),
        tokens=fields.whole("tokens"),
        intent_at=fields.time("intent_at"),
        provider_id=fields.text_or_none("provider_id"),
        submitted_at=fields.time_or_none("submitted_at"),
        ended_at=fields.time_or_none("ended_at"),
        ending=fields.text_or_none("ending") or "",
    )


def member_items(batch: Batch, members: Sequence[Member]) -> Iterator[Item]:
    """The parts of the list of members."""
    expires = batch.intent_at + timedelta(days=2 * KEPT_DAYS)
    for number, start in enumerate(range(0, len(members), PART)):
        lines = [f"{one.job_id}|{one.fence}" for one in members[start : start + PART]]
        yield {
            table.PK: attributes.text(table.members_pk(batch.tag)),
            table.SK: attributes.text(table.manifest_sk(number)),
            "jobs": {"L": [attributes.text(line) for line in lines]},
            table.TTL: attributes.expiry(expires),
        }


def members_from_items(items: Iterable[Item]) -> tuple[Member, ...]:
    """All members, in their order. Raises UnreadableRow."""
    found: list[Member] = []
    for item in items:
        fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
        for line in fields.texts("jobs"):
            job_id, _, fence = line.partition("|")
            if not job_id or not fence.isdecimal():
                fields.unreadable("jobs", "holds a line that cannot be read")
            found.append(Member(job_id=job_id, fence=int(fence)))
    return tuple(found)


def under_way(items: Iterable[Item], *, run_id: str = "", readable: bool = False) -> list[Batch]:
    """Those of these rows that have not ended, oldest first. Raises UnreadableRow unless `readable` ones are enough."""
    found: list[Batch] = []
    for item in items:
        try:
            found.append(batch_from_item(item))
        except UnreadableRow:
            if not readable:
                raise
    left = (one for one in found if one.state is not BatchState.ENDED and run_id in ("", one.run_id))
    return sorted(left, key=lambda batch: (batch.intent_at, batch.tag))
