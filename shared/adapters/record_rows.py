"""How runs and decisions are written as rows, and read back."""

from __future__ import annotations

from datetime import timedelta

from shared.adapters import attributes
from shared.adapters.attributes import Fields, Item
from shared.adapters.rows import key_of
from shared.contract import table
from shared.core import moment
from shared.core.history import HistoryEvent
from shared.core.schedule import RunRecord

RUNS_KEPT_DAYS = 30


def run_item(run: RunRecord) -> Item:
    """A run's row; it expires thirty days after its start."""
    item: Item = {
        table.PK: attributes.text(table.run_pk(run.schedule)),
        table.SK: attributes.text(run.slot),
        "run_id": attributes.text(run.run_id),
        "started_at": attributes.time(run.started_at),
        table.TTL: attributes.expiry(run.started_at + timedelta(days=RUNS_KEPT_DAYS)),
    }
    if run.finished_at is not None:
        item["finished_at"] = attributes.time(run.finished_at)
    if run.counts:
        item["counts"] = {"M": {name: attributes.whole(count) for name, count in run.counts.items()}}
    return item


def run_from_item(item: Item) -> RunRecord:
    """The run a row says. Raises UnreadableRow."""
    fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
    counts = fields.mapping("counts") or {}
    if not all(type(count) is int for count in counts.values()):
        fields.unreadable("counts", "holds something that is not a whole number")
    return RunRecord(
        schedule=fields.text(table.PK).removeprefix(table.run_pk("")),
        slot=fields.text(table.SK),
        run_id=fields.text("run_id"),
        started_at=fields.time("started_at"),
        finished_at=fields.time_or_none("finished_at"),
        counts=counts,
    )


def history_item(event: HistoryEvent) -> Item:
    """An event's row; it never expires."""
    item: Item = {
        table.PK: attributes.text(event.subject),
        table.SK: attributes.text(table.history_sk(moment.iso(event.at), event.event_id)),
        "event_id": attributes.text(event.event_id),
        "at": attributes.time(event.at),
        "kind": attributes.text(event.kind),
        "by": attributes.text(event.by),
    }
    if event.detail:
        item["detail"] = attributes.from_json(event.detail, "detail")
    return item


def history_from_item(item: Item) -> HistoryEvent:
    """The event a row says. Raises UnreadableRow."""
    fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
    return HistoryEvent(
        subject=fields.text(table.PK),
        event_id=fields.text("event_id"),
        at=fields.time("at"),
        kind=fields.text("kind"),
        by=fields.text("by"),
        detail=fields.mapping("detail") or {},
    )
